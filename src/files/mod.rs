//! Readers for the file formats that are too slow to parse in Python.

pub mod counts_csv;
pub mod rank_file;
pub mod tokenizer_json;
