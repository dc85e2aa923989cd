"""Tokens that are identified by a name, as in a tokenizer.json and in a GGUF file.

The name of a token is the byte-level spelling of its bytes. That of a special or added token is its text.
"""

from __future__ import annotations

from ..errors import DataError, Setting, short
from ..model import Model
from .byte_level import from_byte_level, to_byte_level


def ids_by_name(model: Model, file: str, *, whole_chunks: bool) -> dict[str, int]:
    """Return the ids of all tokens but those found before splitting.

    `whole_chunks` says whether chunks that are tokens are looked up instead of merged.

    >>> ids_by_name(Model(split=r"\\w+", merges={(32, 97): 256}), "tokenizer.json", whole_chunks=False)["Ġa"]
    256
    """
    ids = (*model.byte_ids, *model.merges.values(), *model.stop_words.values(), *model.phrases.values())
    vocab: dict[str, int] = {}
    for token in sorted(token for token in ids if token is not None):
        vocab.setdefault(to_byte_level(model.vocab[token]), token)
    for token, value in model.decode_only.items():
        name: str | None = to_byte_level(value)
        if name in vocab or whole_chunks:  # text must not be encoded to it
            name = _raw_name(value)
        if name is None or name in vocab or name in model.found_tokens:
            reason = f"decode-only token {short(value)} would be encoded in a {file}"
            raise DataError(reason, remedy=("use ", Setting("format", "batchbpe")))
        vocab[name] = token
    return vocab


def _raw_name(value: bytes) -> str | None:
    """Return the text of a token if it is not in byte-level spelling: then text, which is, never matches it."""
    try:
        name = value.decode()
    except UnicodeDecodeError:
        return None
    return name if from_byte_level(name) is None else None


def check_distinct(model: Model, file: str) -> None:
    """Raise if tokens have the same bytes.

    >>> check_distinct(Model(r"\\w+", {(97, 97): 257}, stop_words={b"aa": 256}), "tokenizer.json")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: tokens 257 and 256 are both b'aa', but a tokenizer.json identifies tokens by their bytes; use format="transformers" to keep both, or allow_inexact=True to drop one
    """  # noqa: E501  the last line is an error message
    keep, drop = Setting("format", "transformers"), Setting("allow_inexact", True)
    seen: dict[bytes, int] = {model.vocab[token]: token for token in model.byte_ids if token is not None}
    for token in (*model.merges.values(), *model.stop_words.values(), *model.phrases.values()):
        other = seen.setdefault(model.vocab[token], token)
        if other != token:
            raise DataError(
                f"tokens {other} and {token} are both {short(model.vocab[token])}, "
                f"but a {file} identifies tokens by their bytes",
                remedy=("use ", keep, " to keep both, or ", drop, " to drop one"),
            )


def unmerged_token(model: Model) -> tuple[bytes, int] | None:
    """Return a token whose bytes are not merged to it, and the number of tokens they are merged to; None if none is.

    Engines that look up chunks that are tokens encode such a chunk differently.

    >>> unmerged_token(Model(r"\\w+", {(97, 98): 256, (98, 99): 257, (97, 257): 258}))
    (b'abc', 2)
    """
    import numpy as np  # not above, because every command would import it

    tokens = [*model.merges.values()]
    values = [model.vocab[token] for token in tokens]
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    encoder = Model(model.split, model.merges, byte_ids=model.byte_ids).encoder()
    ids, sizes = encoder.encode_chunks(np.frombuffer(b"".join(values), np.uint8), offsets, None)
    starts = np.cumsum(sizes) - sizes
    wrong = np.flatnonzero((sizes != 1) | (ids[starts] != np.array(tokens, np.uint32)))
    return (values[wrong[0]], int(sizes[wrong[0]])) if len(wrong) else None


def check_names(model: Model, file: str) -> None:
    """Raise if the name of a special or added token is the byte-level spelling of another token.

    >>> check_names(Model(r"\\w+", {(97, 98): 256}, special_tokens={"ab": 257}), "tokenizer.json")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: special token 'ab' is spelled like token 256 in a tokenizer.json; rename the special token
    """  # noqa: E501  the last line is an error message
    ids = model.token_ids
    for name, token in model.found_tokens.items():
        same_spelling = ids.get(from_byte_level(name) or b"")
        if same_spelling not in (None, token):
            kind = "special" if name in model.special_tokens else "added"
            raise DataError(
                f"{kind} token {short(name)} is spelled like token {same_spelling} in a {file}",
                remedy=f"rename the {kind} token",
            )
