//! Chunks in order: commonest first, then by their bytes, which makes equal counts equal files.

use std::cmp::Ordering;
use std::iter::StepBy;
use std::ops::Range;

use super::too_many;
use crate::chunk_map::{AHEAD, ChunkMap, Entry, Sortable};
use crate::error::{Cancel, Result, check_memory};
use crate::parallel;

/// About so many chunks are sorted at once, those between two bounds, for which so many samples are taken.
pub const RANGE: usize = if cfg!(test) { 1 << 7 } else { 1 << 14 };
const SAMPLES: usize = 1 << 5;

/// Unique chunks, commonest first and then in byte order: the same for the same counts, always.
pub struct Counted {
    /// All chunks, one after the other.
    pub data: Vec<u8>,
    /// Where each chunk begins in `data`, and last where the last one ends.
    pub offsets: Vec<i64>,
    pub counts: Vec<u64>,
}

/// A chunk as it is sorted. A short one is here whole: only for a long one, and another that begins as it does, a table is
/// looked into, which is too large for any cache.
#[derive(Clone, Copy)]
struct Row {
    bytes: Sortable,
    count: u64,
    /// Which table the chunk is in, and where, if it is a long one.
    place: u64,
}

impl Row {
    /// Whether it comes before the other, or both are long and begin alike. Without a jump, as nobody can tell which way.
    #[inline(always)]
    fn not_after(&self, other: &Self) -> bool {
        (self.count > other.count) | ((self.count == other.count) & (self.bytes <= other.bytes))
    }
}

const TABLE: u32 = 48;

fn long<'a>(tables: &'a [ChunkMap], row: &Row) -> &'a [u8] {
    tables[(row.place >> TABLE) as usize].long(row.place & ((1 << TABLE) - 1))
}

/// Calls `visit` with the chunks in some slots of a table, as often as they are in all tables together, but not with those
/// that are in an earlier table: so each chunk has its row once.
fn each_row(
    tables: &[ChunkMap],
    table: usize,
    slots: StepBy<Range<usize>>,
    cancel: &Cancel,
    mut visit: impl FnMut(Row),
) -> Result<()> {
    let mut entries = tables[table].entries(slots);
    let mut block: Vec<(Entry, u64)> = Vec::with_capacity(AHEAD);
    loop {
        cancel.check()?;
        block.extend(entries.by_ref().take(AHEAD).map(|entry| (entry, entry.value())));
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
                *sum = sum.checked_add(count).ok_or_else(|| too_many(entry.chunk()))?;
            }
        }
        for (entry, count) in block.drain(..) {
            visit(Row { bytes: entry.sortable(), count, place: (table as u64) << TABLE | entry.place() });
        }
    }
}

/// Adds the tables up and sorts range by range, so that threads can share them and nobody waits long for a sort that was
/// cancelled.
pub fn in_order(tables: &[ChunkMap], threads: usize, cancel: &Cancel) -> Result<Counted> {
    let by_order = |a: &Row, b: &Row| {
        let among_long =
            || if a.bytes.short().is_some() { Ordering::Equal } else { long(tables, a).cmp(long(tables, b)) };
        b.count.cmp(&a.count).then(a.bytes.cmp(&b.bytes)).then_with(among_long)
    };
    // What follows allocates in many small parts: a row for each chunk in its range and once more while that is sorted,
    // and all chunks and counts twice.
    let chunks: usize = tables.iter().map(ChunkMap::len).sum();
    check_memory(chunks.saturating_mul(size_of::<Row>() + 48))?;
    let mut sample = Vec::new();
    for (table, slots) in tables.iter().map(ChunkMap::slots).enumerate() {
        each_row(tables, table, (0..slots).step_by(RANGE / SAMPLES), cancel, |row| sample.push(row))?;
    }
    sample.sort_unstable_by(by_order);
    let bounds: Vec<Row> = sample.into_iter().skip(SAMPLES).step_by(SAMPLES).collect();

    let part = |table: usize, nth: usize| tables[table].slots() * nth / threads;
    let parts: Vec<(usize, Range<usize>)> = (0..tables.len())
        .flat_map(|table| (0..threads).map(move |nth| (table, part(table, nth)..part(table, nth + 1))))
        .collect();
    let shared = parallel::map(
        &parts,
        threads,
        || (),
        |(), (table, slots)| {
            let mut ranges = vec![Vec::new(); bounds.len() + 1];
            each_row(tables, *table, slots.clone().step_by(1), cancel, |row| {
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
            let mut rows: Vec<Row> = shared.iter().flat_map(|ranges| &ranges[range]).copied().collect();
            rows.sort_unstable_by(by_order);
            let mut data = Vec::with_capacity(16 * rows.len());
            let mut ends = Vec::with_capacity(rows.len());
            for row in &rows {
                match row.bytes.short() {
                    Some((bytes, len)) => data.extend_from_slice(&bytes[..len]),
                    None => data.extend_from_slice(long(tables, row)),
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
    Ok(Counted { data: parallel::concat(&data, threads)?, offsets, counts: parallel::concat(&counts, threads)? })
}
