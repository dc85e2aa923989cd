"""The page's API: functions of a `Workspace` and parameters that return JSON-ready data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..analysis.comparison import Comparison, Offsets
from ..analysis.inspection import ChunkInfo, TokenInfo, inspect_counts, training_log
from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays
from ..errors import ArgumentError, DataError
from ..tokenizer import Tokenizer
from .parameters import Parameters, index_of, integer, page_of, query_of
from .vocabulary import TokenCounts, Vocabulary
from .workspace import Workspace

MAX_BUILT = 200
"""Maximum number of tokens in the list of those that are built from a token."""
MAX_PARTS = 2000
"""Maximum number of tokens in a merge tree."""
MAX_FOUND = 2000
"""Maximum number of chunks that a search finds."""
MAX_BYTES = 256
"""Maximum number of bytes of a token or chunk in an answer. Its field `bytes` is the number without this limit."""
MAX_OTHERS = 8
"""Maximum number of tokens of another vocabulary that a row of a diff contains."""
MAX_TOKENS = 1 << 21
"""Maximum number of tokens of a text in an answer, in all models together."""
Answer = dict[str, Any]


def workspace(space: Workspace) -> Answer:
    """Describe everything that was loaded.

    >>> from batchbpe import Tokenizer
    >>> answer = workspace(Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)}))
    >>> answer["models"][0]["name"], answer["models"][0]["log"]["size"]
    ('mine', [1, 1, 1])
    """
    return {
        "version": __version__,
        "text": space.text,
        "has_data": "data" in space.token_counts,
        "models": [{"name": name} | _model(tokenizer) for name, tokenizer in space.tokenizers.items()],
        "counts": [{"name": name} | _counts(counts) for name, counts in space.counts.items()],
    }


def _model(tokenizer: Tokenizer) -> Answer:
    model = tokenizer.model
    log = training_log(model.training)
    if log and sum(log.size) > len(model.merges):  # the log of another model
        log = None
    return {
        "tokens": len(model.vocab),
        "merges": len(model.merges),
        "stop_words": len(model.stop_words),
        "phrases": len(model.phrases),
        "special_tokens": list(model.special_tokens.values()),
        "pattern": model.split.name,
        "log": log and asdict(log),
    }


def _counts(counts: ChunkCounts) -> Answer:
    summary = asdict(inspect_counts(counts, top=0))
    ranks = np.unique(np.geomspace(1, max(1, counts.unique), 240).astype(np.int64))[: counts.unique]
    shown = ("total", "unique", "share_of_most_frequent", "longest_chunk")
    curve = {"rank": ranks.tolist(), "count": counts.arrays.counts[ranks - 1].tolist()}
    return {name: summary[name] for name in shown} | {"pattern": summary["split"], "curve": curve}


def encode(space: Workspace, given: Parameters) -> Answer:
    """Encode a text with all tokenizers, or only with `model`; `merges` limits it to its first merges.

    Offsets are in UTF-16 code units, as in JavaScript. `ends` has one number per token; a token that ends inside a
    character has the bitwise complement of the end of that character. If there are more than `MAX_TOKENS`, the answer
    contains those up to the offset `shown`, which is a boundary in all models; `tokens` is the number without this
    limit.

    >>> from batchbpe import Tokenizer
    >>> space = Workspace({"one": Tokenizer.train("aaab", 257), "bytes": Tokenizer.train("a", 256)})
    >>> answer = encode(space, {"text": "aaé"})
    >>> answer["models"][0]["ids"], answer["models"][0]["ends"], answer["differences"]
    ([256, 195, 169], [2, -4, 3], [0, 2])
    """
    text = given["text"]
    if "model" in given or "merges" in given:
        merges = integer(given, "merges") if "merges" in given else None
        return encoded(space.replay(text, index_of(given, "model", space.models), merges))
    key, comparison = space.compare(text)
    return {"key": key} | encoded(comparison)


def encoded(comparison: Comparison) -> Answer:
    """Return the tokens of a text; see `encode`."""
    data = np.frombuffer(comparison.bytes, np.uint8)
    is_start = (data & 0xC0) != 0x80
    units = np.concatenate([[0], np.cumsum(is_start.astype(np.int64) + (data >= 0xF0))])
    inside = np.append(~is_start, False)

    def in_units(offsets: Offsets) -> list[int]:
        ends: list[int] = np.where(inside[offsets], ~units[offsets], units[offsets]).tolist()
        return ends

    shown = _shown(comparison, inside)
    models = []
    for name, ids in comparison.ids.items():
        starts, ends = comparison.spans[name]
        number = int(np.searchsorted(ends, shown, side="right"))
        model: Answer = {"name": name, "tokens": len(ids), "ids": ids[:number].tolist()}
        model["ends"] = in_units(ends[:number])
        if int((ends - starts).sum()) < len(data):  # the pattern drops some of the text
            model["starts"] = in_units(starts[:number])
        models.append(model)
    differences = comparison.differences
    visible = differences[: np.searchsorted(differences[:, 1], shown, side="right")]
    return {
        "bytes": len(data),
        "characters": int(is_start.sum()),
        "shown": int(units[shown]),
        "models": models,
        "differences": units[visible].ravel().tolist(),
        "differences_total": len(differences),
    }


def _shown(comparison: Comparison, inside: npt.NDArray[np.bool_]) -> int:
    """Return how many bytes to show so that the models have at most `MAX_TOKENS` tokens there."""
    if sum(map(len, comparison.ids.values())) <= MAX_TOKENS:
        return len(comparison.bytes)
    offsets = comparison.common[~inside[comparison.common]]
    tokens = sum(np.searchsorted(ends, offsets, side="right") for _, ends in comparison.spans.values())
    return int(offsets[np.searchsorted(tokens, MAX_TOKENS, side="right") - 1])


def token(space: Workspace, given: Parameters) -> Answer:
    """Describe a token, all tokens that it is built from, and the tokens that are built from it.

    >>> from batchbpe import Tokenizer
    >>> answer = token(Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)}), {"id": "256"})
    >>> answer["token"]["parts"], answer["built"][0]["text"], answer["built_total"]
    ((97, 97), 'aaab', 1)
    """
    index, number = index_of(given, "model", space.models), integer(given, "id")
    vocabulary, counts = space.vocabularies[index], _token_counts(space, given, index)
    if number not in vocabulary.model.vocab_with_hidden:
        raise ArgumentError("id", number, f"must be the id of a token of {list(space.tokenizers)[index]}")
    todo, found = [number], dict.fromkeys([number])
    while todo and len(found) < MAX_PARTS:
        for part in vocabulary.parts.get(todo.pop(), ()):
            if part not in found:
                found[part] = None
                todo.append(part)
    built = vocabulary.built_from(number)
    return {
        "token": _token(vocabulary, number, counts),
        "parts": {str(each): _token(vocabulary, each, counts) for each in found},
        "built": [_token(vocabulary, each, counts) for each in built[:MAX_BUILT]],
        "built_total": len(built),
    }


def _info(number: int, value: bytes) -> Answer:
    return asdict(TokenInfo.of(number, _beginning(value))) | {"bytes": len(value)}


def _token(vocabulary: Vocabulary, number: int, counts: TokenCounts | None) -> Answer:
    value = vocabulary.model.vocab_with_hidden[number]
    return _info(number, value) | {
        "kind": vocabulary.kind(number),
        "rank": vocabulary.rank.get(number),
        "parts": vocabulary.parts.get(number, ()),
        "count": None if counts is None or number in vocabulary.model.hidden else int(counts.by_id[number]),
    }


def vocabulary(space: Workspace, given: Parameters) -> Answer:
    """List tokens of a vocabulary. The parameters are those of `Query`, and `start` and `rows`.

    >>> from batchbpe import Tokenizer
    >>> space = Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)})
    >>> answer = vocabulary(space, {"search": "ab", "rows": "1"})
    >>> answer["total"], [row["id"] for row in answer["rows"]], answer["facets"]["kind"]
    (2, [257], {'byte': 256, 'merge': 3})
    """
    index = index_of(given, "model", space.models)
    vocabulary, counts = space.vocabularies[index], _token_counts(space, given, index)
    found = vocabulary.find(query_of(given), counts)
    rows = [_token(vocabulary, number, counts) for number in found[page_of(given)].tolist()]
    return {"total": len(found), "rows": rows, "facets": vocabulary.facets}


def diff(space: Workspace, given: Parameters) -> Answer:
    """List tokens that only one of two vocabularies has, or that have another id.

    `part` is "removed" (only in `before`), "added" (only in `after`) or "moved". `others` are the first tokens of the
    other vocabulary that replace a token, `others_total` is their number. The other parameters are those of `Query`,
    `start` and `rows`.

    >>> from batchbpe import Tokenizer
    >>> space = Workspace({size: Tokenizer.train("aaabdaaabac", int(size)) for size in ("257", "259")})
    >>> answer = diff(space, {"before": "0", "after": "1", "part": "added"})
    >>> answer["counts"], [(row["text"], [other["text"] for other in row["others"]]) for row in answer["rows"]]
    ({'kept': 257, 'moved': 0, 'added': 2, 'removed': 0}, [('ab', ['a', 'b']), ('aaab', ['aa', 'a', 'b'])])
    """
    before, after = (index_of(given, name, space.models) for name in ("before", "after"))
    part = given.get("part", "removed")
    if part not in ("removed", "added", "moved"):
        raise ArgumentError("part", part, "must be 'removed', 'added' or 'moved'")
    id_map = space.id_map(before, after)
    ids = id_map.removed if part == "removed" else id_map.tokens[id_map.changes == part]
    own, other = (before, after) if part == "removed" else (after, before)
    vocabulary, others = space.vocabularies[own], space.vocabularies[other].model.vocab_with_hidden
    found = vocabulary.find(query_of(given))
    found = found[np.isin(found, ids)]
    replaced = id_map.reverse if part == "removed" else id_map
    rows = [
        _token(vocabulary, number, None) | _others(others, replaced.parts(number))
        for number in found[page_of(given)].tolist()
    ]
    return {"counts": id_map.counts, "total": len(found), "rows": rows}


def _others(vocab: Mapping[int, bytes], parts: Sequence[int]) -> Answer:
    return {"others": [_info(each, vocab[each]) for each in parts[:MAX_OTHERS]], "others_total": len(parts)}


def chunks(space: Workspace, given: Parameters) -> Answer:
    """List the chunks in a file of counts, most frequent first, or the first ones that contain a text.

    >>> answer = chunks(Workspace(counts={"a": ChunkCounts.count("to be or not to be")}), {"search": "o"})
    >>> answer["total"], [row["text"] for row in answer["rows"]]
    (4, [' not', ' or', ' to', 'to'])
    """
    files = list(space.counts.values())
    counts = files[index_of(given, "file", files)]
    search = str(given.get("search", "")).encode("utf-8", "surrogatepass")
    found, has_more = _find_chunks(counts.arrays, search) if search else (range(counts.unique), False)
    rows = [_chunk(counts.arrays, index) for index in found[page_of(given)]]
    return {"total": len(found), "has_more": has_more, "rows": rows}


def _find_chunks(arrays: ChunkArrays, search: bytes) -> tuple[Sequence[int], bool]:
    """Return the indices of the first chunks that contain bytes, and whether there are more.

    The core stores chunks one after the other. Only the first match in a chunk matters: if it continues in the next
    chunk, so do all others in this chunk.
    """
    found: list[int] = []
    pattern, data, end = re.compile(re.escape(search)), memoryview(arrays.data.data), 0
    while match := pattern.search(data, end):
        index = int(np.searchsorted(arrays.offsets, match.start(), side="right")) - 1
        end = int(arrays.offsets[index + 1])
        if match.end() <= end:
            if len(found) == MAX_FOUND:
                return found, True
            found.append(index)
    return found, False


def _chunk(arrays: ChunkArrays, index: int) -> Answer:
    start, end = arrays.offsets[index : index + 2].tolist()
    value = _beginning(arrays.data[start : min(end, start + MAX_BYTES + 1)].tobytes())
    return asdict(ChunkInfo.of(value, int(arrays.counts[index]))) | {"bytes": end - start, "rank": index + 1}


def _beginning(value: bytes) -> bytes:
    """Return at most `MAX_BYTES` bytes, without cutting the last character."""
    end = min(len(value), MAX_BYTES)
    while end < len(value) and value[end] & 0xC0 == 0x80 and end > MAX_BYTES - 3:
        end -= 1
    return value[:end]


def _token_counts(space: Workspace, given: Parameters, index: int) -> TokenCounts | None:
    key = given.get("corpus")
    if not key:
        return None
    counts = space.token_counts.get(key)
    if counts is None:
        raise DataError(f"the text {key} is no longer cached", remedy="encode it again")
    return counts[index]
