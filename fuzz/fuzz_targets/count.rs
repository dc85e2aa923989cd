//! Counts arbitrary bytes as documents: invalid UTF-8 is rejected, and one thread gives the same counts as three.

#![no_main]

use batchbpe::count::{ChunkTable, Counting, SharedText};
use batchbpe::error::NEVER;
use batchbpe::split::{NAMED, Splitter};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, Vec<Vec<u8>>)| {
    let (options, documents) = input;
    let special = if options & 1 == 0 { vec![] } else { vec!["<|end|>".to_owned(), "\n".to_owned()] };
    let count = |threads: usize| {
        let splitter = Splitter::new(NAMED[usize::from(options >> 6)].1).expect("a named pattern");
        let mut table = ChunkTable::new(Counting::Chunks, splitter, &special, usize::from(options) + 1, threads)
            .expect("few tokens");
        let valid = |document: &Vec<u8>| SharedText::new(document.clone().into()).ok();
        let texts: Vec<SharedText> = documents.iter().filter_map(valid).collect();
        let total: usize = texts.iter().map(|text| text.as_str().len()).sum();
        table.add(texts.into_iter().map(Ok), &NEVER).expect("named patterns do not fail");
        let (counted, dropped, _) = table.finish(&NEVER).expect("named patterns do not fail");
        assert_eq!(dropped, 0);
        assert!(counted.data.len() <= total && counted.counts.is_sorted_by(|a, b| a >= b));
        (counted.data, counted.offsets, counted.counts)
    };
    assert_eq!(count(1), count(3));
});
