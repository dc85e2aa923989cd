//! Reads chunk counts in the CSV format of the paper's program: a header, one row per chunk with its count, and a final
//! row with the pattern and the count 0.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use crate::count::Counted;
use crate::error::{Cancel, Error, Result, check_memory, quoted, try_push, try_reserve};

const HEADERS: [[&[u8]; 2]; 2] = [[b"text_chunk", b"count"], [b"str", b"int"]];

/// Returns the counts, in the order of the file, and the pattern. `size` is the size of the file.
pub fn read(input: impl Read, size: usize, cancel: &Cancel) -> Result<(Counted, String)> {
    // The reader aborts the process if it cannot allocate a row, and a row may be the whole file. Its buffer doubles.
    check_memory(size.saturating_mul(3))?;
    let broken = |error: csv::Error| Error::invalid(format!("cannot be read as CSV: {error}"));
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = ByteRecord::new();
    reader.read_byte_record(&mut record).map_err(broken)?;
    if !HEADERS.iter().any(|header| record.iter().eq(header.iter().copied())) {
        let found: Vec<_> = record.iter().map(String::from_utf8_lossy).collect();
        let found = quoted(&found.join(","));
        return Err(Error::invalid(format!("expected the header text_chunk,count or str,int, got {found}")));
    }
    let mut counted = Counted { data: Vec::new(), offsets: vec![0], counts: Vec::new() };
    let mut pattern: Option<String> = None;
    while reader.read_byte_record(&mut record).map_err(broken)? {
        cancel.check()?;
        let line = record.position().map_or(0, csv::Position::line);
        let at_line = |problem: String| Error::invalid(format!("line {line}: {problem}"));
        let lossy = |field: &[u8]| quoted(&String::from_utf8_lossy(field));
        if let Some(pattern) = &pattern {
            let pattern = quoted(pattern);
            return Err(at_line(format!("unexpected row after the final one (pattern {pattern}, count 0)")));
        }
        let (Some(chunk), Some(count), 2) = (record.get(0), record.get(1), record.len()) else {
            return Err(at_line(format!("expected 2 fields (chunk and count), got {}", record.len())));
        };
        // `parse` alone would accept a plus sign.
        let digits = std::str::from_utf8(count).ok().filter(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = digits.and_then(|count| count.parse::<u64>().ok()) else {
            return Err(at_line(format!("the count must be an integer from 0 to 2**64 - 1, got {}", lossy(count))));
        };
        let chunk_text = std::str::from_utf8(chunk)
            .map_err(|_| at_line(format!("the chunk {} is invalid UTF-8; save the counts as parquet", lossy(chunk))))?;
        if number == 0 {
            pattern = Some(chunk_text.to_owned());
            continue;
        }
        try_reserve(&mut counted.data, chunk.len())?;
        counted.data.extend_from_slice(chunk);
        try_push(&mut counted.offsets, counted.data.len() as i64)?;
        try_push(&mut counted.counts, number)?;
    }
    let truncated = || {
        Error::invalid(
            "the file is truncated: its last row must be the pattern with the count 0; \
             add that row if the file is complete",
        )
    };
    Ok((counted, pattern.ok_or_else(truncated)?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::NEVER;

    proptest! {
        #[test]
        fn reads_what_the_csv_crate_writes(rows in vec((".{0,9}", 1..u64::MAX), 0..20), pattern in ".{1,9}") {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            writer.write_record(["text_chunk", "count"]).expect("enough memory");
            for (chunk, count) in &rows {
                writer.write_record([chunk, &count.to_string()]).expect("enough memory");
            }
            writer.write_record([&pattern, "0"]).expect("enough memory");
            let content = writer.into_inner().expect("enough memory");
            let (counted, found) = read(&content[..], content.len(), &NEVER).expect("it is valid");
            prop_assert_eq!(found, pattern);
            prop_assert_eq!(counted.counts, rows.iter().map(|row| row.1).collect::<Vec<_>>());
            let chunks: String = rows.iter().map(|row| &row.0[..]).collect();
            prop_assert_eq!(counted.data, chunks.into_bytes());
            prop_assert_eq!(counted.offsets.len(), rows.len() + 1);
        }

        /// Arbitrary bytes never cause a panic.
        #[test]
        fn arbitrary_bytes_are_read_or_rejected(mut content in vec(any::<u8>(), 0..200), with_header: bool) {
            if with_header {
                content.splice(0..0, b"str,int\n".iter().copied());
            }
            if let Ok((counted, _)) = read(&content[..], content.len(), &NEVER) {
                prop_assert!(counted.counts.iter().all(|&count| count > 0));
                prop_assert_eq!(counted.data.len() as i64, counted.offsets[counted.counts.len()]);
            }
        }
    }
}
