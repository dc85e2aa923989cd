"""The whole algorithm in plain Python, to read beside the paper: split, count, train (its Listing 1), encode.

The oracle of the tests: the core gives the same, to the last id. Needs the `regex` package.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import regex

Pair = tuple[int, int]
Chunks = list[tuple[list[int], int]]


def split(text: str, pattern: str) -> list[str]:
    """Cut a text into chunks; what the pattern does not match is dropped."""
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


def count_chunks(texts: Iterable[str], pattern: str) -> dict[str, int]:
    """Count the chunks of texts: the commonest first, those of equal count in the order of their bytes.

    >>> count_chunks(["to be or not to be"], r" ?\\w+")
    {' be': 2, ' not': 1, ' or': 1, ' to': 1, 'to': 1}
    """
    counts = Counter(chunk for text in texts for chunk in split(text, pattern))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0].encode())))


def get_stats(ids: Chunks, overlapping: bool = False) -> dict[Pair, int]:
    """Count the pairs of tokens in chunks, each as often as its chunk occurs.

    In a run of one token a pair counts as often as it can be merged, or at every place if `overlapping`.

    >>> get_stats([([97, 97, 97, 98], 10)])
    {(97, 97): 10, (97, 98): 10}
    """
    stats: dict[Pair, int] = {}
    for tokens, count in ids:
        previous = None
        for pair in itertools.pairwise(tokens):
            if pair == previous and pair[0] == pair[1] and not overlapping:
                previous = None
                continue
            stats[pair] = stats.get(pair, 0) + count
            previous = pair
    return stats


def merge_batch(ids: Chunks, pairs: Mapping[Pair, int]) -> None:
    """Replace each of the pairs by its new token, in place, from left to right.

    >>> ids = [([1, 2, 3, 1, 2], 1)]
    >>> merge_batch(ids, {(1, 2): 4})
    >>> ids
    [([4, 3, 4], 1)]
    """
    for tokens, _ in ids:
        i = 0
        while i + 1 < len(tokens):
            new_token = pairs.get((tokens[i], tokens[i + 1]))
            if new_token is not None:
                tokens[i : i + 2] = [new_token]
            i += 1


def safe_batch(top_pairs: Iterable[Pair], policy: str) -> list[Pair]:
    """Choose the pairs that can be merged at once, out of pairs from the commonest on.

    >>> pairs = [(101, 114), (116, 104), (101, 110), (104, 101), (115, 116)]  # er, th, en, he, st
    >>> len(safe_batch(pairs, "naive")), len(safe_batch(pairs, "positional"))
    (2, 3)
    """
    seen_first: set[int] = set()  # tokens seen in the first position in pairs
    seen_last: set[int] = set()  # tokens seen in the last position in pairs
    batch = []
    for first, last in top_pairs:
        unsafe = first in seen_last or last in seen_first
        if policy == "naive":
            unsafe = unsafe or first in seen_first or last in seen_last
        if unsafe and policy != "continue_search":
            break
        if not unsafe:
            batch.append((first, last))
        seen_first.add(first)
        seen_last.add(last)
    return batch


def train(
    counts: Mapping[str, int],
    vocab_size: int,
    *,
    stop_list_size: int = 0,
    freq_cutoff: int = 1,
    cap_divisor: int = 2,
    max_batch_size: int = 0,
    policy: str = "continue_search",
    overlapping: bool = False,
) -> tuple[dict[Pair, int], dict[str, int]]:
    """Listing 1 of the paper. Returns the merges and the stop words, with their tokens.

    >>> train({"aaabdaaabac": 1}, 259)[0]
    {(97, 97): 256, (97, 98): 257, (256, 257): 258}
    """
    common = [chunk for chunk in counts if len(chunk) > 1][:stop_list_size]
    stop_words = {chunk: token for token, chunk in enumerate(common, start=256)}
    kept = (item for item in counts.items() if item[0] not in stop_words and item[1] >= freq_cutoff)
    ids = [(list(chunk.encode()), count) for chunk, count in kept]
    curr_vocab_size = 256 + len(stop_words)
    merges_remaining = vocab_size - curr_vocab_size
    merges: dict[Pair, int] = {}
    while merges_remaining > 0:
        stats = get_stats(ids, overlapping)  # update token-pair frequencies
        num_pairs_to_search = min(merges_remaining // cap_divisor, curr_vocab_size, max_batch_size or vocab_size) or 1
        # Equal counts: the pair with the smaller ids goes first.
        top_pairs = heapq.nsmallest(num_pairs_to_search, stats, key=lambda pair: (-stats[pair], pair))
        if not top_pairs:
            break  # nothing left to merge
        batch = top_pairs[:1] if policy == "serial" else safe_batch(top_pairs, policy)
        pairs_to_merge = {pair: token for token, pair in enumerate(batch, start=curr_vocab_size)}
        curr_vocab_size += len(pairs_to_merge)
        merges_remaining -= len(pairs_to_merge)
        merges.update(pairs_to_merge)  # save the merges
        merge_batch(ids, pairs_to_merge)
    return merges, stop_words


def encode(text: str, pattern: str, merges: Mapping[Pair, int], stop_words: Mapping[str, int]) -> list[int]:
    """Encode a text: in each chunk, always merge the pair that was merged first in training.

    >>> merges, _ = train({"aaabdaaabac": 1}, 259)
    >>> encode("aaabdaaabac", r"\\w+", merges, {})
    [258, 100, 258, 97, 99]
    """
    tokens: list[int] = []
    for chunk in split(text, pattern):
        if chunk in stop_words:
            tokens.append(stop_words[chunk])
            continue
        part = list(chunk.encode())
        while len(part) > 1:
            pair = min(itertools.pairwise(part), key=lambda pair: merges.get(pair, float("inf")))
            if pair not in merges:
                break
            merge_batch([(part, 1)], {pair: merges[pair]})
        tokens.extend(part)
    return tokens
