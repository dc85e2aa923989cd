"""Compare batchbpe with other tools; see README.md in this folder."""
