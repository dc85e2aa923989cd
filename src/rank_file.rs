//! Reads rank files, the format of tiktoken: in each line a token in base64, a space and its rank.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::error::{Cancel, Error, Result, quoted, try_push};

/// Returns the tokens and their ranks. Empty lines are skipped.
pub fn parse(content: &[u8], cancel: &Cancel) -> Result<Vec<(Vec<u8>, u32)>> {
    let mut ranks = Vec::new();
    for (number, line) in content.split(|&byte| byte == b'\n').enumerate() {
        cancel.check()?;
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let rank = parse_line(line).ok_or_else(|| {
            let line = quoted(&String::from_utf8_lossy(line));
            Error::invalid(format!("line {}: expected a token in base64 and its rank, got {line}", number + 1))
        })?;
        try_push(&mut ranks, rank)?;
    }
    Ok(ranks)
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let (token, rank) = (fields.next()?, fields.next()?);
    let token = BASE64_STANDARD.decode(token).ok().filter(|token| !token.is_empty())?;
    let is_number = rank.iter().all(u8::is_ascii_digit) && fields.next().is_none();
    let rank = is_number.then(|| std::str::from_utf8(rank).ok()?.parse().ok())?;
    Some((token, rank?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NEVER;

    #[test]
    fn reads_tokens_and_ranks() {
        let ranks = parse(b"IQ== 0\r\n\nIHRoZQ==  262\n", &NEVER);
        assert_eq!(ranks, Ok(vec![(b"!".to_vec(), 0), (b" the".to_vec(), 262)]));
        assert_eq!(parse(b"", &NEVER), Ok(vec![]));
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for line in ["IQ==", "IQ== 1 2", "I!== 1", "IQ== +1", "IQ== 4294967296", "== 1", "IQ 1"] {
            let error = parse(format!("IQ== 0\n{line}\n").as_bytes(), &NEVER).expect_err(line).to_string();
            assert_eq!(error, format!("line 2: expected a token in base64 and its rank, got {line:?}"));
        }
    }
}
