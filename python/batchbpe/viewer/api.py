"""What the page asks: functions from a `Workspace` and parameters to data that can be written as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..analysis.comparison import Comparison, Offsets
from ..analysis.inspection import ChunkInfo, TokenInfo, inspect_counts, training_log
from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays
from ..errors import ArgumentError, DataError
from ..patterns import pattern_name
from ..tokenizer import Tokenizer
from .vocabulary import Query, TokenCounts
from .workspace import Workspace

MAX_ROWS = 500
"""Most rows in an answer."""
MAX_BUILT = 200
"""Most tokens in the list of those that are built from a token."""
MAX_PARTS = 2000
"""Most tokens in a merge tree."""
MAX_FOUND = 2000
"""Most chunks that a search finds."""
MAX_BYTES = 256
"""Most bytes of a token or chunk in an answer. The number of its bytes tells that it was shortened."""
MAX_TOKENS = 1 << 21
"""Most tokens of a text in an answer, in all models together."""
Answer = dict[str, Any]
Parameters = Mapping[str, Any]


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
    return {name: summary[name] for name in shown} | {"pattern": pattern_name(summary["pattern"]), "curve": curve}


def encode(space: Workspace, given: Parameters) -> Answer:
    """Encode a text with all tokenizers, or only with `model`; `merges` limits it to its first merges.

    Offsets are in UTF-16 code units, as JavaScript counts. `ends` has one number per token; a token that ends inside a
    character has the bitwise complement of the end of that character. If there are more than `MAX_TOKENS`, the answer
    has those up to the offset `shown`, which is a boundary in all models; `tokens` are the numbers without this limit.

    >>> from batchbpe import Tokenizer
    >>> space = Workspace({"one": Tokenizer.train("aaab", 257), "bytes": Tokenizer.train("a", 256)})
    >>> answer = encode(space, {"text": "aaé"})
    >>> answer["models"][0]["ids"], answer["models"][0]["ends"], answer["differences"]
    ([256, 195, 169], [2, -4, 3], [0, 2])
    """
    text = given["text"]
    if "model" in given or "merges" in given:
        merges = _integer(given, "merges") if "merges" in given else None
        return encoded(space.replay(text, _model_place(space, given), merges))
    key, comparison = space.compare(text)
    return {"key": key} | encoded(comparison)


def encoded(comparison: Comparison) -> Answer:
    """Return the tokens of a text; see `encode`."""
    data = np.frombuffer(comparison.bytes, np.uint8)
    is_start = (data & 0xC0) != 0x80
    units = np.concatenate([[0], np.cumsum(is_start.astype(np.int64) + (data >= 0xF0))])
    inside = np.append(~is_start, False)

    def offsets(places: Offsets) -> list[int]:
        ends: list[int] = np.where(inside[places], ~units[places], units[places]).tolist()
        return ends

    shown = _shown(comparison, inside)
    models = []
    for name, ids in comparison.ids.items():
        starts, ends = comparison.spans[name]
        number = int(np.searchsorted(ends, shown, side="right"))
        model: Answer = {"name": name, "tokens": len(ids), "ids": ids[:number].tolist(), "ends": offsets(ends[:number])}
        if int((ends - starts).sum()) < len(data):  # the pattern drops some of the text
            model["starts"] = offsets(starts[:number])
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
    places = comparison.common[~inside[comparison.common]]
    tokens = sum(np.searchsorted(ends, places, side="right") for _, ends in comparison.spans.values())
    return int(places[np.searchsorted(tokens, MAX_TOKENS, side="right") - 1])


def token(space: Workspace, given: Parameters) -> Answer:
    """Describe a token: what it is built from, completely, and what is built from it.

    >>> from batchbpe import Tokenizer
    >>> answer = token(Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)}), {"id": "256"})
    >>> answer["token"]["parts"], answer["built"][0]["text"], answer["built_total"]
    ((97, 97), 'aaab', 1)
    """
    place, number = _model_place(space, given), _integer(given, "id", 0)
    vocabulary = space.vocabularies[place]
    if number not in vocabulary.model.vocab:
        raise ArgumentError("id", number, f"must be the id of a token of {_name(space, place)}")
    counted = _counted(space, given)
    todo, found = [number], dict.fromkeys([number])
    while todo and len(found) < MAX_PARTS:
        for part in vocabulary.parts.get(todo.pop(), ()):
            if part not in found:
                found[part] = None
                todo.append(part)
    built = vocabulary.built_from(number)
    tokens = {each: _token(space, place, each, counted) for each in [*found, *built[:MAX_BUILT]]}
    return {
        "token": tokens[number],
        "parts": {str(each): tokens[each] for each in found},
        "built": [tokens[each] for each in built[:MAX_BUILT]],
        "built_total": len(built),
    }


def _token(space: Workspace, place: int, number: int, counted: list[TokenCounts] | None = None) -> Answer:
    vocabulary = space.vocabularies[place]
    value = vocabulary.model.vocab[number]
    return asdict(TokenInfo.of(number, _beginning(value))) | {
        "bytes": len(value),
        "kind": vocabulary.kind(number),
        "rank": vocabulary.rank.get(number),
        "parts": vocabulary.parts.get(number, ()),
        "count": None if counted is None else int(counted[place].of[number]),
    }


def vocabulary(space: Workspace, given: Parameters) -> Answer:
    """List tokens of a vocabulary; the parameters are those of `Query`, and `start` and `rows`.

    >>> from batchbpe import Tokenizer
    >>> space = Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)})
    >>> answer = vocabulary(space, {"search": "ab", "rows": "1"})
    >>> answer["total"], [row["id"] for row in answer["rows"]], answer["facets"]["kind"]
    (2, [257], {'byte': 256, 'merge': 3})
    """
    place = _model_place(space, given)
    counted = _counted(space, given)
    index = space.vocabularies[place]
    found = index.find(_query(given), None if counted is None else counted[place])
    start, rows = _integer(given, "start", 0), min(_integer(given, "rows", 100), MAX_ROWS)
    return {
        "total": len(found),
        "rows": [_token(space, place, number, counted) for number in found[start : start + rows].tolist()],
        "facets": index.facets,
    }


def _query(given: Parameters) -> Query:
    options: Answer = {each.name: given[each.name] for each in fields(Query) if given.get(each.name)}
    for name, default in ((each.name, each.default) for each in fields(Query)):
        if name in options and not isinstance(default, str):
            options[name] = given[name] == "1" if isinstance(default, bool) else _integer(given, name)
    return Query(**options)


def chunks(space: Workspace, given: Parameters) -> Answer:
    """List the chunks of a file of counts, most frequent first, or the first that contain a text.

    >>> answer = chunks(Workspace(counts={"a": ChunkCounts.count("to be or not to be")}), {"search": "o"})
    >>> answer["total"], [row["text"] for row in answer["rows"]]
    (4, [' not', ' or', ' to', 'to'])
    """
    place = _integer(given, "file", 0)
    if place >= len(space.counts):
        raise ArgumentError("file", place, f"must be less than {len(space.counts)}")
    counts = list(space.counts.values())[place]
    start, rows = _integer(given, "start", 0), min(_integer(given, "rows", 100), MAX_ROWS)
    search = str(given.get("search", "")).encode("utf-8", "surrogatepass")
    found, has_more = _find_chunks(counts.arrays, search) if search else (range(counts.unique), False)
    listed = [_chunk(counts.arrays, index) for index in found[start : start + rows]]
    return {"total": len(found), "has_more": has_more, "rows": listed}


def _find_chunks(arrays: ChunkArrays, search: bytes) -> tuple[Sequence[int], bool]:
    """Return the indices of the first chunks that contain bytes, and whether there are more.

    The core stores chunks one after the other. Only the first match in a chunk counts: if it continues in the next
    chunk, all others in this one do so, too.
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
    chunk = ChunkInfo.of(value.decode("utf-8", "surrogateescape"), int(arrays.counts[index]))
    return asdict(chunk) | {"bytes": end - start, "rank": index + 1}


def _beginning(value: bytes) -> bytes:
    """Return at most `MAX_BYTES` bytes, and not a part of the last character.

    >>> len(_beginning(b"a" * 300)), len(_beginning("é日".encode() * 100))
    (256, 255)
    """
    end = min(len(value), MAX_BYTES)
    while end < len(value) and value[end] & 0xC0 == 0x80 and end > MAX_BYTES - 3:
        end -= 1
    return value[:end]


def _counted(space: Workspace, given: Parameters) -> list[TokenCounts] | None:
    key = given.get("corpus")
    if not key:
        return None
    counted = space.token_counts.get(key)
    if counted is None:
        raise DataError(f"the text {key} is not known any more", remedy="encode it again")
    return counted


def _model_place(space: Workspace, given: Parameters) -> int:
    place = _integer(given, "model", 0)
    if place >= len(space.models):
        raise ArgumentError("model", place, f"must be less than {len(space.models)}")
    return place


def _name(space: Workspace, place: int) -> str:
    return next(islice(space.tokenizers, place, None))


def _integer(given: Parameters, name: str, default: int = 0) -> int:
    text = str(given.get(name, default))
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ArgumentError(name, text, "must be an integer of at least 0")
    return int(text)
