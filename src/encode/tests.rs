//! Compares the encoder with a simple implementation, on vocabularies and texts of few letters, where merges compete.

use std::collections::BTreeMap;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::error::{Error, NEVER};
use crate::split::{Form, NAMED};

/// Generates distinct merges of the letters a to d and of earlier merges.
pub fn merges() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
    vec((any::<u32>(), any::<u32>()), 0..40).prop_map(|draws| {
        let mut tokens: Vec<u32> = (97..101).collect();
        let mut merges: Vec<(u32, u32, u32)> = Vec::new();
        for (first, last) in draws {
            let pick = |draw: u32| tokens[draw as usize % tokens.len()];
            let (first, last, id) = (pick(first), pick(last), 256 + merges.len() as u32);
            if !merges.iter().any(|merge| (merge.0, merge.1) == (first, last)) {
                merges.push((first, last, id));
                tokens.push(id);
            }
        }
        merges
    })
}

pub fn ranked(merges: &[(u32, u32, u32)]) -> RankedTokens {
    let bytes: [u32; 256] = std::array::from_fn(|byte| byte as u32);
    RankedTokens::from_merges(&bytes, merges.iter().copied()).expect("valid merges")
}

pub fn encoder(pattern: &str, merges: &[(u32, u32, u32)], stop_words: &[&str], special: &[&str]) -> Encoder {
    let splitter = Splitter::new(pattern).expect("a valid pattern");
    let mut next = 10_000..;
    let stop_words = stop_words.iter().map(|word| word.as_bytes().to_vec()).zip(next.by_ref()).collect();
    let special = special.iter().zip(next).map(|(name, id)| found(name, id)).collect();
    let others = OtherTokens { stop_words, special, ..OtherTokens::default() };
    Encoder::new(splitter, &ranked(merges), others, &NEVER).expect("within the limits")
}

fn found(name: &str, id: u32) -> FoundToken {
    FoundToken { name: name.to_owned(), id, flags: Flags::default() }
}

/// Merges one pair at a time: lowest rank first, and the leftmost of equal pairs.
fn merge_simply(chunk: &[u8], merges: &[(u32, u32, u32)]) -> Vec<u32> {
    let mut tokens: Vec<u32> = chunk.iter().map(|&byte| u32::from(byte)).collect();
    let rank = |pair: &[u32]| merges.iter().position(|merge| [merge.0, merge.1] == *pair);
    while let Some((rank, at)) = tokens.windows(2).zip(0..).filter_map(|(pair, at)| Some((rank(pair)?, at))).min() {
        tokens[at] = merges[rank].2;
        tokens.remove(at + 1);
    }
    tokens
}

pub fn allow_all() -> SpecialRules {
    SpecialRules { allowed: SpecialSet::All, disallowed: SpecialSet::These(vec![]) }
}

/// Generates short chunks and long ones with runs, which are merged by different code.
fn chunks() -> impl Strategy<Value = String> {
    let runs = vec(("[a-d]", 1..90usize), 1..12);
    prop_oneof!["[a-d]{1,12}", "[ab]{200,400}", runs.prop_map(|runs| runs.iter().map(|(c, n)| c.repeat(*n)).collect())]
}

proptest! {
    #[test]
    fn chunks_are_merged_lowest_rank_first(merges in merges(), chunks in vec(chunks(), 1..6), threads in 1..4usize) {
        let encoder = encoder(r"\S+|\s+", &merges, &[], &[]);
        let expected: Vec<Vec<u32>> = chunks.iter().map(|chunk| merge_simply(chunk.as_bytes(), &merges)).collect();
        let bytes: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
        let (ids, sizes) = encoder.encode_chunks(&bytes, threads, &NEVER).expect("nothing fails");
        prop_assert_eq!(&ids, &expected.concat());
        prop_assert_eq!(sizes, expected.iter().map(|ids| ids.len() as u32).collect::<Vec<_>>());
        // The second time, the chunks are cached.
        let texts: Vec<&str> = chunks.iter().map(String::as_str).collect();
        for _ in 0..2 {
            let encoded = encoder.encode_batch(&texts, &allow_all(), threads, &NEVER).expect("nothing fails");
            let ends = expected.iter().scan(0, |end, ids| {
                *end += ids.len() as i64;
                Some(*end)
            });
            prop_assert_eq!(encoded, (ids.clone(), [0].into_iter().chain(ends).collect::<Vec<i64>>()));
        }
        prop_assert_eq!(encoder.decode(&ids, &NEVER).expect("known ids"), chunks.concat().into_bytes());
    }

    #[test]
    fn hidden_tokens_are_replaced_by_their_parts(
        merges in merges(),
        choices in vec(any::<bool>(), 40),
        chunks in vec(chunks(), 1..6),
        threads in 1..4usize,
    ) {
        let hidden: Vec<u32> = merges.iter().zip(choices).filter(|(_, hide)| *hide).map(|(merge, _)| merge.2).collect();
        fn show(id: u32, merges: &[(u32, u32, u32)], hidden: &[u32]) -> Vec<u32> {
            match merges.iter().find(|merge| merge.2 == id && hidden.contains(&id)) {
                Some(&(first, last, _)) => [show(first, merges, hidden), show(last, merges, hidden)].concat(),
                None => vec![id],
            }
        }
        let merged: Vec<Vec<u32>> = chunks.iter().map(|chunk| merge_simply(chunk.as_bytes(), &merges)).collect();
        let expected: Vec<Vec<u32>> =
            merged.iter().map(|ids| ids.iter().flat_map(|&id| show(id, &merges, &hidden)).collect()).collect();
        let others = OtherTokens { hidden: hidden.clone(), ..OtherTokens::default() };
        let splitter = Splitter::new(r"\S+|\s+").expect("a valid pattern");
        let encoder = Encoder::new(splitter, &ranked(&merges), others, &NEVER).expect("valid merges");
        let bytes: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
        let (ids, sizes) = encoder.encode_chunks(&bytes, threads, &NEVER).expect("nothing fails");
        prop_assert_eq!(&ids, &expected.concat());
        prop_assert_eq!(sizes, expected.iter().map(|ids| ids.len() as u32).collect::<Vec<_>>());
        let texts: Vec<&str> = chunks.iter().map(String::as_str).collect();
        for _ in 0..2 {
            let encoded = encoder.encode_batch(&texts, &allow_all(), threads, &NEVER).expect("nothing fails").0;
            prop_assert_eq!(&encoded, &ids);
        }
        prop_assert_eq!(encoder.decode(&ids, &NEVER).expect("known ids"), chunks.concat().into_bytes());
        for (chunk, merged) in bytes.iter().zip(merged) {
            prop_assert_eq!(encoder.training_ids(chunk, &NEVER).expect("nothing fails"), merged);
        }
        prop_assert!(hidden.iter().all(|&id| encoder.decode(&[id], &NEVER).is_err()));
    }

    #[test]
    fn decoding_restores_the_text(
        merges in merges(),
        words in vec(
            prop_oneof!["[a-d]{1,9}", "[ \\n.]{1,3}", "\\PC{1,4}", Just("<s>".to_owned()), Just("aba".to_owned())],
            0..60,
        ),
        threads in 1..4usize,
    ) {
        let text = words.concat();
        for (_, pattern) in NAMED {
            let encoder = encoder(pattern, &merges, &["aba", " b"], &["<s>", "<s"]);
            let ids = encoder.encode(&text, &allow_all(), threads, &NEVER).expect("nothing fails");
            prop_assert_eq!(encoder.decode(&ids, &NEVER).expect("known ids"), text.as_bytes());
            // Split at special tokens, then into chunks; stop words are one token, other chunks are merged.
            let mut expected = Vec::new();
            for part in text.split_inclusive("<s") {
                let (plain, special) = part.strip_suffix("<s").map_or((part, false), |plain| (plain, true));
                // A ">" after "<s" completes "<s>", which is longer and therefore wins.
                let plain = match expected.last() {
                    Some(&10_003) if plain.starts_with('>') => {
                        expected.pop();
                        expected.push(10_002);
                        &plain[1..]
                    }
                    _ => plain,
                };
                let chunk = |chunk: &str| {
                    match ["aba", " b"].iter().position(|word| *word == chunk) {
                        Some(place) => expected.push(10_000 + place as u32),
                        None => expected.extend(merge_simply(chunk.as_bytes(), &merges)),
                    }
                    Ok(())
                };
                encoder.splitter.split(plain, &NEVER, chunk).expect("nothing fails");
                if special {
                    expected.push(10_003);
                }
            }
            prop_assert_eq!(ids, expected);
        }
    }

    /// Without normalization, a token stands for its own bytes, or for more if it strips whitespace. Between tokens is
    /// only what the pattern or the vocabulary lacks.
    #[test]
    fn spans_are_the_text_of_tokens(
        merges in merges(),
        words in vec(prop_oneof!["[a-d]{1,9}", "[ \\n.€]{1,3}", "[e\u{301}]{1,3}", Just("<s>".to_owned())], 0..40),
        pattern in prop_oneof![Just(r"\w+"), Just(NAMED[1].1)],
        form in prop_oneof![Just(None), Just(Some(Form::Nfc)), Just(Some(Form::Nfd))],
        prefix_space: bool,
    ) {
        let text = words.concat();
        let plan = Plan { pattern: pattern.to_owned(), normalization: form, prefix_space, ..Plan::default() };
        let flags = Flags { lstrip: true, ..Flags::default() };
        let others =
            OtherTokens { special: vec![FoundToken { flags, ..found("<s>", 1000) }], ..OtherTokens::default() };
        let bytes: [u32; 256] = std::array::from_fn(|byte| if byte == b'.' as usize { MISSING } else { byte as u32 });
        let ranked = RankedTokens::from_merges(&bytes, merges.iter().copied()).expect("valid merges");
        let encoder = Encoder::new(Splitter::of(plan).expect("valid"), &ranked, others, &NEVER).expect("valid merges");
        let (ids, spans) = encoder.encode_with_spans(&text, &allow_all(), &NEVER).expect("nothing fails");
        prop_assert_eq!(&ids, &encoder.encode(&text, &allow_all(), 1, &NEVER).expect("nothing fails"));
        prop_assert_eq!(ids.len(), spans.len());
        let whole = encoder.encode_with_words(&text, &allow_all(), &NEVER).expect("nothing fails");
        prop_assert_eq!((&whole.ids, whole.offsets.len(), whole.words.len()), (&ids, ids.len(), ids.len()));
        prop_assert!(whole.words.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + words.len() as u32));
        let (batch, offsets, starts) =
            encoder.encode_batch_with_offsets(&[&text, &text], &allow_all(), None, 2, &NEVER).expect("nothing fails");
        prop_assert_eq!(starts, [0, ids.len() as i64, 2 * ids.len() as i64]);
        prop_assert_eq!((batch, offsets), ([&ids[..], &ids].concat(), [&whole.offsets[..], &whole.offsets].concat()));
        if form.is_none() && !text.contains('.') {
            // A token stands for all characters that it has a part of.
            for (&(start, end), offsets) in spans.iter().zip(&whole.offsets) {
                let place = |at: usize| text[..at].chars().count() as u32;
                let (start, end) = (text.floor_char_boundary(start), text.ceil_char_boundary(end));
                prop_assert!((place(start), place(end)) == *offsets || start == end && prefix_space);
            }
        }
        let mut at = 0;
        for (id, (start, end)) in ids.into_iter().zip(spans) {
            prop_assert!(at <= start && start <= end);
            let dropped = &text.as_bytes()[at..start];
            prop_assert!(dropped.iter().all(|&byte| byte == b'.' || pattern == r"\w+" && !byte.is_ascii_alphanumeric()));
            let (token, part) = (encoder.token(id).expect("a known id"), &text.as_bytes()[start..end]);
            if id == 1000 {
                prop_assert_eq!(part.trim_ascii(), token);
            } else if form.is_none() {
                let is_added = prefix_space && token.len() == part.len() + 1 && token[0] == b' ';
                prop_assert!(part == token || is_added, "{part:?} {token:?}");
            } else if part.is_ascii() && !part.is_empty() {
                prop_assert!(token.ends_with(part), "{part:?} {token:?}");
            }
            at = end;
        }
    }

    #[test]
    fn added_tokens_are_found_between_special_tokens(
        merges in merges(),
        words in vec(prop_oneof!["[a-d]{1,9}", " {1,5}", Just("<s>".to_owned()), Just("<s><".to_owned())], 0..60),
        threads in 1..4usize,
    ) {
        let text = words.concat();
        let splitter = Splitter::new(NAMED[0].1).expect("a named pattern");
        let [special, added] = [vec![("<s>", 1000)], vec![("  ", 1001), ("   ", 1002), ("><", 1003), ("ab", 1004)]];
        let normalized = Flags { normalized: true, ..Flags::default() };
        let others = OtherTokens {
            special: special.iter().map(|(name, id)| found(name, *id)).collect(),
            added: added.iter().map(|(name, id)| FoundToken { flags: normalized, ..found(name, *id) }).collect(),
            ..OtherTokens::default()
        };
        let encoder = Encoder::new(splitter, &ranked(&merges), others, &NEVER).expect("within the limits");
        let plain = super::tests::encoder(NAMED[0].1, &merges, &[], &[]);
        let mut expected = Vec::new();
        for (number, part) in text.split("<s>").enumerate() {
            if number > 0 {
                expected.push(1000);
            }
            let (mut start, mut at) = (0, 0);
            let mut encode = |start: usize, end: usize, token: Option<u32>| {
                expected.extend(plain.encode(&part[start..end], &allow_all(), 1, &NEVER).expect("nothing fails"));
                expected.extend(token);
            };
            while at < part.len() {
                let found = added.iter().filter(|token| part[at..].starts_with(token.0));
                if let Some(&(name, id)) = found.max_by_key(|token| token.0.len()) {
                    encode(start, at, Some(id));
                    (start, at) = (at + name.len(), at + name.len());
                } else {
                    at += 1;
                }
            }
            encode(start, part.len(), None);
        }
        let ids = encoder.encode(&text, &allow_all(), threads, &NEVER).expect("nothing fails");
        prop_assert_eq!(&ids, &expected);
        prop_assert_eq!(encoder.decode(&ids, &NEVER).expect("known ids"), text.as_bytes());
        prop_assert_eq!(
            encoder.decode_without_special(&ids, &NEVER).expect("known ids"),
            text.replace("<s>", "").into_bytes()
        );
    }

    #[test]
    fn decoding_restores_any_bytes(
        merges in merges(),
        bytes in vec(prop_oneof![97..101u8, Just(32), Just(0xC3), any::<u8>()], 0..90),
    ) {
        let encoder = encoder(NAMED[0].1, &merges, &[], &[]);
        let ids = encoder.encode_bytes(&bytes, 2, &NEVER).expect("nothing fails");
        prop_assert_eq!(encoder.decode(&ids, &NEVER).expect("known ids"), bytes);
    }

    /// Ranks of any strings, as tiktoken encodes with them: a chunk that is a token is looked up, and otherwise any two
    /// tokens merge that together are a token, lowest rank first. Some are recovered as merges out of order, and some
    /// not at all.
    #[test]
    fn merges_are_recovered_from_ranks(
        words in btree_set("[ab]{2,9}|a{200,300}", 0..12).prop_map(Vec::from_iter).prop_shuffle(),
        chunks in vec("[ab]{1,20}|a{250,700}|b?a{256}", 1..20),
    ) {
        let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
        let merged = words.iter().map(|word| word.as_bytes()).zip(256u32..);
        let ranks: BTreeMap<&[u8], u32> = merged.chain(bytes.iter().map(|byte| &byte[..]).zip(0..)).collect();
        let (tokens, others) = RankedTokens::from_ranks(ranks.clone().into_iter().collect(), &NEVER).expect("ranks");
        let others: Vec<(Vec<u8>, u32)> = others.into_iter().map(|(word, id)| (word.to_vec(), id)).collect();
        let splitter = Splitter::new(r"\S+").expect("a valid pattern");
        let others = OtherTokens { stop_words: others, ..OtherTokens::default() };
        let encoder = Encoder::new(splitter, &tokens, others, &NEVER).expect("valid merges");
        for chunk in words.iter().chain(&chunks) {
            let mut parts: Vec<&[u8]> = chunk.as_bytes().chunks(1).collect();
            loop {
                let mut start = 0;
                let joined = |pair: &[&[u8]], start: usize| &chunk.as_bytes()[start..start + pair[0].len() + pair[1].len()];
                let ranked = parts.windows(2).enumerate().filter_map(|(at, pair)| {
                    let joined = joined(pair, start);
                    start += pair[0].len();
                    ranks.get(joined).map(|rank| (*rank, at, joined))
                });
                let Some((_, at, joined)) = ranked.min() else { break };
                parts.splice(at..at + 2, [joined]);
            }
            let expected = match ranks.get(chunk.as_bytes()) {
                Some(&rank) => vec![rank],
                None => parts.iter().map(|part| ranks[part]).collect(),
            };
            prop_assert_eq!(encoder.encode_chunks(&[chunk.as_bytes()], 1, &NEVER).expect("nothing fails").0, expected);
        }
    }
}

#[test]
fn a_token_that_doubles_is_recovered() {
    let tokens: Vec<Vec<u8>> = (1..=20).map(|power| vec![b'a'; 1 << power]).collect();
    let tokens: Vec<&[u8]> = tokens.iter().map(|token| &token[..]).collect();
    let halves: Vec<_> = (0..20).map(|power| if power == 0 { (97, 97) } else { (255 + power, 255 + power) }).collect();
    assert_eq!(MergeTable::of_tokens(&tokens, &NEVER).map(|merges| merges.0.pairs), Ok(halves));
    let cancelled = Cancel::default();
    cancelled.cancel();
    assert_eq!(MergeTable::of_tokens(&tokens, &cancelled).map(|merges| merges.0.pairs), Err(Error::Cancelled));
}

#[test]
fn a_held_lock_is_not_waited_for() {
    let encoder = encoder(NAMED[0].1, &[(97, 98, 256)], &[], &["<s>", "<t>"]);
    let these = |token: &str| SpecialSet::These(vec![token.to_owned()]);
    let subset = SpecialRules { allowed: these("<s>"), disallowed: these("<t>") };
    let text = "ab abc <s> aab ".repeat(20);
    let expected = encoder.encode(&text, &subset, 1, &NEVER).expect("nothing fails");
    // As in a process that was forked while other threads held all the locks.
    let _caches: Vec<_> = encoder.caches.slots.iter().map(|slot| slot.lock().expect("no panic")).collect();
    let _subsets: Vec<_> = encoder.special.passes.slots.iter().map(|slot| slot.write().expect("no panic")).collect();
    for threads in [1, 3] {
        assert_eq!(encoder.encode(&text, &subset, threads, &NEVER).as_ref(), Ok(&expected));
    }
}

#[test]
fn distant_and_unknown_ids() {
    let splitter = Splitter::new(NAMED[0].1).expect("a named pattern");
    let others = OtherTokens { special: vec![found("<s>", (1 << 24) - 1)], ..OtherTokens::default() };
    let encoder = Encoder::new(splitter, &ranked(&[]), others, &NEVER).expect("valid merges");
    assert_eq!(encoder.n_vocab(), 1 << 24);
    assert_eq!(encoder.tokens.spans.len(), 256);
    assert_eq!(encoder.decode(&[97, (1 << 24) - 1], &NEVER), Ok(b"a<s>".to_vec()));
    let error = encoder.decode(&[256], &NEVER).expect_err("an unknown id").to_string();
    assert_eq!(error, "there is no token 256; the largest id is 16777215");
}

#[test]
fn special_tokens_have_a_size_limit() {
    let splitter = Splitter::new(NAMED[0].1).expect("a named pattern");
    let others = |name: String| OtherTokens { special: vec![found(&name, 256)], ..OtherTokens::default() };
    let error = Encoder::new(splitter, &ranked(&[]), others("x".repeat(1 << 21)), &NEVER);
    let error = error.err().expect("too long").to_string();
    assert!(error.contains("the special tokens have 2097152 bytes in total; at most 1048576"), "{error}");

    // The longest token allowed. If its automaton were built in quadratic time, this test would not finish.
    let splitter = Splitter::new(NAMED[0].1).expect("a named pattern");
    let others = others("x".repeat(1 << 20));
    let encoder = Encoder::new(splitter, &ranked(&[]), others, &NEVER).expect("within the limit");
    let text = "x".repeat((1 << 20) + 2);
    assert_eq!(encoder.encode(&text, &allow_all(), 1, &NEVER), Ok(vec![256, 120, 120]));
}

/// Finds the longest phrase at each whole chunk. A chunk of no ids stands between chunks that do not touch.
fn phrases_simply(chunks: &[Vec<u32>], phrases: &[Phrase]) -> Vec<u32> {
    let (mut ids, mut at) = (Vec::new(), 0);
    while at < chunks.len() {
        let matches = |phrase: &&Phrase| {
            phrase.0.iter().enumerate().all(|(i, &id)| chunks.get(at + i).is_some_and(|chunk| chunk[..] == [id]))
        };
        match phrases.iter().filter(matches).max_by_key(|phrase| phrase.0.len()) {
            Some((parts, id)) => {
                ids.push(*id);
                at += parts.len();
            }
            None => {
                ids.extend(&chunks[at]);
                at += 1;
            }
        }
    }
    ids
}

proptest! {
    #[test]
    fn the_longest_phrase_is_taken(
        merges in merges(),
        text in "([a-d]{1,3}|[ ,\\n]){0,80}",
        phrases in vec(vec(prop_oneof![97..=100u32, 256..262u32], 2..5), 0..12),
        pattern in prop_oneof![Just(r" ?[a-d]+|\s|,"), Just("[a-d]|\n"), Just(NAMED[0].1), Just(NAMED[3].1)],
        threads in 1..4usize,
    ) {
        let last = 255 + merges.len() as u32;
        let mut phrases: Vec<Phrase> =
            phrases.into_iter().filter(|ids| ids.iter().all(|&id| id <= last)).zip(20_000..).collect();
        phrases.sort();
        phrases.dedup_by(|a, b| a.0 == b.0);
        let splitter = Splitter::new(pattern).expect("a valid pattern");
        let (mut chunks, mut end) = (Vec::new(), 0);
        splitter.split(&text, &NEVER, |chunk| {
            let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
            if start > end {
                chunks.push(Vec::new());
            }
            end = start + chunk.len();
            chunks.push(merge_simply(chunk.as_bytes(), &merges));
            Ok(())
        }).expect("nothing fails");
        let others = OtherTokens { phrases: phrases.clone(), ..OtherTokens::default() };
        let encoder = Encoder::new(splitter, &ranked(&merges), others, &NEVER).expect("valid ids");
        let expected = phrases_simply(&chunks, &phrases);
        for _ in 0..2 {
            let found = encoder.encode(&text, &allow_all(), threads, &NEVER).expect("nothing fails");
            prop_assert_eq!(&found, &expected);
        }
        let (alone, _) = encoder.encode_chunks(&[b"a"], 1, &NEVER).expect("nothing fails");
        prop_assert_eq!(alone, [97]);
    }
}

#[test]
fn every_job_can_be_cancelled() {
    let cancelled = Cancel::default();
    cancelled.cancel();
    let encoder = encoder("(?s).+", &[(97, 98, 256)], &[], &[]);
    let text = "abc".repeat(1_000_000);
    for threads in [1, 2] {
        assert_eq!(encoder.encode(&text, &allow_all(), threads, &cancelled), Err(Error::Cancelled));
        let encoded = encoder.encode_batch(&[text.as_str(); 3], &allow_all(), threads, &cancelled);
        assert_eq!(encoded.err(), Some(Error::Cancelled));
        let encoded = encoder.encode_chunks(&[text.as_bytes(); 3], threads, &cancelled);
        assert_eq!(encoded.err(), Some(Error::Cancelled));
    }
    assert_eq!(encoder.decode(&[97; 3_000_000], &cancelled), Err(Error::Cancelled));
}
