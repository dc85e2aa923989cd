"""The whole algorithm in plain Python, to read along with the paper: split, count, train (Listing 1), encode.

The tests compare the core with this module: both produce the same ids. It needs the `regex` package.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import regex

Pair = tuple[int, int]
Chunks = list[tuple[list[int], int]]


def split(text: str, pattern: str) -> list[str]:
    """Split a text into chunks. Text that the pattern does not match is dropped.

    >>> split("to be", r" ?\\w+")
    ['to', ' be']
    """
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


def count_chunks(texts: Iterable[str], pattern: str) -> dict[str, int]:
    """Count the chunks of texts, most frequent first; chunks of equal count are ordered by their bytes.

    >>> count_chunks(["to be or not to be"], r" ?\\w+")
    {' be': 2, ' not': 1, ' or': 1, ' to': 1, 'to': 1}
    """
    counts = Counter(chunk for text in texts for chunk in split(text, pattern))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0].encode())))


def get_stats(ids: Chunks, overlapping: bool = False) -> dict[Pair, int]:
    """Count the pairs of tokens in chunks. A chunk is a list of tokens and its own count.

    In a run of one repeated token, a pair is counted as often as it can be merged, or at every position if
    `overlapping`.

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
    """Replace each of the pairs with its new token, in place, from left to right.

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
    """Choose the pairs that can be merged at once. `top_pairs` are the most frequent pairs, best first.

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
    """Train as in Listing 1 of the paper. Return the merges and the stop words, with their ids.

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
        # Of pairs with equal counts, the one with the smaller ids comes first.
        top_pairs = heapq.nsmallest(num_pairs_to_search, stats, key=lambda pair: (-stats[pair], pair))
        if not top_pairs:
            break  # no pairs are left
        batch = top_pairs[:1] if policy == "serial" else safe_batch(top_pairs, policy)
        pairs_to_merge = {pair: token for token, pair in enumerate(batch, start=curr_vocab_size)}
        curr_vocab_size += len(pairs_to_merge)
        merges_remaining -= len(pairs_to_merge)
        merges.update(pairs_to_merge)  # save the merges
        merge_batch(ids, pairs_to_merge)
    return merges, stop_words


def encode(
    text: str,
    pattern: str,
    merges: Mapping[Pair, int],
    stop_words: Mapping[str, int],
    *found_tokens: Mapping[str, int],
) -> list[int]:
    """Encode a text. In each chunk, the pair that was merged first in training is always merged next.

    `found_tokens` are found before the text is split: special tokens, and in the text between these, added tokens. Of
    several tokens that start at the same position, the longest is found.

    >>> merges, _ = train({"aaabdaaabac": 1}, 259)
    >>> encode("aaabdaaabac", r"\\w+", merges, {})
    [258, 100, 258, 97, 99]
    >>> encode("aaab<s>a", r"\\w+", merges, {}, {"<s>": 300}, {"b": 301})
    [256, 97, 301, 300, 97]
    """
    tokens: list[int] = []
    if found_tokens:
        found, *others = found_tokens
        names = sorted(found, key=len, reverse=True)
        parts = regex.split(f"({'|'.join(map(regex.escape, names))})", text) if found else [text]
        for index, part in enumerate(parts):
            is_found = index % 2 == 1
            tokens += [found[part]] if is_found else encode(part, pattern, merges, stop_words, *others)
        return tokens
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
