//! Counting chunks: texts in, `chunk → count` out, in parallel.
//!
//! Each thread fills a table of its own and the tables are added at the end, so counts depend neither on
//! the number of threads nor on the order of the texts. Large texts are cut where the pattern surely breaks.

use std::cmp::Ordering;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aho_corasick::AhoCorasick;

use crate::chunk_map::{ChunkMap, Pending};
use crate::error::{Cancel, Error, Result};
use crate::parallel;
use crate::special::special_matcher;
use crate::split::Splitter;

/// How much text a thread takes at once: enough to make taking cheap, little enough to share evenly.
const PIECE: usize = 1 << 16;
/// About so many chunks are sorted at once, those between two bounds, for which so many samples are taken.
const RANGE: usize = 1 << 14;
const SAMPLES: usize = 1 << 5;

/// Unique chunks, commonest first and then in byte order: the same for the same counts, always.
pub struct Counted {
    /// All chunks, one after the other.
    pub data: Vec<u8>,
    /// Where each chunk begins in `data`, and last where the last one ends.
    pub offsets: Vec<i64>,
    pub counts: Vec<u64>,
}

pub struct ChunkTable {
    splitter: Splitter,
    special: Option<AhoCorasick>,
    newline_in_special: bool,
    tables: Vec<Mutex<ChunkMap>>,
    dropped: AtomicUsize,
}

impl ChunkTable {
    pub fn new(splitter: Splitter, special_tokens: &[String], threads: usize) -> Result<Self> {
        Ok(Self {
            splitter,
            special: special_matcher(special_tokens)?,
            newline_in_special: special_tokens.iter().any(|token| token.contains('\n')),
            tables: (0..threads).map(|_| Mutex::default()).collect(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// Bytes that matched neither the pattern nor a special token: none for the named patterns.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    pub fn threads(&self) -> usize {
        self.tables.len()
    }

    pub fn work(&self, size: usize) -> usize {
        self.splitter.work(size)
    }

    /// The last place up to `at` where `text` may be cut without a change to its chunks, if there is one. A special
    /// token with a newline in it could lie across such a place.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        if self.newline_in_special { None } else { self.splitter.cut_before(text, from, at) }
    }

    pub fn add_texts(&self, texts: &[&str], cancel: &Cancel) -> Result<()> {
        let pieces = self.pieces(texts);
        let threads = self.tables.len().min(pieces.len());
        let next = AtomicUsize::new(0);
        let work = |table: &Mutex<ChunkMap>| -> Result<()> {
            let mut table = table.lock().expect("a panic has been reported already");
            while let Some(piece) = pieces.get(next.fetch_add(1, Relaxed)) {
                for text in piece {
                    cancel.check()?;
                    self.count(text, &mut table, cancel)?;
                }
            }
            Ok(())
        };
        if threads <= 1 {
            return work(&self.tables[0]);
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = self.tables[..threads].iter().map(|table| scope.spawn(|| work(table))).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no panic in counting"))
        })
    }

    /// Adds counts made before.
    pub fn add_counts<'a>(
        &self,
        chunks: impl ExactSizeIterator<Item = (&'a [u8], u64)>,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut table = self.tables[0].lock().expect("a panic has been reported already");
        table.reserve(chunks.len());
        add_all(&mut table, chunks, cancel)
    }

    /// The texts in groups of about `PIECE` bytes, the large ones cut.
    fn pieces<'t>(&self, texts: &[&'t str]) -> Vec<Vec<&'t str>> {
        let mut pieces = Vec::new();
        let mut group = Vec::new();
        let mut size = 0;
        for &text in texts {
            let mut start = 0;
            while start < text.len() {
                let mut end = text.len();
                if end - start > 2 * PIECE {
                    let at = text.floor_char_boundary(start + PIECE);
                    end = self.cut_before(text, start, at).unwrap_or(end);
                }
                group.push(&text[start..end]);
                size += end - start;
                start = end;
                if size >= PIECE {
                    pieces.push(std::mem::take(&mut group));
                    size = 0;
                }
            }
        }
        if !group.is_empty() {
            pieces.push(group);
        }
        pieces
    }

    fn count(&self, text: &str, table: &mut ChunkMap, cancel: &Cancel) -> Result<()> {
        let mut count = |text: &str| -> Result<()> {
            let mut pending = Pending::new(text.as_bytes());
            let dropped = self.splitter.split(text, |chunk| {
                if pending.add(chunk.as_bytes()) {
                    count_all(table, &mut pending);
                    cancel.check()?;
                }
                Ok(())
            })?;
            count_all(table, &mut pending);
            self.dropped.fetch_add(dropped, Relaxed);
            Ok(())
        };
        let mut start = 0;
        if let Some(special) = &self.special {
            for found in special.find_iter(text) {
                count(&text[start..found.start()])?;
                start = found.end();
            }
        }
        count(&text[start..])
    }

    /// Adds the threads' tables up and puts the chunks in order.
    pub fn finish(self, cancel: &Cancel) -> Result<Counted> {
        let threads = self.tables.len();
        let tables: Vec<ChunkMap> =
            self.tables.into_iter().map(|table| table.into_inner().expect("no panic in counting")).collect();
        // A chunk that is in several tables is in the same share of each.
        let shares = if threads == 1 {
            tables
        } else {
            let shares: Vec<u64> = (0..threads as u64).collect();
            parallel::map(
                &shares,
                threads,
                || (),
                |(), &share| {
                    let largest = tables.iter().map(ChunkMap::len).max().unwrap_or(0);
                    let mut sum = ChunkMap::with_capacity(largest / threads);
                    for table in &tables {
                        add_all(&mut sum, table.share(share, threads as u64), cancel)?;
                    }
                    Ok(sum)
                },
            )?
        };
        in_order(&shares, threads, cancel)
    }
}

#[inline(never)]
fn count_all(table: &mut ChunkMap, pending: &mut Pending) {
    for (key, chunk) in pending.take(table) {
        *table.entry_key(chunk, key) += 1;
    }
}

fn add_all<'a>(table: &mut ChunkMap, chunks: impl Iterator<Item = (&'a [u8], u64)>, cancel: &Cancel) -> Result<()> {
    let mut pending = Pending::new(&[]);
    let mut counts = Vec::new();
    let mut chunks = chunks.peekable();
    while let Some((chunk, count)) = chunks.next() {
        counts.push(count);
        if pending.add(chunk) || chunks.peek().is_none() {
            cancel.check()?;
            for ((key, chunk), count) in pending.take(table).zip(counts.drain(..)) {
                let sum = table.entry_key(chunk, key);
                *sum = sum.checked_add(count).ok_or_else(|| too_many(chunk))?;
            }
        }
    }
    Ok(())
}

fn too_many(chunk: &[u8]) -> Error {
    let chunk = String::from_utf8_lossy(chunk);
    Error::invalid(format!("the counts of chunk {chunk:?} add up to more than 64 bits hold; scale them down"))
}

/// A chunk as it is sorted: commonest first, then in byte order, which the first eight bytes nearly always decide.
#[derive(Clone, Copy)]
struct Row<'a> {
    chunk: &'a [u8],
    count: u64,
    prefix: u64,
}

impl<'a> Row<'a> {
    fn new((chunk, count): (&'a [u8], u64)) -> Self {
        let mut prefix = [0; 8];
        let n = chunk.len().min(8);
        prefix[..n].copy_from_slice(&chunk[..n]);
        Self { chunk, count, prefix: u64::from_be_bytes(prefix) }
    }

    /// As one number, which is compared without a jump.
    fn number(&self) -> u128 {
        u128::from(!self.count) << 64 | u128::from(self.prefix)
    }

    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number()).then_with(|| self.chunk.cmp(other.chunk))
    }
}

/// Sorts range by range, so that threads can share them and nobody waits long for a sort that was cancelled.
fn in_order(tables: &[ChunkMap], threads: usize, cancel: &Cancel) -> Result<Counted> {
    let mut sample: Vec<Row> = tables.iter().flat_map(|table| table.sample(RANGE / SAMPLES)).map(Row::new).collect();
    sample.sort_unstable_by(Row::cmp);
    let bounds: Vec<Row> = sample.into_iter().skip(SAMPLES).step_by(SAMPLES).collect();
    let shared = parallel::map(
        tables,
        threads,
        || (),
        |(), table| {
            let mut ranges = vec![Vec::new(); bounds.len() + 1];
            for row in table.iter().map(Row::new) {
                cancel.check()?;
                ranges[bounds.partition_point(|bound| bound.cmp(&row).is_le())].push(row);
            }
            Ok(ranges)
        },
    )?;
    let ranges: Vec<usize> = (0..=bounds.len()).collect();
    let sorted = parallel::map(
        &ranges,
        threads,
        || (),
        |(), &range| {
            cancel.check()?;
            let mut rows: Vec<Row> = shared.iter().flat_map(|ranges| &ranges[range]).copied().collect();
            rows.sort_unstable_by(Row::cmp);
            let chunks: Vec<&[u8]> = rows.iter().map(|row| row.chunk).collect();
            Ok((chunks.concat(), rows.iter().map(|row| (row.chunk.len(), row.count)).collect::<Vec<_>>()))
        },
    )?;

    let size = tables.iter().map(ChunkMap::len).sum();
    let mut counted =
        Counted { data: Vec::new(), offsets: Vec::with_capacity(size + 1), counts: Vec::with_capacity(size) };
    counted.data.reserve_exact(sorted.iter().map(|(data, _)| data.len()).sum());
    let mut end = 0;
    counted.offsets.push(0);
    for (data, rows) in sorted {
        counted.data.extend_from_slice(&data);
        for (len, count) in rows {
            end += len as i64;
            counted.offsets.push(end);
            counted.counts.push(count);
        }
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_order_from_any_number_of_threads() {
        // More than a range of them; counts and long prefixes in common; one chunk the beginning of another.
        let word = |i: usize| format!(" {}{}", "prefixes".repeat(i % 3), "x".repeat(i % 7) + &i.to_string());
        let texts: Vec<String> = (0..3 * RANGE).map(|i| word(i).repeat(1 + i % 2)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut expected = std::collections::BTreeMap::new();
        let splitter = || Splitter::new(crate::split::NAMED[1].1).expect("a named pattern");
        for text in &texts {
            let chunk = |chunk| {
                *expected.entry(chunk).or_insert(0) += 1;
                Ok(())
            };
            splitter().split(text, chunk).expect("nothing fails");
        }
        let mut expected: Vec<(&str, u64)> = expected.into_iter().collect();
        expected.sort_by_key(|row| std::cmp::Reverse(row.1));
        for threads in [1, 3] {
            let table = ChunkTable::new(splitter(), &[], threads).expect("no special tokens");
            table.add_texts(&texts, &Cancel::default()).expect("nothing fails");
            let counted = table.finish(&Cancel::default()).expect("nothing fails");
            let span = |i: usize| counted.offsets[i] as usize..counted.offsets[i + 1] as usize;
            let chunk = |i: usize| std::str::from_utf8(&counted.data[span(i)]).expect("text");
            let found: Vec<_> = counted.counts.iter().enumerate().map(|(i, &count)| (chunk(i), count)).collect();
            assert!(found == expected, "with {threads} threads");
        }
    }
}
