"""Score policies: rank pairs by something other than their count, or veto some of them."""

from __future__ import annotations

import argparse
import re
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from batchbpe import ChunkCounts, Tokenizer, evaluate
from batchbpe.policies import Candidates, Policy, continue_search

Scores = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def ranked(score: Callable[[Candidates], Scores], *, min_count: int = 1) -> Policy:
    """Merge the pairs with the highest scores, of all pairs that occur at least `min_count` times, if there are any."""

    def policy(candidates: Candidates) -> Candidates:
        pairs = candidates.more(sys.maxsize)
        scores = np.where(pairs.count >= min(min_count, pairs.count[0]), score(pairs), -np.inf)
        best = np.argsort(-scores, kind="stable")[: min(len(candidates), np.isfinite(scores).sum())]
        return continue_search(pairs[best])

    return policy


def count_times_length(pairs: Candidates) -> Scores:
    """Score a pair by how many bytes of the text it would cover."""
    return pairs.count * pairs.merged_length


def mutual_information(pairs: Candidates) -> Scores:
    """Score a pair by how much more often it occurs than if its tokens were independent."""
    return pairs.count / pairs.first_count * pairs.lengths.sum() / pairs.last_count


def entropy_of_neighbors(pairs: Candidates) -> Scores:
    """Divide the count by how uncertain the neighbor is: what follows the first token, or what precedes the last one."""

    def entropy(tokens: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
        p = pairs.count / np.bincount(tokens, pairs.count)[tokens]
        return np.bincount(tokens, -p * np.log2(p))[tokens]

    return np.round(pairs.count / (1 + np.minimum(entropy(pairs.first), entropy(pairs.last))), 6)


def digits_apart(candidates: Candidates) -> Candidates:
    """Never merge a digit: bytes 48 to 57."""
    return continue_search(candidates.keep(lambda pairs: ~(np.isin(pairs.first, DIGITS) | np.isin(pairs.last, DIGITS))))


DIGITS = np.arange(48, 58)


def within(boundaries: Callable[[bytes], Sequence[int]]) -> Policy:
    """Never make a token that contains a boundary: `boundaries` returns their positions inside a token."""

    def wanted(pairs: Candidates) -> list[bool]:
        return [not boundaries(token) for token in pairs.merged_bytes]

    return lambda candidates: continue_search(candidates.keep(wanted))


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
        texts = pq.read_table(given.data)["text"].to_pylist()
    else:
        texts = [path.read_text("utf-8") for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))]
    held_out = texts[::10]
    del texts[::10]
    counts, trained = ChunkCounts.count(texts=texts), {}
    for name, policy in {
        "plain": continue_search,
        "count × length": ranked(count_times_length),
        "mutual information": ranked(mutual_information, min_count=100),
        "entropy": ranked(entropy_of_neighbors),
        "suffixes apart": within(suffixes),
        "digits apart": digits_apart,
    }.items():
        start = time.perf_counter()
        trained[name] = Tokenizer.train(counts, given.vocab_size, policy=policy)
        print(f"{name}: {time.perf_counter() - start:.2f} s")
    for result in evaluate(trained, texts=held_out):
        print(result.name, result.tokens)


if __name__ == "__main__":
    main()
