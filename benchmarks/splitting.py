"""Cases that split a text into chunks."""

from functools import partial

from batchbpe.patterns import PATTERNS
from benchmarks.measure import Case
from benchmarks.texts import load_text

NEVER = "|(?<=a)b(?<=c)"
"""An alternative that never matches and that only the backtracking engine can run."""


def batchbpe(path, pattern, backtracking=False):
    """Split and count."""
    from batchbpe import ChunkCounts

    regex = PATTERNS[pattern] + NEVER * backtracking
    job = partial(ChunkCounts.count, pattern=regex, threads=1)
    return Case(partial(load_text, path), job, lambda counts: {"result": f"{counts.total:,} chunks"})


def regex(path, pattern):
    """Split with the `regex` package, without counting."""
    import regex

    compiled = regex.compile(PATTERNS[pattern])
    return Case(partial(load_text, path), compiled.findall, lambda chunks: {"result": f"{len(chunks):,} chunks"})
