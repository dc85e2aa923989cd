//! Counting chunks: texts in, `chunk → count` out, in parallel.
//!
//! Each thread fills a table of its own and the tables are added at the end, so counts depend neither on
//! the number of threads nor on the order of the texts. Large texts are cut where the pattern surely breaks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use aho_corasick::AhoCorasick;

use crate::chunk_map::{ChunkMap, Pending};
use crate::error::{Error, Result};
use crate::special::special_matcher;
use crate::split::Splitter;

/// How much text a thread takes at once: enough to make taking cheap, little enough to share evenly.
const PIECE: usize = 1 << 18;

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
    tables: Vec<Mutex<ChunkMap>>,
    dropped: AtomicUsize,
}

impl ChunkTable {
    pub fn new(splitter: Splitter, special_tokens: &[String], threads: usize) -> Result<Self> {
        Ok(Self {
            splitter,
            special: special_matcher(special_tokens)?,
            tables: (0..threads).map(|_| Mutex::default()).collect(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// Bytes that matched neither the pattern nor a special token: none for the named patterns.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    pub fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    /// Whether a text may be cut into parts at `Splitter::cut_before`: a special token with a newline in it
    /// could lie across such a cut.
    pub fn cuts_text(&self) -> bool {
        self.special.is_none()
    }

    pub fn add_texts(&self, texts: &[&str], cancel: &AtomicBool) -> Result<()> {
        let pieces = self.pieces(texts);
        let threads = self.tables.len().min(pieces.len());
        let next = AtomicUsize::new(0);
        let work = |table: &Mutex<ChunkMap>| -> Result<()> {
            let mut table = table.lock().expect("a panic has been reported already");
            while let Some(piece) = pieces.get(next.fetch_add(1, Relaxed)) {
                for text in piece {
                    if cancel.load(Relaxed) {
                        return Err(Error::Cancelled);
                    }
                    self.count(text, &mut table)?;
                }
            }
            Ok(())
        };
        if threads <= 1 {
            return work(&self.tables[0]);
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = self.tables[..threads].iter().map(|table| scope.spawn(|| work(table))).collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic in counting")).collect()
        })
    }

    /// Adds counts made before.
    pub fn add_counts<'a>(&self, chunks: impl Iterator<Item = (&'a [u8], u64)>) -> Result<()> {
        let mut table = self.tables[0].lock().expect("a panic has been reported already");
        for (chunk, count) in chunks {
            add(&mut table, chunk, count)?;
        }
        Ok(())
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
                if end - start > 2 * PIECE && self.cuts_text() {
                    let at = text.floor_char_boundary(start + PIECE);
                    end = self.splitter.cut_before(text, start, at).unwrap_or(end);
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

    fn count(&self, text: &str, table: &mut ChunkMap) -> Result<()> {
        let mut count = |text: &str| -> Result<()> {
            let mut pending = Pending::new(text);
            let dropped = self.splitter.split(text, |chunk| {
                if pending.add(chunk, table) {
                    count_all(table, &mut pending);
                }
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
    pub fn finish(self) -> Result<Counted> {
        let mut tables: Vec<ChunkMap> =
            self.tables.into_iter().map(|table| table.into_inner().expect("no panic in counting")).collect();
        tables.sort_by_key(ChunkMap::len);
        let mut table = tables.pop().unwrap_or_default();
        for other in tables {
            let mut result = Ok(());
            other.for_each(|chunk, count| {
                if result.is_ok() {
                    result = add(&mut table, chunk, count);
                }
            });
            result?;
        }
        Ok(in_order(&table))
    }
}

#[inline]
fn count_all(table: &mut ChunkMap, pending: &mut Pending) {
    for &(key, chunk) in pending.take() {
        *table.entry_key(chunk, key) += 1;
    }
}

fn add(table: &mut ChunkMap, chunk: &[u8], count: u64) -> Result<()> {
    let sum = table.entry(chunk);
    *sum = sum.checked_add(count).ok_or_else(|| {
        let chunk = String::from_utf8_lossy(chunk);
        Error::invalid(format!("the counts of chunk {chunk:?} add up to more than 64 bits hold; scale them down"))
    })?;
    Ok(())
}

fn in_order(table: &ChunkMap) -> Counted {
    struct Row {
        count: u64,
        /// The first eight bytes, which decide nearly every comparison without looking at the chunk.
        prefix: u64,
        start: usize,
        len: usize,
    }
    let mut rows = Vec::with_capacity(table.len());
    let mut unordered = Vec::new();
    table.for_each(|chunk, count| {
        let mut prefix = [0; 8];
        let n = chunk.len().min(8);
        prefix[..n].copy_from_slice(&chunk[..n]);
        rows.push(Row { count, prefix: u64::from_be_bytes(prefix), start: unordered.len(), len: chunk.len() });
        unordered.extend_from_slice(chunk);
    });
    let chunk = |row: &Row| &unordered[row.start..row.start + row.len];
    rows.sort_unstable_by(|a, b| {
        (b.count.cmp(&a.count)).then(a.prefix.cmp(&b.prefix)).then_with(|| chunk(a).cmp(chunk(b)))
    });
    let mut counted = Counted {
        data: Vec::with_capacity(unordered.len()),
        offsets: Vec::with_capacity(rows.len() + 1),
        counts: Vec::with_capacity(rows.len()),
    };
    counted.offsets.push(0);
    for row in &rows {
        counted.data.extend_from_slice(chunk(row));
        counted.offsets.push(counted.data.len() as i64);
        counted.counts.push(row.count);
    }
    counted
}
