"""Long jobs over many files: counting and encoding that can be interrupted and resumed."""

SHARD_TOKENS = 100_000_000
"""Default number of tokens after which a new shard is started."""
