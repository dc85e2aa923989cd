"""Placeholder tokens for unused ids.

transformers uses the number of tokens as the next free id and as the number of embeddings. A vocabulary with gaps
in its ids therefore needs a placeholder for each gap: otherwise `model.resize_token_embeddings(len(tokenizer))` cuts
off the embeddings of the largest ids. A GGUF file lists tokens in the order of their ids, without gaps.
"""

from __future__ import annotations

from collections.abc import Collection

from ..errors import DataError, short
from ..model import Model

MAX_UNUSED = 1 << 16
"""Maximum number of placeholders in an export."""


def unused_name(token: int) -> str:
    """Return the name of the placeholder for an id. It has a space, so it differs from every byte-level spelling.

    >>> unused_name(300)
    '<|unused 300|>'
    """
    return f"<|unused {token}|>"


def unused_tokens(model: Model, used: Collection[int] | None = None, tool: str = "transformers") -> dict[str, int]:
    """Return placeholders for all ids up to the largest that are not `used`, by default the ids of all tokens.

    >>> unused_tokens(Model(split=r"\\w+", merges={}, special_tokens={"<e>": 258}))
    {'<|unused 256|>': 256, '<|unused 257|>': 257}
    >>> unused_tokens(Model(split=r"\\w+", merges={}, special_tokens={"<e>": 100_000}))
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: '<e>' has id 100000, and 99,744 ids below it are unused, but transformers needs a token for every id and at most 65,536 may be unused; choose a smaller id
    """  # noqa: E501  the last line is an error message
    size = model.n_vocab - len(model.vocab if used is None else used)
    if size > MAX_UNUSED:
        last = model.n_vocab - 1
        raise DataError(
            f"{short(model.vocab[last].decode('utf-8', 'backslashreplace'))} has id {last}, and {size:,} ids below it "
            f"are unused, but {tool} needs a token for every id and at most {MAX_UNUSED:,} may be unused",
            remedy="choose a smaller id",
        )
    ids = model.vocab.keys() if used is None else set(used)
    unused = {unused_name(token): token for token in range(model.n_vocab) if token not in ids}
    for name in unused.keys() & model.found_tokens.keys():
        kind = "special" if name in model.special_tokens else "added"
        raise DataError(
            f"{kind} token {short(name)} has the reserved name of the unused id {unused[name]}",
            remedy="rename it or change its id",
        )
    return unused
