"""Score policies: rank pairs by something other than their count, or veto some of them."""

from __future__ import annotations

import argparse
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from batchbpe import ChunkCounts, Tokenizer, evaluate
from batchbpe.policies import Candidates, Mask, Policy, continue_search

Scores = npt.NDArray[Any]
"""One number for each pair: the highest is merged first."""


def ranked(score: Callable[[Candidates], Scores], *, min_count: int = 1) -> Policy:
    """Merge the pairs with the highest scores, among those that occur at least `min_count` times.

    Once all pairs are rarer, only the most frequent ones are merged.
    """

    def policy(candidates: Candidates) -> Candidates:
        pairs = candidates.more(sys.maxsize)  # all of them
        pairs = pairs[pairs.count >= min(min_count, pairs.count[0])]
        scores, n = score(pairs), min(len(candidates), len(pairs))
        high = np.flatnonzero(scores >= np.partition(scores, -n)[-n])  # sorting only these is faster
        return continue_search(pairs[high[np.argsort(-scores[high], kind="stable")][:n]])

    return policy


def count_times_length(pairs: Candidates) -> Scores:
    """Score a pair by how many bytes of the text it would cover."""
    return pairs.count * pairs.merged_length


def mutual_information(pairs: Candidates) -> Scores:
    """Score a pair by how much more often it occurs than if its tokens were independent."""
    information: Scores = pairs.count / pairs.first_count * pairs.lengths.sum() / pairs.last_count
    return information


def entropy_of_neighbors(pairs: Candidates) -> Scores:
    """Divide the count by how uncertain the neighbor is: what follows the first token, or what precedes the last."""

    def entropy(tokens: Scores) -> Scores:
        p = pairs.count / np.bincount(tokens, pairs.count)[tokens]
        return np.bincount(tokens, -p * np.log2(p))[tokens]

    scores: Scores = pairs.count / (1 + np.minimum(entropy(pairs.first), entropy(pairs.last)))
    return scores.round(6)  # rounding errors must not decide between equal scores


def digits_apart(candidates: Candidates) -> Candidates:
    """Never merge a digit: the bytes 48 to 57."""
    digits = range(48, 58)
    return continue_search(candidates.keep(lambda pairs: ~(np.isin(pairs.first, digits) | np.isin(pairs.last, digits))))


def within(boundaries: Callable[[bytes], Sequence[int]]) -> Policy:
    """Never make a token that contains a boundary: `boundaries` returns their positions inside a token."""
    boundaries = cache(boundaries)  # the same pairs are candidates in many batches

    def wanted(pairs: Candidates) -> Mask:
        return np.array([not boundaries(token) for token in pairs.merged_bytes])

    def policy(candidates: Candidates) -> Candidates:
        return continue_search(candidates.keep(wanted))

    return policy


def suffixes(token: bytes) -> list[int]:
    """Find the boundary before an English suffix."""
    return [match.start() for match in re.finditer(rb"(?<=[a-z]{3})(?:ing|ed|er|ly|ness|ment|able|s)$", token)]


def main() -> None:
    """Compare the policies on every tenth document, which they were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", help="parquet file with the column text")
    parser.add_argument("--vocab-size", type=int, default=4096)
    given = parser.parse_args()
    if given.data:
        texts = [row["text"] for row in pq.read_table(given.data).to_pylist()]
    else:
        paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        texts = [path.read_text("utf-8") for path in paths]
    held_out = texts[::10]
    del texts[::10]
    counts, trained, seconds = ChunkCounts.count(texts=texts), {}, {}
    for name, policy in {
        "plain": continue_search,
        "count × length": ranked(count_times_length),
        "mutual information": ranked(mutual_information, min_count=100),
        "entropy": ranked(entropy_of_neighbors),
        "suffixes apart": within(suffixes),
        "digits apart": digits_apart,
    }.items():
        start = time.perf_counter()
        # Fewer candidates per batch: `within` looks at each of them in Python.
        trained[name] = Tokenizer.train(counts, given.vocab_size, policy=policy, max_batch_size=500)
        seconds[name] = time.perf_counter() - start
    results = evaluate(trained, texts=held_out)
    for each in results:
        change = each.metrics(results[0])["change"]
        print(f"{each.name:20} {seconds[each.name]:6.2f} s {each.tokens:12,} tokens {change:+8.2f}%")


if __name__ == "__main__":
    main()
