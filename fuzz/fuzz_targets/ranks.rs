//! Recovers merges from arbitrary tokens: the result is an error, or the two tokens that each consists of, or a token that
//! no merge makes.

#![no_main]

use batchbpe::encode::RankedTokens;
use batchbpe::error::NEVER;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tokens: Vec<Vec<u8>>| {
    let bytes = (0..=255).map(|byte| vec![byte]);
    let tokens: Vec<_> = bytes.chain(tokens).collect();
    let ranks = tokens.iter().map(|token| &token[..]).zip(0..).collect();
    if let Ok((ranked, others)) = RankedTokens::from_ranks(ranks, &NEVER) {
        assert_eq!(ranked.ids.len() + others.len(), tokens.len());
        for (first, last, rank) in ranked.merges() {
            assert_eq!(tokens[rank as usize], [&tokens[first as usize][..], &tokens[last as usize]].concat());
        }
        assert!(others.iter().all(|&(token, rank)| tokens[rank as usize] == token));
    }
});
