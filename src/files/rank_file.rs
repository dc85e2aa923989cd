//! Reads rank files, the format of tiktoken: in each line a token in base64, a space and its rank.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::error::{Cancel, Error, Result, quoted, try_push, try_with_capacity};

/// The tokens of a rank file.
#[derive(Debug, Default, PartialEq)]
pub struct RankFile {
    /// The bytes of all tokens, concatenated.
    pub data: Vec<u8>,
    /// Where each token starts, and where the last one ends.
    pub offsets: Vec<i64>,
    pub ranks: Vec<u32>,
}

/// Parses a rank file. Empty lines are skipped.
pub fn parse(content: &[u8], cancel: &Cancel) -> Result<RankFile> {
    let mut file = RankFile { data: try_with_capacity(content.len())?, offsets: vec![0], ranks: Vec::new() };
    for (number, line) in content.split(|&byte| byte == b'\n').enumerate() {
        cancel.check()?;
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let rank = parse_line(line, &mut file.data).ok_or_else(|| {
            let line = quoted(&String::from_utf8_lossy(line));
            Error::invalid(format!("line {}: expected a token in base64 and its rank, got {line}", number + 1))
        })?;
        try_push(&mut file.ranks, rank)?;
        try_push(&mut file.offsets, file.data.len() as i64)?;
    }
    file.data.shrink_to_fit();
    Ok(file)
}

/// Appends the token of a line to `data`, and returns its rank.
fn parse_line(line: &[u8], data: &mut Vec<u8>) -> Option<u32> {
    let start = data.len();
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (token, rank) = (fields.next()?, fields.next()?);
    BASE64_STANDARD.decode_vec(token, data).ok()?;
    let is_rank = data.len() > start && rank.iter().all(u8::is_ascii_digit) && fields.next().is_none();
    is_rank.then(|| std::str::from_utf8(rank).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NEVER;

    #[test]
    fn reads_tokens_and_ranks() {
        let file = parse(b"IQ== 0\r\n\nIHRoZQ==  262\n", &NEVER);
        assert_eq!(file, Ok(RankFile { data: b"! the".to_vec(), offsets: vec![0, 1, 5], ranks: vec![0, 262] }));
        assert_eq!(parse(b"", &NEVER), Ok(RankFile { offsets: vec![0], ..RankFile::default() }));
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for line in ["IQ==", "IQ== 1 2", "I!== 1", "IQ== +1", "IQ== 4294967296", "== 1", "IQ 1"] {
            let error = parse(format!("IQ== 0\n{line}\n").as_bytes(), &NEVER).expect_err(line).to_string();
            assert_eq!(error, format!("line 2: expected a token in base64 and its rank, got {line:?}"));
        }
    }
}
