"""Limits on how much is read at once."""

BATCH_CHARACTERS = 2_000_000
BATCH_DOCUMENTS = 4096
"""A batch holds at most this many documents, and about this many characters."""
MAX_DOCUMENT_BYTES = 1 << 30
"""Default limit for the size of one document."""
