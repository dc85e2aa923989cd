//! Runs one hot loop of the core on a small fixed input, for counting its instructions with callgrind: only those
//! inside `measured` count. See compare.py, which runs every case. Without an argument, it lists the cases;
//! with `features`, it prints the instructions that it can use.

mod inputs;

use batchbpe::count::{ChunkTable, Counted, Counting, SharedText};
use batchbpe::encode::{Encoder, OtherTokens, Phrase, RankedTokens, SpecialRules, SpecialSet};
use batchbpe::error::NEVER;
use batchbpe::split::{NAMED, Splitter};
use batchbpe::train::{Pair, PairTable};
use inputs::{code, latin, mixed};

const CASES: [(&str, fn()); 24] = [
    ("split-gpt2", || split("gpt2", &latin(LARGE))),
    ("split-cl100k", || split("cl100k", &latin(LARGE))),
    ("split-cl100k-code", || split("cl100k", &code(LARGE))),
    ("split-cl100k-mixed", || split("cl100k", &mixed(LARGE))),
    ("split-o200k-mixed", || split("o200k", &mixed(LARGE))),
    ("split-deepseek", || split("deepseek", &latin(LARGE))),
    ("split-deepseek-mixed", || split("deepseek", &mixed(LARGE))), // partly by an automaton
    ("split-bloom", || split("bloom", &latin(LARGE))),             // by an automaton
    ("count", || {
        let documents = latin_documents();
        measured(|| count(&documents));
    }),
    ("train-batches", || train_in_batches(64)),
    ("train-serial", || train_in_batches(1)),
    ("train-one-chunk-100k", || train_one_chunk(100_000)),
    ("train-one-chunk-300k", || train_one_chunk(300_000)),
    ("build-encoder", || {
        let merges = trained();
        measured(|| build(&merges));
    }),
    ("merges-of-ranks", merges_of_ranks),
    ("encode-first", || encode(&[&latin(SMALL)], false)),
    ("encode-repeated", || encode(&[&latin(SMALL)], true)),
    ("encode-mixed-first", || encode(&[&mixed(SMALL)], false)),
    ("encode-short", || encode(&["The theory is in the inaccessible parts."; 1000], true)),
    ("encode-phrases", encode_phrases),
    ("encode-hidden", encode_hidden),
    ("encode-one-chunk-100k", || encode(&[&"=".repeat(100_000)], false)),
    ("encode-one-chunk-300k", || encode(&[&"=".repeat(300_000)], false)),
    ("decode", decode),
];
const LARGE: usize = 1_000_000;
const SMALL: usize = 300_000;
const MERGES: usize = 3_000;

fn main() {
    let chosen = std::env::args().nth(1);
    if chosen.as_deref() == Some("features") {
        return println!("{}", features());
    }
    for (name, run) in CASES {
        match &chosen {
            None => println!("{name}"),
            Some(chosen) if chosen == name => return run(),
            Some(_) => {}
        }
    }
}

/// Returns the instructions that the core can choose. Under valgrind, there are fewer.
fn features() -> String {
    #[cfg(target_arch = "x86_64")]
    let found = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("bmi1", is_x86_feature_detected!("bmi1")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("popcnt", is_x86_feature_detected!("popcnt")),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let found = [(std::env::consts::ARCH, true)];
    found.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

/// Callgrind counts only what happens in this function.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    std::hint::black_box(work())
}

fn splitter(name: &str) -> Splitter {
    let (_, pattern) = NAMED.iter().find(|(each, _)| *each == name).expect("a named pattern");
    Splitter::new(pattern).expect("a valid pattern")
}

fn split(pattern: &str, text: &str) {
    let splitter = splitter(pattern);
    let mut chunks = 0;
    splitter.split("a", &NEVER, |_| Ok(())).expect("named patterns do not fail"); // builds the tables
    let count = |_| {
        chunks += 1;
        Ok(())
    };
    measured(|| splitter.split(text, &NEVER, count).expect("named patterns do not fail"));
    assert!(chunks > 1000);
}

fn latin_documents() -> Vec<SharedText> {
    let text = latin(LARGE);
    text.split_inclusive("\n\n").map(|part| SharedText::new(part.to_owned().into()).expect("UTF-8")).collect()
}

fn count(texts: &[SharedText]) -> Counted {
    let mut table =
        ChunkTable::new(Counting::Chunks, splitter("cl100k"), &[], usize::MAX, 1).expect("no special tokens");
    table.add(texts.iter().cloned().map(Ok), &NEVER).expect("named patterns do not fail");
    table.finish(&NEVER).expect("named patterns do not fail").0
}

/// Merges up to `size` pairs at a time that do not touch each other.
fn train(sequences: &[(Vec<u32>, u64)], merges: usize, size: usize) -> Vec<Pair> {
    let sequences = sequences.iter().map(|(ids, count)| (ids.iter().copied(), *count, 0));
    let mut table = PairTable::new(sequences, 1, 256, merges, 1, false, 1, &NEVER).expect("small");
    let mut done: Vec<Pair> = Vec::new();
    while done.len() < merges {
        let mut batch: Vec<Pair> = Vec::new();
        for (pair, _) in table.top(size.min(merges - done.len()), None, &NEVER).expect("never cancelled") {
            if batch.iter().all(|other| pair.0 != other.1 && pair.1 != other.0) {
                batch.push(pair);
            }
        }
        if batch.is_empty() {
            break;
        }
        table.merge(&batch, false, &NEVER).expect("pairs of the table");
        done.extend(batch);
    }
    done
}

fn sequences() -> Vec<(Vec<u32>, u64)> {
    let counted = count(&latin_documents());
    let chunks = counted.offsets.windows(2).map(|span| &counted.data[span[0] as usize..span[1] as usize]);
    chunks.map(|chunk| chunk.iter().map(|&byte| byte.into()).collect()).zip(counted.counts).collect()
}

fn train_in_batches(size: usize) {
    let sequences = sequences();
    assert_eq!(measured(|| train(&sequences, MERGES, size)).len(), MERGES);
}

/// Must not grow faster than n log n.
fn train_one_chunk(length: usize) {
    let sequence = [(vec![97; length], 1)];
    assert!(measured(|| train(&sequence, 40, 1)).len() > 15);
}

fn trained() -> Vec<(u32, u32, u32)> {
    train(&sequences(), MERGES, 64).into_iter().zip(256..).map(|((first, last), id)| (first, last, id)).collect()
}

fn build(merges: &[(u32, u32, u32)]) -> Encoder {
    build_with(merges, OtherTokens::default())
}

fn build_with(merges: &[(u32, u32, u32)], others: OtherTokens) -> Encoder {
    let bytes: [u32; 256] = std::array::from_fn(|byte| byte as u32);
    let tokens = RankedTokens::from_merges(&bytes, merges.iter().copied()).expect("valid merges");
    Encoder::new(splitter("cl100k"), &tokens, others, &NEVER).expect("small")
}

fn merges_of_ranks() {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for (first, last, _) in trained() {
        tokens.push([&tokens[first as usize][..], &tokens[last as usize]].concat());
    }
    // Different merges can make the same bytes, which a file of ranks cannot contain twice.
    let mut seen = std::collections::HashSet::new();
    tokens.retain(|token| seen.insert(token.clone()));
    let ranks: Vec<_> = tokens.iter().map(|token| &token[..]).zip(0..).collect();
    measured(|| RankedTokens::from_ranks(ranks, &NEVER)).expect("ranks of a vocabulary");
}

fn rules() -> SpecialRules {
    SpecialRules { allowed: SpecialSet::These(vec![]), disallowed: SpecialSet::These(vec![]) }
}

fn encode(texts: &[&str], again: bool) {
    let encoder = build(&[&trained()[..], &doublings(b'=')].concat());
    let rules = rules();
    let call = || {
        let encode = |text: &&str| encoder.encode(text, &rules, 1, &NEVER).expect("no special tokens").len();
        texts.iter().map(encode).sum::<usize>()
    };
    if again {
        call();
    }
    assert!(measured(call) > 0);
}

/// Encodes with a phrase for every third place where three chunks in a row are single tokens.
fn encode_phrases() {
    let (merges, text) = (trained(), latin(SMALL));
    let (encoder, mut ids) = (build(&merges), Vec::new());
    let add = |chunk: &str| {
        ids.push(encoder.encode(chunk, &rules(), 1, &NEVER)?);
        Ok(())
    };
    splitter("cl100k").split(&text, &NEVER, add).expect("named patterns do not fail");
    let single_tokens = |chunks: &&[Vec<u32>]| chunks.iter().all(|ids| ids.len() == 1);
    let mut phrases: Vec<Vec<u32>> = ids.windows(3).step_by(3).filter(single_tokens).map(<[_]>::concat).collect();
    phrases.sort_unstable();
    phrases.dedup();
    let phrases: Vec<Phrase> = phrases.into_iter().zip(10_000..).collect();
    assert!(phrases.len() > 1000);
    let encoder = build_with(&merges, OtherTokens { phrases, ..OtherTokens::default() });
    let call = || encoder.encode(&text, &rules(), 1, &NEVER).expect("no special tokens").len();
    assert!(call() < ids.len());
    measured(call);
}

/// Encodes with every tenth token hidden.
fn encode_hidden() {
    let (merges, text) = (trained(), latin(SMALL));
    let hidden = merges.iter().map(|merge| merge.2).step_by(10).collect();
    let encoder = build_with(&merges, OtherTokens { hidden, ..OtherTokens::default() });
    let plain = build(&merges).encode(&text, &rules(), 1, &NEVER).expect("no special tokens").len();
    assert!(measured(|| encoder.encode(&text, &rules(), 1, &NEVER)).expect("no special tokens").len() > plain);
}

/// Merges that double a byte six times.
fn doublings(byte: u8) -> Vec<(u32, u32, u32)> {
    let ids = std::iter::once(u32::from(byte)).chain(100_000..);
    ids.zip(100_000..100_006).map(|(half, id)| (half, half, id)).collect()
}

fn decode() {
    let (encoder, text) = (build(&trained()), latin(SMALL));
    let ids = encoder.encode(&text, &rules(), 1, &NEVER).expect("no special tokens");
    assert_eq!(measured(|| encoder.decode(&ids, &NEVER)).expect("known ids"), text.as_bytes());
}
