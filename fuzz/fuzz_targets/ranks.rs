//! Recovers merges from arbitrary tokens: the result is an error, or the two earlier tokens that each consists of.

#![no_main]

use batchbpe::encode::RankedTokens;
use batchbpe::error::NEVER;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tokens: Vec<Vec<u8>>| {
    let bytes = (0..=255).map(|byte| vec![byte]);
    let tokens: Vec<_> = bytes.chain(tokens).collect();
    let ranks = tokens.iter().map(|token| &token[..]).zip(0..).collect();
    if let Ok(ranked) = RankedTokens::from_ranks(ranks, &NEVER) {
        assert_eq!(ranked.ids.len(), tokens.len());
        for ((first, last, rank), token) in ranked.merges().zip(&tokens[256..]) {
            assert!(first < rank && last < rank);
            assert_eq!(*token, [&tokens[first as usize][..], &tokens[last as usize]].concat());
        }
    }
});
