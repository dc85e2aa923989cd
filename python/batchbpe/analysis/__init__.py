"""Analysis: how good a tokenizer is, what is in it, and what its tokens look like."""
