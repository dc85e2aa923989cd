//! Counting chunks: texts in, `chunk → count` out, in parallel.
//!
//! Each thread fills a table of its own and the tables are added at the end, so counts depend neither on
//! the number of threads nor on the order of the texts. Large texts are cut where the pattern surely breaks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aho_corasick::AhoCorasick;

use crate::chunk_map::{ChunkMap, Pending};
use crate::error::{Cancel, Error, Result};
use crate::parallel;
use crate::special::special_matcher;
use crate::split::Splitter;

/// How much text a thread takes at once: enough to make taking cheap, little enough to share evenly.
const PIECE: usize = 1 << 18;
/// How many chunks are sorted at once.
const RUN: usize = 1 << 18;

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
    pub fn add_counts<'a>(&self, mut chunks: impl Iterator<Item = (&'a [u8], u64)>, cancel: &Cancel) -> Result<()> {
        let mut table = self.tables[0].lock().expect("a panic has been reported already");
        chunks.try_for_each(|(chunk, count)| add(&mut table, chunk, count, cancel))
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
            let mut pending = Pending::new(text);
            let dropped = self.splitter.split(text, |chunk| {
                if pending.add(chunk, table) {
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
                    let mut sum =
                        ChunkMap::with_capacity(tables.iter().map(ChunkMap::len).max().unwrap_or(0) / threads);
                    for table in &tables {
                        table.for_each_in(share, threads as u64, |chunk, count| add(&mut sum, chunk, count, cancel))?;
                    }
                    Ok(sum)
                },
            )?
        };
        in_order(&shares, threads, cancel)
    }
}

#[inline]
fn count_all(table: &mut ChunkMap, pending: &mut Pending) {
    for &(key, chunk) in pending.take() {
        *table.entry_key(chunk, key) += 1;
    }
}

fn add(table: &mut ChunkMap, chunk: &[u8], count: u64, cancel: &Cancel) -> Result<()> {
    cancel.check()?;
    let sum = table.entry(chunk);
    *sum = sum.checked_add(count).ok_or_else(|| {
        let chunk = String::from_utf8_lossy(chunk);
        Error::invalid(format!("the counts of chunk {chunk:?} add up to more than 64 bits hold; scale them down"))
    })?;
    Ok(())
}

/// A chunk as it is sorted: by count, then by its first eight bytes, which decide nearly every comparison.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row<'a> {
    count: Reverse<u64>,
    prefix: u64,
    chunk: &'a [u8],
}

fn in_order(tables: &[ChunkMap], threads: usize, cancel: &Cancel) -> Result<Counted> {
    let mut unordered = Vec::new();
    let mut places = Vec::with_capacity(tables.iter().map(ChunkMap::len).sum());
    for table in tables {
        table.for_each(|chunk, count| {
            places.push((count, unordered.len()));
            unordered.extend_from_slice(chunk);
            Ok(())
        })?;
    }
    let ends = places.iter().skip(1).map(|place| place.1).chain([unordered.len()]);
    let mut rows: Vec<Row> = places
        .iter()
        .zip(ends)
        .map(|(&(count, start), end)| {
            let chunk = &unordered[start..end];
            let mut prefix = [0; 8];
            let n = chunk.len().min(8);
            prefix[..n].copy_from_slice(&chunk[..n]);
            Row { count: Reverse(count), prefix: u64::from_be_bytes(prefix), chunk }
        })
        .collect();
    // In runs, so that threads can share them and nobody waits long for a sort that was cancelled.
    let runs: Vec<_> = rows.chunks_mut(RUN).map(Mutex::new).collect();
    parallel::map(
        &runs,
        threads,
        || (),
        |(), run| {
            cancel.check()?;
            run.lock().expect("no panic in sorting").sort_unstable();
            Ok(())
        },
    )?;
    let mut runs: Vec<_> = rows.chunks(RUN).map(<[Row]>::iter).collect();
    let mut heads: BinaryHeap<_> =
        runs.iter_mut().enumerate().filter_map(|(i, run)| run.next().map(|row| Reverse((row, i)))).collect();
    let mut counted = Counted {
        data: Vec::with_capacity(unordered.len()),
        offsets: Vec::with_capacity(rows.len() + 1),
        counts: Vec::with_capacity(rows.len()),
    };
    counted.offsets.push(0);
    while let Some(mut head) = heads.peek_mut() {
        cancel.check()?;
        let Reverse((row, run)) = *head;
        counted.data.extend_from_slice(row.chunk);
        counted.offsets.push(counted.data.len() as i64);
        counted.counts.push(row.count.0);
        match runs[run].next() {
            Some(row) => *head = Reverse((row, run)),
            None => drop(PeekMut::pop(head)),
        }
    }
    Ok(counted)
}
