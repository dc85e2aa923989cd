"""Phrases: tokens for sequences of chunks, such as " of the", trained in a second phase. See docs/phrases.md."""
