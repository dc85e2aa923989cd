//! Recovers merges from arbitrary tokens: the result is an error, or a cut of each token into two earlier ones.

#![no_main]

use batchbpe::encode::ranks::cuts;
use batchbpe::error::NEVER;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tokens: Vec<Vec<u8>>| {
    let tokens: Vec<_> = tokens.into_iter().filter(|token| token.len() > 1).collect();
    if let Ok(cuts) = cuts(&tokens, &NEVER) {
        assert_eq!(cuts.len(), tokens.len());
        let known = |rank: usize, part: &[u8]| part.len() == 1 || tokens[..rank].iter().any(|token| token == part);
        for (rank, (token, cut)) in tokens.iter().zip(cuts).enumerate() {
            assert!(known(rank, &token[..cut]) && known(rank, &token[cut..]));
        }
    }
});
