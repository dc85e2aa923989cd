"""Model surgery: functions that return a valid new model. `Model` has them as methods; see docs/surgery.md.

Each keeps what it does not change, and appends what it did to "edited" in `Model.training`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, count, pairwise
from operator import index
from typing import TYPE_CHECKING, Any, get_args

from ..arguments import check_integer, check_iterable, is_index
from ..choices import Dependents
from ..errors import ArgumentError, ArgumentTypeError, DataError, short, warn
from ..patterns import Split

if TYPE_CHECKING:
    from . import Model

Pair = tuple[int, int]
STABLE_BATCH = 100
"""With batches up to this size, the first tokens of a vocabulary are nearly those of a smaller one: docs/surgery.md."""


def without(model: Model, tokens: Iterable[int | bytes | str], dependents: Dependents) -> Model:
    """Remove tokens: see `Model.without`."""
    if dependents not in get_args(Dependents):
        raise ArgumentError("dependents", dependents, f"must be one of {', '.join(map(repr, get_args(Dependents)))}")
    removed = {*_ids_of(model, tokens)}
    for byte, token in enumerate(model.byte_ids):
        if token in removed:
            reason = f"must not contain a byte, such as 0x{byte:02X}, without which text could not be encoded"
            raise ArgumentError("tokens", token, reason)
    note = {"operation": "without", "tokens": len(removed), "dependents": dependents}
    hidden = {*model.hidden}
    if dependents == "hide":
        merges = dict(model.merges)
        hidden |= removed & {*merges.values()}
    elif dependents == "rebuild":
        merges = _rebuilt(model, removed)
    else:
        affected = _with_dependents(model, removed)
        merges = {pair: token for pair, token in model.merges.items() if token not in affected}
    return _reduced(model, merges, hidden, removed, note)


def _ids_of(model: Model, tokens: Iterable[int | bytes | str]) -> Iterator[int]:
    """Yield the ids of tokens. Bytes, or a string, are all tokens with these bytes."""
    from . import UnknownTokenError

    reason, remedy = "must be a list of ids, bytes or strings", "use [token] for a single token"
    if isinstance(tokens, bytes):
        raise ArgumentTypeError("tokens", tokens, reason, remedy=remedy)
    check_iterable("tokens", tokens, reason, remedy)
    by_value: dict[bytes, list[int]] = {}
    for token in tokens:
        if isinstance(token, bytes | str):
            if not by_value:
                for known, value in model.vocab.items():
                    by_value.setdefault(value, []).append(known)
            value = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else token
            if value not in by_value:
                raise UnknownTokenError(f"token {short(token)} does not exist")
            yield from by_value[value]
        elif isinstance(token, bool) or not is_index(token):
            raise ArgumentTypeError("tokens", token, "must contain only ids, bytes or strings")
        elif index(token) not in model.vocab:
            raise UnknownTokenError.of_id(token, model.n_vocab - 1)
        else:
            yield index(token)


def _with_dependents(model: Model, tokens: Iterable[int]) -> set[int]:
    """Return tokens, and all tokens whose merge trees contain them."""
    users: dict[int, list[int]] = {}
    for pair, token in model.merges.items():
        for part in pair:
            users.setdefault(part, []).append(token)
    found = {*tokens}
    todo = [*found]
    while todo:
        new = {*users.get(todo.pop(), ())} - found
        found |= new
        todo += new
    return found


def _rebuilt(model: Model, removed: Collection[int]) -> dict[Pair, int]:
    """Return the merges without tokens, and with new merges for those that depended on them and can be reached."""
    affected = _with_dependents(model, removed)
    ranked = [*enumerate(model.merges.items())]
    unchanged = [(rank, pair, token) for rank, (pair, token) in ranked if token not in affected]
    lost = [(rank, token) for rank, (_, token) in ranked if token in affected and token not in removed]
    return _reached(model, unchanged, [(rank, token, model.vocab_with_hidden[token]) for rank, token in lost])


def _reached(
    model: Model, merges: Iterable[tuple[int, Pair, int]], tokens: Iterable[tuple[int, int, bytes]]
) -> dict[Pair, int]:
    """Add a merge for each token that can be reached: one that makes it from the two tokens its bytes encode to.

    Merges and tokens have ranks. A token is made of shorter ones, so these come first.
    """
    ranks = {pair: (rank, token) for rank, pair, token in merges}
    for rank, token, value in sorted(tokens, key=lambda token: len(token[2])):
        ids = [-1 if (byte_id := model.byte_ids[byte]) is None else byte_id for byte in value]
        while len(ids) > 2:
            found = [(*ranks[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in ranks]
            if not found:
                break
            _, merged, at = min(found)
            ids[at : at + 2] = [merged]
        if len(ids) == 2 and min(ids) >= 0:
            ranks.setdefault((ids[0], ids[1]), (rank, token))
    return {pair: token for pair, (_, token) in sorted(ranks.items(), key=lambda item: item[1])}


def pruned(model: Model, n: int, counts: Any) -> Model:
    """Remove the rarest leaves: see `Model.pruned`."""
    _check_size(model, n)
    frequencies = _frequencies(model, counts)
    pairs = {token: pair for pair, token in model.merges.items()}
    uses = Counter(chain.from_iterable(pairs.values()))
    kept = {*chain.from_iterable(model.phrases), *model.found_tokens.values(), *model.hidden}
    leaves = [(frequencies[token], -token) for token in pairs if not uses[token] and token not in kept]
    heapq.heapify(leaves)
    removed: set[int] = set()
    while model.vocab_size - len(removed) > n:
        if not leaves:
            reason = f"must be at least {model.vocab_size - len(removed)}, since only merges can be removed"
            raise ArgumentError("n", n, reason)
        frequency, leaf = heapq.heappop(leaves)
        removed.add(-leaf)
        todo = [*pairs[-leaf]]
        while todo:
            part = todo.pop()
            if part in model.hidden:
                todo += pairs[part]
            else:
                frequencies[part] += frequency
        todo = [*pairs[-leaf]]
        while todo:
            part = todo.pop()
            uses[part] -= 1
            if not uses[part] and part in model.hidden:
                todo += pairs[part]
            elif not uses[part] and part in pairs and part not in kept:
                heapq.heappush(leaves, (frequencies[part], -part))
    merges = {pair: token for pair, token in model.merges.items() if token not in removed}
    return _reduced(model, merges, model.hidden, removed, {"operation": "pruned", "n": n})


def _check_size(model: Model, n: int) -> None:
    check_integer("n", n)
    if n > model.vocab_size:
        raise ArgumentError("n", n, f"must be at most {model.vocab_size}, the number of tokens")


def _frequencies(model: Model, counts: Any) -> list[int]:
    """Return how often each id occurs in the text that was counted, up to the largest id."""
    import numpy as np  # not above, because every command would import it

    frequencies = np.zeros(model.next_id, np.uint64)
    if isinstance(counts, Mapping) and hasattr(counts, "arrays"):  # ChunkCounts, which is above this layer
        if counts.split != model.split:  # type: ignore[attr-defined]
            raise DataError(f"the counts were made with the pattern {counts.split}, but the model has {model.split}")  # type: ignore[attr-defined]
        ids, sizes = model.encoder().encode_chunks(counts.arrays.data, counts.arrays.offsets, None)
        np.add.at(frequencies, ids, np.repeat(counts.arrays.counts, sizes))
    else:
        given = np.asarray(counts)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) > len(frequencies) or (given < 0).any():
            reason = "must be chunk counts, or how often each id occurs, as an array"
            raise ArgumentTypeError("counts", counts, reason, remedy="use ChunkCounts.count")
        frequencies[: len(given)] = given
    found: list[int] = frequencies.tolist()
    return found


def truncated(model: Model, n: int) -> Model:
    """Keep the first tokens: see `Model.truncated`."""
    _check_size(model, n)
    merged = {*model.visible_merges.values(), *model.phrases.values()} - {*model.found_tokens.values()}
    room = n - model.vocab_size + len(merged)
    if room < 0:
        raise ArgumentError("n", n, f"must be at least {n - room}, since only merges and phrases can be removed")
    in_order = [*model.merges.values(), *sorted(model.phrases.values())]
    numbers = accumulate(token in merged for token in in_order)
    removed = {token for token, number in zip(in_order, numbers, strict=True) if number > room}
    if not removed.isdisjoint(model.merges.values()) and _is_batched(model.training):
        warn(
            "the model was trained in batches, so that its first tokens are not those of a smaller vocabulary; "
            f'train a smaller one, or use policy="serial" or max_batch_size={STABLE_BATCH}'
        )
    affected = _with_dependents(model, removed)  # including merges of tokens that later merges make
    merges = {pair: token for pair, token in model.merges.items() if token not in affected}
    removed -= {*model.found_tokens.values()}
    return _reduced(model, merges, model.hidden, removed, {"operation": "truncated", "n": n})


def _is_batched(training: Mapping[str, Any]) -> bool:
    """Return whether a model was trained in large batches, judging by its metadata.

    >>> _is_batched({"policy": "continue_search", "max_batch_size": 0}), _is_batched({"policy": "serial"})
    (True, False)
    """
    return training.get("policy", "serial") != "serial" and training.get("max_batch_size", 0) not in range(
        1, STABLE_BATCH + 1
    )


def _reduced(
    model: Model, merges: dict[Pair, int], hidden: Collection[int], removed: set[int], note: dict[str, Any]
) -> Model:
    """Return a model with fewer merges, or other merges for the same tokens, and without the tokens in `removed`.

    Tokens that become hidden get ids after all others. A special or added token that is not in `removed` stays, even if
    its merge does not.
    """
    merges = _without_needless(model, merges, hidden)
    left = {*merges.values()}
    hidden = left.intersection(hidden)
    lost = removed | hidden | ({*model.merges.values()} - left)
    moved = dict(zip(sorted(hidden - model.hidden), count(model.next_id), strict=False))
    names = {name for name, token in model.found_tokens.items() if token not in removed}
    reduced = replace(
        model,
        merges=_mapped(merges, moved),
        hidden=frozenset(moved.get(token, token) for token in hidden),
        stop_words={word: token for word, token in model.stop_words.items() if token not in removed},
        special_tokens={name: token for name, token in model.special_tokens.items() if name in names},
        added_tokens={name: token for name, token in model.added_tokens.items() if name in names},
        flags={name: flags for name, flags in model.flags.items() if name in names},
        phrases={parts: token for parts, token in model.phrases.items() if lost.isdisjoint((*parts, token))},
        decode_only={token: value for token, value in model.decode_only.items() if token not in removed},
        training=_noted(model, note),
    )
    return _with_carried(reduced, model)


def _without_needless(model: Model, merges: Mapping[Pair, int], hidden: Collection[int]) -> dict[Pair, int]:
    """Return merges without those of hidden tokens that no other merge uses, except those that none used before."""
    pairs = {token: pair for pair, token in merges.items()}
    before, uses = (Counter(chain.from_iterable(each)) for each in (model.merges, merges))
    droppable = {token for token in pairs.keys() & hidden if token not in model.hidden or before[token]}
    todo = [token for token in droppable if not uses[token]]
    while todo:
        pair = pairs.pop(todo.pop())
        uses.subtract(pair)
        todo += [part for part in {*pair} & droppable if not uses[part]]
    return {pair: token for pair, token in merges.items() if token in pairs}


def _noted(model: Model, note: dict[str, Any]) -> dict[str, Any]:
    edited = model.training.get("edited")
    return {**model.training, "edited": [*(edited if isinstance(edited, list) else ()), note]}


def _with_carried(model: Model, before: Model) -> Model:
    """Return a model that carries what `before` does, with its own special and added tokens."""
    if not before.carried:
        return model
    from ..formats.carried import check_carried, renumbered, without_roles
    from ..formats.roles import with_listed

    try:
        if model.byte_ids != before.byte_ids or model.found_tokens != before.found_tokens:
            gone = [name for name in before.found_tokens if name not in model.found_tokens]
            model = replace(model, carried=renumbered(without_roles(before.carried, gone), model))
        check_carried(model)
    except DataError as error:
        error.remedy = "keep the token, or remove what names it from `carried`"
        raise
    return with_listed(model, [name for name in model.special_tokens if name not in before.found_tokens])


def with_split(model: Model, split: Split | str) -> Model:
    """Replace the split: see `Model.with_split`."""
    new = Split.of(split)
    if new == model.split:
        return model
    return replace(
        model,
        split=new,
        phrases={parts: token for parts, token in model.phrases.items() if _is_split(model, parts, new)},
        training=_noted(model, {"operation": "with_split", "before": model.split.to_json()}),
    )


def _is_split(model: Model, parts: Sequence[int], split: Split) -> bool:
    """Return whether a split cuts the text of a phrase into its chunks."""
    chunks = [model.vocab[part] for part in parts]
    text = b"".join(chunks).decode("utf-8", "replace")
    return [chunk.encode() for chunk in split.chunks(text)] == chunks


def renumbered(model: Model) -> Model:
    """Close the gaps between ids: see `Model.renumbered`."""
    in_order = [
        *sorted(token for token in model.byte_ids if token is not None),
        *sorted(model.stop_words.values()),
        *model.visible_merges.values(),
        *sorted(model.phrases.values()),
        *sorted(model.decode_only),
        *sorted(model.found_tokens.values()),
        *(token for token in model.merges.values() if token in model.hidden),
    ]
    ids = dict(zip(dict.fromkeys(in_order), count(), strict=False))

    def mapped(tokens: Mapping[Any, int]) -> dict[Any, int]:
        return {key: ids[token] for key, token in tokens.items()}

    new = replace(
        model,
        byte_ids=tuple(None if token is None else ids[token] for token in model.byte_ids),
        merges=_mapped(model.merges, ids),
        hidden=frozenset(ids[token] for token in model.hidden),
        stop_words=mapped(model.stop_words),
        special_tokens=mapped(model.special_tokens),
        added_tokens=mapped(model.added_tokens),
        phrases={tuple(ids[part] for part in parts): ids[token] for parts, token in model.phrases.items()},
        decode_only={ids[token]: value for token, value in model.decode_only.items()},
        training=_noted(model, {"operation": "renumbered"}),
    )
    return _with_carried(new, model)


def merged_with(model: Model, other: Model) -> Model:
    """Add the tokens of another model: see `Model.merged_with`."""
    if not isinstance(other, type(model)):
        raise ArgumentTypeError("other", other, "must be a Model", remedy="use tokenizer.model")
    if other.split != model.split:
        raise ArgumentError("other", str(other.split), f"must have the pattern of this model, {model.split}")
    free = count(model.next_id)
    known = _ordinary(model)
    stop_words = {word: next(free) for word in other.stop_words if word not in known}
    merges, hidden = _united(model, other, free)
    whole = replace(model, merges=merges, hidden=hidden, stop_words={**model.stop_words, **stop_words})
    known = _ordinary(whole)
    known_phrases = {model.vocab[token] for token in model.phrases.values()}
    lacking = (parts for parts, token in other.phrases.items() if other.vocab[token] not in known_phrases)
    phrases = dict.fromkeys(tuple(known.get(other.vocab[part], -1) for part in parts) for parts in lacking)
    new_phrases = {parts: next(free) for parts in phrases if min(parts) >= 0}
    new = {name: next(free) for name in other.found_tokens if name not in model.found_tokens}
    special = {name: token for name, token in new.items() if name in other.special_tokens}
    added = {name: token for name, token in new.items() if name in other.added_tokens}
    whole = replace(
        whole,
        phrases={**model.phrases, **new_phrases},
        special_tokens={**model.special_tokens, **special},
        added_tokens={**model.added_tokens, **added},
        flags={**model.flags, **{name: other.flags_of(name) for name in new}},
    )
    note = {"operation": "merged_with", "tokens": whole.vocab_size - model.vocab_size}
    return _with_carried(replace(whole, training=_noted(model, note)), model)


def _ordinary(model: Model) -> dict[bytes, int]:
    """Return the ids of bytes, stop words and visible merges by their bytes."""
    phrases = {*model.phrases.values()}
    return {value: token for value, token in model.token_ids.items() if token not in phrases}


def _united(model: Model, other: Model, free: Iterator[int]) -> tuple[dict[Pair, int], frozenset[int]]:
    """Return the merges of both models, and the hidden tokens, which are visible in neither."""
    vocab, known = model.vocab_with_hidden, _ordinary(model)
    theirs = dict.fromkeys(other.vocab_with_hidden[token] for token in other.merges.values())
    unknown = theirs.keys() - known.keys() - {vocab[token] for token in model.hidden}
    # Hidden tokens keep these ids, which are above those that visible tokens get.
    new = dict(zip((value for value in theirs if value in unknown), count(model.next_id + other.vocab_size)))
    ranked = [(rank, pair, token) for rank, (pair, token) in enumerate(model.merges.items())]
    merges = _reached(model, ranked, [(token, token, value) for value, token in new.items()])
    shown = {other.vocab[token] for token in other.visible_merges.values()} - known.keys()
    hidden = {token for token in model.hidden if vocab[token] not in shown}
    hidden |= {token for value, token in new.items() if value not in shown}
    merges = _without_needless(model, merges, hidden)
    ids = {token: token if token in model.vocab or token in hidden else next(free) for token in merges.values()}
    return _mapped(merges, ids), frozenset(hidden & {*merges.values()})


def _mapped(merges: Mapping[Pair, int], ids: Mapping[int, int]) -> dict[Pair, int]:
    """Replace the ids of tokens by others, if these are given."""
    return {(ids.get(a, a), ids.get(b, b)): ids.get(token, token) for (a, b), token in merges.items()}
