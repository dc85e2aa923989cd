//! Reads arbitrary bytes as a CSV file of counts: the result is an error, or consistent chunks and counts.

#![no_main]

use batchbpe::error::NEVER;
use batchbpe::files::counts_csv::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    if let Ok((counted, _)) = read(content, content.len(), &NEVER) {
        assert!(counted.counts.iter().all(|&count| count > 0));
        assert_eq!(counted.offsets.len(), counted.counts.len() + 1);
        assert!(counted.offsets.is_sorted());
        assert_eq!(counted.data.len() as i64, counted.offsets[counted.counts.len()]);
    }
});
