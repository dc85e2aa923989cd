//! Recovers merges from arbitrary tokens: the result is an error, or the two earlier tokens that each consists of.

#![no_main]

use batchbpe::encode::ranks::merges;
use batchbpe::error::NEVER;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tokens: Vec<Vec<u8>>| {
    let tokens: Vec<_> = tokens.into_iter().filter(|token| token.len() > 1).collect();
    if let Ok(merges) = merges(&tokens, 1, &NEVER) {
        assert_eq!(merges.len(), tokens.len());
        let bytes = |rank: u32| if rank < 256 { vec![rank as u8] } else { tokens[rank as usize - 256].clone() };
        for ((token, (first, last)), rank) in tokens.iter().zip(merges).zip(256..) {
            assert!(first < rank && last < rank);
            assert_eq!(*token, [bytes(first), bytes(last)].concat());
        }
    }
});
