//! Chunk counts as the csv of the paper's program: a header, a chunk and its count in each row, and last the pattern
//! with the count 0.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder};

use crate::count::Counted;
use crate::error::{Cancel, Error, Result, shown};

const HEADERS: [[&[u8]; 2]; 2] = [[b"text_chunk", b"count"], [b"str", b"int"]];

/// The counts as they stand in the file, in any order, and their pattern.
pub fn read(input: impl Read, cancel: &Cancel) -> Result<(Counted, String)> {
    let broken = |error: csv::Error| Error::invalid(format!("it cannot be read as csv: {error}"));
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = ByteRecord::new();
    reader.read_byte_record(&mut record).map_err(broken)?;
    if !HEADERS.iter().any(|header| record.iter().eq(header.iter().copied())) {
        let found: Vec<_> = record.iter().map(String::from_utf8_lossy).collect();
        let found = shown(&found.join(","));
        return Err(Error::invalid(format!("the header is {found}; chunk counts have text_chunk,count or str,int")));
    }
    let mut counted = Counted { data: Vec::new(), offsets: vec![0], counts: Vec::new() };
    let mut pattern: Option<String> = None;
    while reader.read_byte_record(&mut record).map_err(broken)? {
        cancel.check()?;
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |what: String| Error::invalid(format!("line {line}: {what}"));
        let text = |field: &[u8]| shown(&String::from_utf8_lossy(field));
        if let Some(pattern) = &pattern {
            let pattern = shown(pattern);
            return Err(wrong(format!("a row follows the last one, the pattern {pattern} with the count 0")));
        }
        let (Some(chunk), Some(count), 2) = (record.get(0), record.get(1), record.len()) else {
            return Err(wrong(format!("{} fields instead of a chunk and its count", record.len())));
        };
        let number = std::str::from_utf8(count).ok().filter(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = number.and_then(|count| count.parse::<u64>().ok()) else {
            return Err(wrong(format!("the count {} is not an integer from 0 to 2**64 - 1", text(count))));
        };
        let chunk_text = std::str::from_utf8(chunk)
            .map_err(|_| wrong(format!("the chunk {} is invalid UTF-8; save as parquet", text(chunk))))?;
        if number == 0 {
            pattern = Some(chunk_text.to_owned());
            continue;
        }
        counted.data.extend_from_slice(chunk);
        counted.offsets.push(counted.data.len() as i64);
        counted.counts.push(number);
    }
    let cut_off = || {
        let remedy = "add that row if the file is whole";
        Error::invalid(format!("it has been cut off: its last row is not the pattern with the count 0; {remedy}"))
    };
    Ok((counted, pattern.ok_or_else(cut_off)?))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::error::NEVER;

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read(rows in vec((".{0,9}", 1..u64::MAX), 0..20), pattern in ".{1,9}") {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            writer.write_record(["text_chunk", "count"]).expect("memory");
            for (chunk, count) in &rows {
                writer.write_record([chunk, &count.to_string()]).expect("memory");
            }
            writer.write_record([&pattern, "0"]).expect("memory");
            let (counted, found) = read(&writer.into_inner().expect("memory")[..], &NEVER).expect("it is valid");
            prop_assert_eq!(found, pattern);
            prop_assert_eq!(counted.counts, rows.iter().map(|row| row.1).collect::<Vec<_>>());
            let chunks: String = rows.iter().map(|row| &row.0[..]).collect();
            prop_assert_eq!(counted.data, chunks.into_bytes());
            prop_assert_eq!(counted.offsets.len(), rows.len() + 1);
        }

        /// Anything else is read, or is an error; nothing panics.
        #[test]
        fn any_bytes_are_read_or_refused(mut content in vec(any::<u8>(), 0..200), headed: bool) {
            if headed {
                content.splice(0..0, b"str,int\n".iter().copied());
            }
            if let Ok((counted, _)) = read(&content[..], &NEVER) {
                prop_assert!(counted.counts.iter().all(|&count| count > 0));
                prop_assert_eq!(counted.data.len() as i64, counted.offsets[counted.counts.len()]);
            }
        }
    }
}
