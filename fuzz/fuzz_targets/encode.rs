//! Builds encoders from arbitrary merges. If the merges are valid, encoding any text and decoding the ids restores it,
//! with any number of threads.

#![no_main]

use batchbpe::encode::{Encoder, Flags, FoundToken, OtherTokens, RankedTokens, SpecialRules, SpecialSet};
use batchbpe::error::NEVER;
use batchbpe::split::{NAMED, Splitter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(u16, u16)>, Vec<Vec<u8>>, Vec<String>, Vec<u32>, &str)| {
    let (merges, stop_words, special, ids, text) = input;
    let bytes: [u32; 256] = std::array::from_fn(|byte| byte as u32);
    let merges: Vec<(u32, u32, u32)> =
        merges.iter().zip(256..).map(|(&(first, last), id)| (first.into(), last.into(), id)).collect();
    let stop_words: Vec<_> = stop_words.into_iter().filter(|word| !word.is_empty()).zip(1 << 17..).collect();
    let special = special.into_iter().filter(|token| !token.is_empty()).zip(1 << 18..);
    let special = special.map(|(name, id)| FoundToken { name, id, flags: Flags::default() }).collect();
    let splitter = Splitter::new(NAMED[text.len() % NAMED.len()].1).expect("a named pattern");
    // A few merges that double their tokens make a token of megabytes. Encoding with it is slow.
    let of_merges = |merge: &(u32, u32, u32)| merge.0 >= 256 && merge.1 >= 256;
    if merges.len() > 18 && merges.windows(18).any(|window| window.iter().all(of_merges)) {
        return;
    }
    let Ok(tokens) = RankedTokens::from_merges(&bytes, merges.iter().copied()) else { return };
    let hidden: Vec<u32> = ids.iter().copied().filter(|id| merges.iter().any(|merge| merge.2 == *id)).collect();
    let others = OtherTokens { stop_words, special, hidden: hidden.clone(), ..OtherTokens::default() };
    let Ok(encoder) = Encoder::new(splitter, &tokens, others, &NEVER) else { return };
    let allow_all = SpecialRules { allowed: SpecialSet::All, disallowed: SpecialSet::These(vec![]) };
    let encoded = encoder.encode(text, &allow_all, 1, &NEVER).expect("no token is disallowed");
    assert_eq!(encoder.decode(&encoded, &NEVER).expect("known ids"), text.as_bytes());
    assert!(hidden.iter().all(|id| !encoded.contains(id)));
    let (ids_of_spans, spans) = encoder.encode_with_spans(text, &allow_all, &NEVER).expect("no token is disallowed");
    assert_eq!(ids_of_spans, encoded);
    assert!(spans.iter().zip(&encoded).all(|(&(start, end), &id)| {
        &text.as_bytes()[start..end] == encoder.token(id).expect("a known id")
    }));
    for _ in 0..2 {
        let batch = encoder.encode_batch(&[text, text], &allow_all, 2, &NEVER).expect("no token is disallowed");
        assert_eq!(batch.0, [&encoded[..], &encoded].concat());
    }
    let _ = encoder.decode(&ids, &NEVER);
});
