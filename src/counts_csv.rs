//! Chunk counts as the csv of the paper's program: a header, a chunk and its count in each row, and last the pattern
//! with the count 0.

use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use crate::count::Counted;
use crate::error::{Cancel, Error, Result};

const HEADERS: [[&[u8]; 2]; 2] = [[b"text_chunk", b"count"], [b"str", b"int"]];

/// The counts as they stand in the file, in any order, and their pattern.
pub fn read(path: &Path, cancel: &Cancel) -> Result<(Counted, String)> {
    let broken = |error: csv::Error| Error::invalid(format!("it cannot be read as csv: {error}"));
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).map_err(broken)?;
    let mut record = ByteRecord::new();
    reader.read_byte_record(&mut record).map_err(broken)?;
    if !HEADERS.iter().any(|header| record.iter().eq(header.iter().copied())) {
        let found: Vec<_> = record.iter().map(String::from_utf8_lossy).collect();
        let found = found.join(",");
        return Err(Error::invalid(format!("the header is {found:?}; chunk counts have text_chunk,count or str,int")));
    }
    let mut counted = Counted { data: Vec::new(), offsets: vec![0], counts: Vec::new() };
    let mut pattern = None;
    while reader.read_byte_record(&mut record).map_err(broken)? {
        cancel.check()?;
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |what: String| Error::invalid(format!("line {line}: {what}"));
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        if let Some(pattern) = pattern {
            return Err(wrong(format!("a row follows the last one, the pattern {pattern:?} with the count 0")));
        }
        let (Some(chunk), Some(count), 2) = (record.get(0), record.get(1), record.len()) else {
            return Err(wrong(format!("{} fields instead of a chunk and its count", record.len())));
        };
        let number = std::str::from_utf8(count).ok().filter(|count| count.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(number) = number.and_then(|count| count.parse::<u64>().ok()) else {
            return Err(wrong(format!("the count {:?} is no whole number from 0 to 2**64 - 1", text(count))));
        };
        let chunk_text = std::str::from_utf8(chunk)
            .map_err(|_| wrong(format!("the chunk {:?} is no UTF-8; save as parquet", text(chunk))))?;
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
