"""Model surgery: functions that return a valid new model. `Model` has them as methods.

See https://batchbpe.github.io/batchbpe/surgery.html.

Each keeps what it does not change, and appends what it did to "edited" in `Model.training`.
"""

from __future__ import annotations

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
"""With batches up to this size, the first tokens of a vocabulary are nearly those of a smaller one.

See https://batchbpe.github.io/batchbpe/surgery.html.
"""


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
    return reduced(model, merges, hidden, removed, note)


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
    return reached(model, unchanged, [(rank, token, model.vocab_with_hidden[token]) for rank, token in lost])


def reached(
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


def checked_size(model: Model, n: int) -> int:
    """Return a number of tokens to reduce a model to. Raise if it has fewer."""
    check_integer("n", n)
    if n > model.vocab_size:
        raise ArgumentError("n", n, f"must be at most {model.vocab_size}, the number of tokens")
    return int(n)


def truncated(model: Model, n: int) -> Model:
    """Keep the first tokens: see `Model.truncated`."""
    n = checked_size(model, n)
    merged = {*model.visible_merges.values(), *model.phrases.values()} - {*model.found_tokens.values()}
    room = n - model.vocab_size + len(merged)
    if room < 0:
        raise ArgumentError("n", n, f"must be at least {n - room}, since only merges and phrases can be removed")
    in_order = [*model.merges.values(), *sorted(model.phrases.values())]
    numbers = accumulate(token in merged for token in in_order)
    removed = {token for token, number in zip(in_order, numbers, strict=True) if number > room}
    if not removed.isdisjoint(model.merges.values()) and _is_batched(model.training):
        warn(
            "the model was trained in batches, and its first tokens are not those of a smaller vocabulary; "
            f'train a smaller one, or use policy="exact" or max_batch_size={STABLE_BATCH}'
        )
    affected = _with_dependents(model, removed)  # including merges of tokens that later merges make
    merges = {pair: token for pair, token in model.merges.items() if token not in affected}
    removed -= {*model.found_tokens.values()}
    return reduced(model, merges, model.hidden, removed, {"operation": "truncated", "n": n})


def _is_batched(training: Mapping[str, Any]) -> bool:
    """Return whether a model was trained in large batches, judging by its metadata.

    >>> _is_batched({"policy": "continue_search", "max_batch_size": 0}), _is_batched({"policy": "exact"})
    (True, False)
    >>> _is_batched({"policy": "one_at_a_time", "largest_batch": 1})
    False
    """
    is_limited = training.get("max_batch_size") in range(1, STABLE_BATCH + 1)
    sizes = training.get("batches", {}).get("size", [])
    is_limited |= training.get("largest_batch", max(sizes, default=0)) == 1
    return training.get("policy", "serial") not in ("serial", "exact") and not is_limited


def reduced(
    model: Model, merges: dict[Pair, int], hidden: Collection[int], removed: set[int], note: dict[str, Any]
) -> Model:
    """Return a model with fewer merges, or other merges for the same tokens, and without the tokens in `removed`.

    Tokens that become hidden get ids after all others. A special or added token that is not in `removed` stays, even if
    its merge does not.
    """
    merges = without_needless(model, merges, hidden)
    left = {*merges.values()}
    hidden = left.intersection(hidden)
    lost = removed | ({*model.merges.values()} - left)
    moved = dict(zip(sorted(hidden - model.hidden), count(model.next_id), strict=False))
    names = {name for name, token in model.found_tokens.items() if token not in removed}
    new = replace(
        model,
        merges=mapped(merges, moved),
        hidden=frozenset(moved.get(token, token) for token in hidden),
        stop_words={word: token for word, token in model.stop_words.items() if token not in removed},
        special_tokens={name: token for name, token in model.special_tokens.items() if name in names},
        added_tokens={name: token for name, token in model.added_tokens.items() if name in names},
        flags={name: flags for name, flags in model.flags.items() if name in names},
        phrases={parts: token for parts, token in model.phrases.items() if lost.isdisjoint((*parts, token))},
        decode_only={token: value for token, value in model.decode_only.items() if token not in removed},
        training=noted(model, note),
    )
    return with_carried(new, model)


def without_needless(model: Model, merges: Mapping[Pair, int], hidden: Collection[int]) -> dict[Pair, int]:
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


def noted(model: Model, note: dict[str, Any]) -> dict[str, Any]:
    """Return the training metadata of a model, with a note on how it was edited."""
    edited = model.training.get("edited")
    return {**model.training, "edited": [*(edited if isinstance(edited, list) else ()), note]}


def with_carried(model: Model, before: Model, *, is_renumbered: bool = False) -> Model:
    """Return a model that carries what `before` does, with its own special and added tokens."""
    if not before.carried:
        return model
    from ..formats.carried import check_carried, renumbered, without_roles
    from ..formats.roles import with_listed

    try:
        if is_renumbered or model.found_tokens != before.found_tokens:
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
        training=noted(model, {"operation": "with_split", "before": model.split.to_json()}),
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
    ids = {token: number for number, token in enumerate(dict.fromkeys(in_order))}
    if all(token == number for token, number in ids.items()):
        return model

    def new_ids(tokens: Mapping[Any, int]) -> dict[Any, int]:
        return {key: ids[token] for key, token in tokens.items()}

    new = replace(
        model,
        byte_ids=tuple(None if token is None else ids[token] for token in model.byte_ids),
        merges=mapped(model.merges, ids),
        hidden=frozenset(ids[token] for token in model.hidden),
        stop_words=new_ids(model.stop_words),
        special_tokens=new_ids(model.special_tokens),
        added_tokens=new_ids(model.added_tokens),
        phrases={tuple(ids[part] for part in parts): ids[token] for parts, token in model.phrases.items()},
        decode_only={ids[token]: value for token, value in model.decode_only.items()},
        training=noted(model, {"operation": "renumbered"}),
    )
    return with_carried(new, model, is_renumbered=True)


def mapped(merges: Mapping[Pair, int], ids: Mapping[int, int]) -> dict[Pair, int]:
    """Replace the ids of tokens by others, if these are given."""
    return {(ids.get(a, a), ids.get(b, b)): ids.get(token, token) for (a, b), token in merges.items()}
