//! Chunks in order: commonest first, then by their bytes, which makes equal counts equal files.

use std::cmp::Ordering;

use crate::chunk_map::ChunkMap;
use crate::error::{Cancel, Result};
use crate::parallel;

/// About so many chunks are sorted at once, those between two bounds, for which so many samples are taken.
pub const RANGE: usize = 1 << 14;
const SAMPLES: usize = 1 << 5;

/// Unique chunks, commonest first and then in byte order: the same for the same counts, always.
pub struct Counted {
    /// All chunks, one after the other.
    pub data: Vec<u8>,
    /// Where each chunk begins in `data`, and last where the last one ends.
    pub offsets: Vec<i64>,
    pub counts: Vec<u64>,
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
pub fn in_order(tables: &[ChunkMap], threads: usize, cancel: &Cancel) -> Result<Counted> {
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
