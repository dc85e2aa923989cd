//! Reads arbitrary bytes as a tokenizer.json, and files made of arbitrary tokens and merges. The result is an error, or
//! tokens with the ids of the file.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use batchbpe::error::NEVER;
use batchbpe::files::tokenizer_json::TokenizerJson;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Vec<String>, Vec<(u8, u8)>, bool)| {
    let (bytes, names, merges, ignore_merges) = input;
    if let Ok(file) = TokenizerJson::parse(bytes) {
        let _ = file.tokens(&names, ignore_merges, b"", &NEVER);
    }
    let vocab: BTreeMap<&String, usize> = names.iter().zip(0..).collect();
    let name = |index: u8| names.get(usize::from(index) % names.len().max(1));
    let merges: Vec<_> = merges.into_iter().map(|(first, last)| [name(first), name(last)]).collect();
    let json = serde_json::json!({"model": {"vocab": vocab, "merges": merges}}).to_string();
    let Ok(file) = TokenizerJson::parse(json.as_bytes()) else { return };
    let Ok(tokens) = file.tokens(&[], ignore_merges, b"05", &NEVER) else { return };
    let others = tokens.stop_words.iter().chain(&tokens.decode_only).map(|token| token.1);
    let ids: Vec<u32> = tokens.ranked.ids.iter().copied().filter(|&id| id < u32::MAX).chain(others).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert!(ids.len() <= file.n_vocab());
});
