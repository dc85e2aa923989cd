"""Phrases in plain Python, as an addition to `reference`: runs of whole-chunk tokens, training, and longest match.

The tests compare the core with this module: both produce the same ids.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping

import regex

from . import Chunks, Pair, encode, get_stats, merge_batch, safe_batch

Phrase = tuple[int, ...]


def split_into_tokens(
    text: str,
    pattern: str,
    merges: Mapping[Pair, int],
    stop_words: Mapping[str, int],
    *,
    hidden: Collection[int] = (),
) -> list[list[int]]:
    """Return the ids of each chunk, with an empty list between chunks that do not touch.

    >>> split_into_tokens("to, be", r" ?\\w+", {}, {"to": 256})
    [[256], [], [32, 98, 101]]
    """
    tokens: list[list[int]] = []
    end = 0
    for match in regex.finditer(pattern, text):
        if match.group():
            tokens += [[]] * (match.start() > end)
            tokens.append(encode(match.group(), r"(?s).+", merges, stop_words, hidden=hidden))
            end = match.end()
    return tokens


def find_runs(texts: Iterable[Iterable[list[int]]], is_eligible: Callable[[int], bool]) -> list[list[int]]:
    """Return the runs of eligible single-token chunks. Each text is given as the ids of each of its chunks.

    >>> find_runs([[[300], [301], [302], [97, 98], [300], [301]]], lambda token: token != 302)
    [[300, 301], [300, 301]]
    """
    runs: list[list[int]] = []
    for chunks in texts:
        runs.append([])
        for tokens in chunks:
            if len(tokens) == 1 and is_eligible(tokens[0]):
                runs[-1].append(tokens[0])
            else:
                runs.append([])
    return [run for run in runs if len(run) > 1]


def train_phrases(
    runs: Iterable[list[int]],
    wanted: int,
    next_id: int,
    *,
    vocab_size: int,
    max_words: int = 4,
    cap_divisor: int = 2,
    policy: str = "continue_search",
    is_wanted: Callable[[Phrase], bool] = lambda phrase: True,
) -> dict[Phrase, int]:
    """Merge pairs of chunks as Listing 1 merges pairs of tokens. `vocab_size` is the number of tokens at the start.

    Pairs of more than `max_words` chunks, with the chunks of a phrase, or that are not wanted, are left out.

    >>> train_phrases([[300, 301, 302]] * 2 + [[300, 301]], 2, 303, vocab_size=303)
    {(300, 301): 303, (300, 301, 302): 304}
    """
    ids: Chunks = [(list(run), 1) for run in runs]
    chunks_of: dict[int, Phrase] = {token: (token,) for run, _ in ids for token in run}
    phrases: dict[Phrase, int] = {}
    while len(phrases) < wanted:
        n = min((wanted - len(phrases)) // cap_divisor, vocab_size + len(phrases)) or 1
        stats = {}
        for pair, count in get_stats(ids).items():
            phrase = chunks_of[pair[0]] + chunks_of[pair[1]]
            if len(phrase) <= max_words and phrase not in phrases and is_wanted(phrase):
                stats[pair] = count
        top_pairs = heapq.nsmallest(n, stats, key=lambda pair: (-stats[pair], pair))
        if not top_pairs:
            break
        batch = top_pairs[:1] if policy == "serial" else safe_batch(top_pairs, policy)
        new: dict[Pair, int] = {}
        for pair in batch:
            phrase = chunks_of[pair[0]] + chunks_of[pair[1]]
            if phrase not in phrases:
                new[pair] = phrases[phrase] = next_id + len(phrases)
                chunks_of[phrases[phrase]] = phrase
        merge_batch(ids, new)
    return phrases


def encode_phrases(chunks: Iterable[list[int]], phrases: Mapping[Phrase, int]) -> list[int]:
    """Encode a text, given the ids of each of its chunks. The longest phrase that starts at a chunk is used.

    >>> encode_phrases([[300], [301], [97, 98], [301]], {(300, 301): 302})
    [302, 97, 98, 301]
    """
    todo = list(chunks)
    longest = max(map(len, phrases), default=1)
    ids: list[int] = []
    start = 0
    while start < len(todo):
        for n in range(longest, 1, -1):
            phrase = tuple(tokens[0] for tokens in todo[start : start + n] if len(tokens) == 1)
            if len(phrase) == n and phrase in phrases:
                ids.append(phrases[phrase])
                start += n
                break
        else:
            ids += todo[start]
            start += 1
    return ids
