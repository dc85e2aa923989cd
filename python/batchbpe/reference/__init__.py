"""The whole algorithm in plain Python, to read along with the paper: split, count, train (Listing 1), encode.

The tests compare the core with this module: both produce the same ids. It needs the `regex` package.
"""

from __future__ import annotations

import heapq
import itertools
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

try:
    import regex
except ImportError:
    raise ImportError("batchbpe.reference requires regex; run pip install 'batchbpe[reference]'") from None

if TYPE_CHECKING:
    from ..choices import Normalization
    from ..patterns import Split, Step

Pair = tuple[int, int]
Chunks = list[tuple[list[int], int]]


def split(text: str, pattern: Split | str) -> list[str]:
    """Split a text into chunks. Text that the pattern, a regular expression or a `Split`, does not match is dropped.

    >>> split("to be", r" ?\\w+")
    ['to', ' be']
    """
    pieces = [text]
    if not isinstance(pattern, str):
        pieces = [normalize(text, pattern)]
        for step in pattern.steps:
            pieces = [part for piece in pieces for part in cut(piece, step)]
        pattern = pattern.pattern
    return [match.group() for piece in pieces for match in regex.finditer(pattern, piece) if match.group()]


def normalize(text: str, split: Split) -> str:
    """Normalize a text, and put a space before it if the split asks for one.

    >>> from batchbpe.patterns import Split
    >>> normalize("e\\u0301", Split("a", normalization="NFC", prefix_space=True))
    ' é'
    """
    text = to_form(text, split.normalization)
    return f" {text}" if split.prefix_space and text and not text.startswith(" ") else text


def to_form(text: str, form: Normalization) -> str:
    """Return a text in a Unicode normalization form.

    >>> to_form("e\\u0301", "NFC"), to_form("e\\u0301", "none") == "e\\u0301"
    ('é', True)
    """
    return text if form == "none" else unicodedata.normalize(form, text)


def cut(text: str, step: Step) -> list[str]:
    """Cut a text at the matches of a step, as Hugging Face's library does.

    >>> from batchbpe.patterns import Step
    >>> cut("a--b", Step("-")), cut("a--b", Step("-", "Contiguous")), cut("a--b", Step("-", "MergedWithNext"))
    (['a', '-', '-', 'b'], ['a', '--', 'b'], ['a', '-', '-b'])
    """
    parts: list[tuple[str, bool]] = []  # with whether each is a match, or the last part of it
    start = 0
    spans = [match.span() for match in regex.finditer(step.pattern, text)]
    for begin, end in [*spans, (len(text), len(text))]:
        for part, is_match in ((text[start:begin], step.invert), (text[begin:end], not step.invert)):
            was_match = parts[-1][1] if parts else None
            is_joined = {
                "MergedWithPrevious": (was_match, is_match) == (False, True),
                "MergedWithNext": (was_match, is_match) == (True, False),
                "Contiguous": was_match == is_match,
            }
            if part and is_joined.get(step.behavior):
                parts[-1] = parts[-1][0] + part, is_match
            elif part:
                parts.append((part, is_match))
        start = end
    return [part for part, is_match in parts if step.behavior != "Removed" or not is_match]


def count_chunks(texts: Iterable[str], pattern: Split | str) -> dict[str, int]:
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
    pattern: Split | str,
    merges: Mapping[Pair, int],
    stop_words: Mapping[str, int],
    found_tokens: Mapping[str, int] | None = None,
    *,
    flags: Mapping[str, Collection[str]] | None = None,
    byte_ids: Sequence[int | None] = range(256),
    hidden: Collection[int] = (),
) -> list[int]:
    """Encode a text. In each chunk, the pair whose merge comes first is always merged next.

    A chunk that is a stop word is not merged. A byte without an id is left out before merging. After merging, `hidden`
    tokens are replaced by their parts. `found_tokens` are found before the text is split: those without the flag
    "normalized" in the text, and then the others in the normalized text between them.

    >>> merges, _ = train({"aaabdaaabac": 1}, 259)
    >>> encode("aaabdaaabac", r"\\w+", merges, {})
    [258, 100, 258, 97, 99]
    >>> encode("aaab<s>a", r"\\w+", merges, {}, {"<s>": 300, "b": 301}, flags={"b": ["normalized"]})
    [256, 97, 301, 300, 97]
    >>> encode("aaabdaaabac", r"\\w+", merges, {}, hidden={258})
    [256, 257, 100, 256, 257, 97, 99]
    """
    found_tokens, flags = found_tokens or {}, flags or {}
    form = "none" if isinstance(pattern, str) else pattern.normalization
    names = [name for name in found_tokens if "normalized" in flags.get(name, ())]
    raw = {name: token for name, token in found_tokens.items() if name not in names}
    others = {to_form(name, form): found_tokens[name] for name in names}
    flags_of_others = {to_form(name, form): flags[name] for name in names}
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    parts_of_hidden = {token: pair for pair, token in merges.items() if token in hidden}
    tokens: list[int] = []
    for part in find_tokens(text, raw, flags):
        if isinstance(part, int):
            tokens.append(part)
            continue
        for piece in find_tokens(to_form(part, form), others, flags_of_others):
            if isinstance(piece, int):
                tokens.append(piece)
                continue
            for chunk in split(piece, pattern):
                if chunk in stop_words:
                    tokens.append(stop_words[chunk])
                    continue
                ids = [token for byte in chunk.encode() if (token := byte_ids[byte]) is not None]
                while len(ids) > 1:
                    pairs = [*itertools.pairwise(ids)]
                    places = [ranks.get(pair, len(ranks)) for pair in pairs]
                    at = places.index(min(places))  # the leftmost
                    if pairs[at] not in merges:
                        break
                    ids[at : at + 2] = [merges[pairs[at]]]
                tokens += show(ids, parts_of_hidden)
    return tokens


def show(ids: Iterable[int], parts_of_hidden: Mapping[int, Pair]) -> list[int]:
    """Replace hidden tokens by their parts, until only visible tokens remain.

    >>> show([258, 97], {256: (97, 97), 258: (256, 257)})
    [97, 97, 257, 97]
    """
    visible = []
    stack = [*ids][::-1]
    while stack:
        token = stack.pop()
        if token in parts_of_hidden:
            stack += reversed(parts_of_hidden[token])
        else:
            visible.append(token)
    return visible


def find_tokens(text: str, tokens: Mapping[str, int], flags: Mapping[str, Collection[str]]) -> list[str | int]:
    """Cut a text at tokens as Hugging Face does: into the ids of tokens and the text between them, which is not empty.

    Of several tokens that start at the same position, the longest is found.

    >>> find_tokens("a <mask> b<mask>", {"<mask>": 300}, {"<mask>": ["lstrip", "single_word"]})
    ['a', 300, ' b<mask>']
    """
    names = sorted(tokens, key=len, reverse=True)
    parts: list[str | int] = []
    done = 0
    for found in regex.finditer("|".join(map(regex.escape, names)), text) if names else ():
        start, end = found.span()
        its_flags = flags.get(found.group(), ())
        if "single_word" in its_flags and (is_word(text[start - 1 : start]) or is_word(text[end : end + 1])):
            continue
        if "lstrip" in its_flags:
            start = max(done, len(text[:start].rstrip(_SPACE)))
        if "rstrip" in its_flags:
            end = len(text) - len(text[end:].lstrip(_SPACE))
        if start == end:
            continue  # the token before has stripped all of it
        parts += [text[done:start]] if done < start else []
        parts.append(tokens[found.group()])
        done = end
    return [*parts, text[done:]] if done < len(text) else parts


_SPACE = "".join(c for c in map(chr, range(0x3001)) if regex.match(r"\p{White_Space}", c))


def is_word(character: str) -> bool:
    """Return whether a character is a letter, mark, digit, connector or joiner, as Rust's `\\w` defines it.

    >>> is_word("é"), is_word("_"), is_word("²"), is_word("")
    (True, True, False, False)
    """
    return bool(regex.match(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]", character))
