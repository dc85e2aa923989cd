//! Compares `ChunkTable` with a map of the standard library. In tests the thresholds are small enough that threads
//! start, the queue fills up, texts are cut and rows are sorted in many ranges.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::error::NEVER;
use crate::split::NAMED;

type Rows = Vec<(String, u64)>;

fn splitter() -> Splitter {
    Splitter::new(NAMED[1].1).expect("a named pattern")
}

fn shared(text: &str) -> SharedText {
    SharedText::new(Bytes::copy_from_slice(text.as_bytes())).expect("valid UTF-8")
}

fn rows(counted: &Counted) -> Rows {
    let chunk = |i: usize| &counted.data[counted.offsets[i] as usize..counted.offsets[i + 1] as usize];
    let chunk = |i: usize| String::from_utf8(chunk(i).to_vec()).expect("valid UTF-8");
    counted.counts.iter().enumerate().map(|(i, &count)| (chunk(i), count)).collect()
}

fn count(texts: &[String], special: &[String], max_chunk_bytes: usize, threads: usize) -> (Rows, usize) {
    let mut table =
        ChunkTable::new(Counting::Chunks, splitter(), special, max_chunk_bytes, threads).expect("few special tokens");
    for group in texts.chunks(3) {
        table.add(group.iter().map(|text| Ok(shared(text))), &NEVER).expect("nothing fails");
    }
    let (counted, _, skipped) = table.finish(&NEVER).expect("nothing fails");
    (rows(&counted), skipped)
}

/// Does the same as `count` in the simplest way.
fn expected(texts: &[String], special: Option<&str>, max_chunk_bytes: usize) -> (Rows, usize) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut skipped = 0;
    for text in texts {
        for part in special.map_or(vec![&text[..]], |special| text.split(special).collect()) {
            let chunk = |chunk| {
                if str::len(chunk) <= max_chunk_bytes {
                    *counts.entry(chunk).or_default() += 1;
                } else {
                    skipped += 1;
                }
                Ok(())
            };
            splitter().split(part, &NEVER, chunk).expect("nothing fails");
        }
    }
    let mut rows: Rows = counts.into_iter().map(|(chunk, count)| (chunk.to_owned(), count)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    (rows, skipped)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof!["[ab]{1,3}", "[a-zé語 ]{1,30}", "[\\n .<|>]{1,3}", Just("<|end|>".to_owned())];
    vec(vec(word, 0..60).prop_map(|words| words.join(" ")), 0..20)
}

proptest! {
    #[test]
    fn counts_equal_those_of_a_plain_map(
        texts in texts(),
        threads in 1..5usize,
        special: bool,
        max_chunk_bytes in 1..40usize,
    ) {
        let tokens = if special { vec!["<|end|>".to_owned()] } else { vec![] };
        let expected = expected(&texts, special.then_some("<|end|>"), max_chunk_bytes);
        prop_assert_eq!(count(&texts, &tokens, max_chunk_bytes, threads), expected);
    }

    #[test]
    fn existing_counts_are_added(texts in texts(), threads in 1..4usize) {
        let (rows_before, _) = count(&texts, &[], usize::MAX, 1);
        let mut table =
            ChunkTable::new(Counting::Chunks, splitter(), &[], usize::MAX, threads).expect("no special tokens");
        table.add(texts.iter().map(|text| Ok(shared(text))), &NEVER).expect("nothing fails");
        let again: Vec<_> = rows_before.iter().map(|(chunk, count)| (chunk.as_bytes(), *count)).collect();
        table.add_counts(again.into_iter(), &NEVER).expect("nothing fails");
        prop_assert!(table.unique() >= rows_before.len());
        let doubled: Rows = rows_before.into_iter().map(|(chunk, count)| (chunk, 2 * count)).collect();
        prop_assert_eq!(rows(&table.finish(&NEVER).expect("nothing fails").0), doubled);
    }
}

#[test]
fn chunks_are_sorted_for_any_number_of_threads() {
    // Enough for many ranges, with equal counts, long common prefixes, and chunks that are prefixes of others.
    let word = |i: usize| format!(" {}{}", "prefixes".repeat(i % 3), "x".repeat(i % 7) + &i.to_string());
    let texts: Vec<String> = (0..5000).map(|i| word(i).repeat(1 + i % 2)).collect();
    for threads in [1, 3] {
        assert!(count(&texts, &[], usize::MAX, threads) == expected(&texts, None, usize::MAX), "{threads} threads");
    }
}

#[test]
fn a_pattern_that_fails_in_a_thread_returns_an_error() {
    for threads in [1, 3] {
        let splitter = Splitter::new(r"((a|aa)+)(?!a)b\1|[\s\S]").expect("a valid pattern");
        let mut table =
            ChunkTable::new(Counting::Chunks, splitter, &[], usize::MAX, threads).expect("no special tokens");
        let texts = std::iter::repeat_n("b ".repeat(50), 40).chain([("a".repeat(60))]);
        let added = table.add(texts.map(|text| Ok(shared(&text))), &NEVER);
        let result = added.and_then(|()| table.finish(&NEVER).map(drop));
        assert!(matches!(result, Err(Error::Pattern(_))), "{threads} threads: {result:?}");
    }
}

#[test]
fn sums_beyond_64_bits_return_an_error() {
    let mut table = ChunkTable::new(Counting::Chunks, splitter(), &[], usize::MAX, 1).expect("no special tokens");
    let rows = [(&b"a"[..], u64::MAX), (&b"a"[..], 1)];
    let error = table.add_counts(rows.into_iter(), &NEVER).expect_err("the sum overflows");
    assert!(error.to_string().contains("more than 2**64 - 1"), "{error}");
}

/// Frees texts only on the thread that created them, as Python requires. Other threads must not even do so on errors.
struct Owned {
    text: String,
    thread: std::thread::ThreadId,
    alive: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

thread_local! {
    /// Whether this thread may free texts at the moment.
    static MAY_FREE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Drop for Owned {
    fn drop(&mut self) {
        if self.thread == std::thread::current().id() && MAY_FREE.get() {
            self.alive.fetch_sub(1, Relaxed);
        }
    }
}

#[test]
fn texts_are_freed_only_by_the_caller() {
    let fails = r"((a|aa)+)(?!a)b\1|[\s\S]"; // on the text of `bad`
    for (pattern, bad, cancelled) in [(NAMED[1].1, false, false), (fails, true, false), (NAMED[1].1, false, true)] {
        for threads in [1, 3] {
            let alive = Arc::new(AtomicUsize::new(0));
            let owned = |text: String| {
                alive.fetch_add(1, Relaxed);
                let owner = Owned { text, thread: std::thread::current().id(), alive: alive.clone() };
                SharedText::new(Bytes::from_owner(owner)).expect("valid UTF-8")
            };
            let splitter = Splitter::new(pattern).expect("a valid pattern");
            let mut table =
                ChunkTable::new(Counting::Chunks, splitter, &[], usize::MAX, threads).expect("no special tokens");
            let cancel = Cancel::default();
            for round in 0..20 {
                let mut texts: Vec<_> = (0..40).map(|i| owned("to be\nor not ".repeat(i))).collect();
                if bad && round == 10 {
                    texts.push(owned("a".repeat(60)));
                }
                if cancelled && round == 10 {
                    cancel.cancel();
                }
                let added = table.add(texts.iter().cloned().map(Ok), &cancel);
                assert!(added.is_ok() || bad || cancelled);
                MAY_FREE.set(true);
                drop(texts);
                table.drop_spent();
                MAY_FREE.set(false);
            }
            let _ = table.finish(&cancel);
            MAY_FREE.set(true);
            drop(table);
            MAY_FREE.set(false);
            assert_eq!(alive.load(Relaxed), 0, "{pattern}, {threads} threads, cancelled: {cancelled}");
        }
    }
}
