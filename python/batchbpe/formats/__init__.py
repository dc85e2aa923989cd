"""Files: one module a format. They know `Model` (and plain arrays) only."""
