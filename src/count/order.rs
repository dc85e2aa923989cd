//! Sums the threads' tables and sorts the chunks: most frequent first, then by their bytes. The order is total, so
//! equal counts always produce equal files.

use std::cmp::Ordering;
use std::iter::StepBy;
use std::ops::Range;

use super::count_overflow;
use crate::error::{Cancel, Result, check_memory};
use crate::parallel;
use crate::split::LOOKUP_GROUP;
use crate::table::chunk_map::{ChunkMap, Entry, Sortable};

/// The approximate number of chunks in a range, which is sorted as a unit.
const RANGE_ROWS: usize = if cfg!(test) { 1 << 7 } else { 1 << 14 };
/// The number of sampled chunks per range, from which the bounds of the ranges are chosen.
const SAMPLES_PER_RANGE: usize = 1 << 5;

/// Unique chunks and their counts.
pub struct Counted {
    /// All chunks, concatenated.
    pub data: Vec<u8>,
    /// Where each chunk starts in `data`, followed by the end of the last chunk.
    pub offsets: Vec<i64>,
    pub counts: Vec<u64>,
}

/// A chunk in the form in which it is sorted. A short chunk is included in full. The bytes of a long chunk are looked
/// up in its table only to settle a tie, since tables are too large for the processor's caches.
#[derive(Clone, Copy)]
struct Row {
    bytes: Sortable,
    count: u64,
    /// For a long chunk: the index of its table above `TABLE_SHIFT` bits, and its offset in that table's arena below.
    location: u64,
}

impl Row {
    /// Returns whether this row sorts before `other` or ties with it, going by `count` and `bytes` only. Written
    /// without branches, since they would be unpredictable.
    #[inline(always)]
    fn not_after(&self, other: &Self) -> bool {
        (self.count > other.count) | ((self.count == other.count) & (self.bytes <= other.bytes))
    }
}

const TABLE_SHIFT: u32 = 48;

fn long_chunk<'a>(tables: &'a [ChunkMap], row: &Row) -> &'a [u8] {
    tables[(row.location >> TABLE_SHIFT) as usize].long_chunk(row.location & ((1 << TABLE_SHIFT) - 1))
}

/// Calls `visit` with a row for each chunk in `slots` of a table, with its count summed over all tables. Chunks that
/// are also in an earlier table are left out, so that each chunk gets exactly one row.
fn for_each_row(
    tables: &[ChunkMap],
    table: usize,
    slots: StepBy<Range<usize>>,
    cancel: &Cancel,
    mut visit: impl FnMut(Row),
) -> Result<()> {
    let mut entries = tables[table].entries(slots);
    let mut block: Vec<(Entry, u64)> = Vec::with_capacity(LOOKUP_GROUP);
    loop {
        cancel.check()?;
        block.extend(entries.by_ref().take(LOOKUP_GROUP).map(|entry| (entry, entry.value())));
        if block.is_empty() {
            return Ok(());
        }
        for (other, counts) in tables.iter().enumerate().filter(|(other, _)| *other != table) {
            block.iter().for_each(|(entry, _)| counts.prefetch(entry.key()));
            if other < table {
                block.retain(|(entry, _)| counts.get_entry(*entry).is_none());
                continue;
            }
            for (entry, sum) in &mut block {
                let count = counts.get_entry(*entry).unwrap_or(0);
                *sum = sum.checked_add(count).ok_or_else(|| count_overflow(entry.chunk()))?;
            }
        }
        for (entry, count) in block.drain(..) {
            let location = (table as u64) << TABLE_SHIFT | entry.arena_offset();
            visit(Row { bytes: entry.sortable(), count, location });
        }
    }
}

/// Sums the tables and sorts their chunks.
///
/// The rows are first distributed over ranges between sampled bounds, and then each range is sorted by itself. So
/// threads can share the work, and cancellation takes effect between two ranges.
pub fn sum_and_sort(tables: &[ChunkMap], threads: usize, cancel: &Cancel) -> Result<Counted> {
    let by_order = |a: &Row, b: &Row| {
        let long_order = || match a.bytes.short() {
            Some(_) => Ordering::Equal,
            None => long_chunk(tables, a).cmp(long_chunk(tables, b)),
        };
        b.count.cmp(&a.count).then(a.bytes.cmp(&b.bytes)).then_with(long_order)
    };
    // The code below allocates in many small parts: for each chunk a row in its range, another one while the range is
    // sorted, and two copies of the chunk and its count.
    let chunks: usize = tables.iter().map(ChunkMap::len).sum();
    check_memory(chunks.saturating_mul(size_of::<Row>() + 48))?;
    let threads = if chunks <= RANGE_ROWS { 1 } else { threads };
    let mut sample = Vec::new();
    for (table, slots) in tables.iter().map(ChunkMap::slots).enumerate() {
        let every_nth = (0..slots).step_by(RANGE_ROWS / SAMPLES_PER_RANGE);
        for_each_row(tables, table, every_nth, cancel, |row| sample.push(row))?;
    }
    sample.sort_unstable_by(by_order);
    let bounds: Vec<Row> = sample.into_iter().skip(SAMPLES_PER_RANGE).step_by(SAMPLES_PER_RANGE).collect();

    let part = |table: usize, nth: usize| tables[table].slots() * nth / threads;
    let parts: Vec<(usize, Range<usize>)> = (0..tables.len())
        .flat_map(|table| (0..threads).map(move |nth| (table, part(table, nth)..part(table, nth + 1))))
        .collect();
    let distributed = parallel::map(
        &parts,
        threads,
        || (),
        |(), (table, slots)| {
            let mut ranges = vec![Vec::new(); bounds.len() + 1];
            for_each_row(tables, *table, slots.clone().step_by(1), cancel, |row| {
                ranges[bounds.partition_point(|bound| bound.not_after(&row))].push(row);
            })?;
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
            let mut rows: Vec<Row> = distributed.iter().flat_map(|ranges| &ranges[range]).copied().collect();
            rows.sort_unstable_by(by_order);
            let mut data = Vec::with_capacity(16 * rows.len());
            let mut ends = Vec::with_capacity(rows.len());
            for row in &rows {
                match row.bytes.short() {
                    Some((bytes, len)) => data.extend_from_slice(&bytes[..len]),
                    None => data.extend_from_slice(long_chunk(tables, row)),
                }
                ends.push(data.len() as i64);
            }
            Ok((data, (ends, rows.iter().map(|row| row.count).collect())))
        },
    )?;

    let (data, (ends, counts)): (Vec<_>, (Vec<_>, Vec<_>)) = sorted.into_iter().unzip();
    let mut offsets = Vec::with_capacity(1 + counts.iter().map(Vec::len).sum::<usize>());
    let mut start = 0;
    offsets.push(start);
    for ends in ends {
        offsets.extend(ends.iter().map(|end| start + end));
        start = offsets[offsets.len() - 1];
    }
    Ok(Counted { data: parallel::concat(data, threads)?, offsets, counts: parallel::concat(counts, threads)? })
}
