"""tiktoken's rank file: one line per token, with its bytes in base64 and its rank."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core import MAX_ID, RankedTokens, parse_ranks, patterns
from ..errors import ArgumentTypeError, DataError, Message, Setting, parse_json, short
from ..model import Model
from ..model.checks import check_special_tokens
from ..model.merges import Merges
from ..patterns import Split
from ..storage.atomic import replacing_all, writing
from .file_errors import check_model_path, line_error, locate_errors, not_found
from .phrase_pattern import (
    check_not_in_chunks,
    has_phrases,
    model_with_phrases,
    pattern_with_phrases,
    split_pattern,
)
from .unsupported import check_supported, without_unsupported

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Published(NamedTuple):
    """What a rank file published by OpenAI does not store."""

    pattern: str
    """The name of the pattern."""
    ranks: int
    """The number of ranks, which distinguishes the file from others with the same name."""
    special_tokens: Mapping[str, int]


_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
PUBLISHED: Mapping[str, Published] = {
    "r50k_base": Published("gpt2", 50256, {_END: 50256}),
    "p50k_base": Published("gpt2", 50280, {_END: 50256}),
    "cl100k_base": Published(
        "cl100k",
        100256,
        {_END: 100257, _FIM[0]: 100258, _FIM[1]: 100259, _FIM[2]: 100260, "<|endofprompt|>": 100276},
    ),
    "o200k_base": Published("o200k", 199998, {_END: 199999, "<|endofprompt|>": 200018}),
}
"""The encodings that OpenAI publishes, by the names of their files."""

SUPPORTED = frozenset({"phrases"})
DOWNLOADED = "tiktoken.get_encoding({})"
DOWNLOADED_FOR_MODEL = "tiktoken.encoding_for_model({})"
"""Code that downloads an encoding by its name, or by the name of a language model."""
_KEEP_OR_DROP: Message = (
    "use ",
    Setting("format", "batchbpe"),
    " or ",
    Setting("format", "transformers"),
    " to keep them, or ",
    Setting("allow_inexact", True),
    " to drop them",
)


def load(source: Any, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None) -> Model:
    """Read a rank file, or convert a `tiktoken.Encoding`.

    `pattern` (a regular expression) and `special_tokens` default to those of the encoding, or to those published for
    the file name.
    """
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise ArgumentTypeError("special_tokens", special_tokens, "must be a mapping from strings to ids")
    if special_tokens is not None:
        check_special_tokens(special_tokens)
    if hasattr(source, "_mergeable_ranks"):
        given = source._special_tokens if special_tokens is None else special_tokens
        return from_ranks(source._mergeable_ranks, pattern or source._pat_str, given)
    if not isinstance(source, str | os.PathLike):
        raise ArgumentTypeError("path", source, "must be a file path or a tiktoken.Encoding")
    check_model_path("path", source)
    path = Path(source)
    if not path.is_file():
        is_encoding = "k_" in path.name  # and not the name of a language model
        raise not_found(source, f"pass {DOWNLOADED if is_encoding else DOWNLOADED_FOR_MODEL}")
    published = PUBLISHED.get(path.stem)
    with locate_errors(path):
        if _companion(path).is_file():
            with_phrases, stored = _read_companion(_companion(path))
            original = split_pattern(with_phrases)[0]
            if pattern is not None and pattern != original:
                reason = f"{_companion(path).name} has phrases for the pattern {Split(original)}, not {Split(pattern)}"
                raise DataError(reason, remedy=("leave out ", Setting("pattern")))
            pattern = with_phrases
            special_tokens = stored if special_tokens is None else special_tokens
        if pattern is None and published is None:
            raise DataError(
                f"rank files do not store their pattern, and the name is not one of {', '.join(PUBLISHED)}",
                remedy=("use ", Setting("pattern", call="Tokenizer.from_tiktoken(path, pattern=…)")),
            )
        file = _parse(path.read_bytes())
        if pattern is None and published is not None:
            if len(file.ranks) != published.ranks:
                raise DataError(
                    f"expected {published.ranks} ranks, got {len(file.ranks)}",
                    remedy=("the file is damaged, or it is a different file: specify ", Setting("pattern")),
                )
            pattern = dict(patterns())[published.pattern]
        if special_tokens is None:
            special_tokens = published.special_tokens if published else {}
        return _model(file, pattern or "", special_tokens)


def is_format(content: bytes) -> bool:
    """Return whether the first line of a file has the format of a rank file.

    >>> is_format(b"IHRoZQ== 262\\n"), is_format(b"the 262\\n")
    (True, False)
    """
    try:
        token, rank = content.split(b"\n", 1)[0].split()
        return bool(base64.b64decode(token, validate=True)) and rank.isdigit()
    except (ValueError, binascii.Error):
        return False


class _Ranks(NamedTuple):
    """Tokens and their ranks as arrays for the core."""

    data: npt.NDArray[np.uint8]
    """The bytes of all tokens."""
    offsets: npt.NDArray[np.int64]
    """Where each token starts, and where the last one ends."""
    ranks: npt.NDArray[np.uint32]


def _parse(content: bytes) -> _Ranks:
    try:
        return _Ranks(*parse_ranks(content))
    except ValueError as error:
        raise line_error(error) from None


def _model(ranks: _Ranks, pattern: str, special_tokens: Mapping[str, int]) -> Model:
    if has_phrases(pattern):
        data, ends = ranks.data.tobytes(), ranks.offsets.tolist()
        tokens = (data[start:end] for start, end in pairwise(ends))
        return from_ranks(dict(zip(tokens, ranks.ranks.tolist(), strict=True)), pattern, special_tokens)
    try:
        ranked = RankedTokens.from_ranks(*ranks)
    except ValueError as error:
        raise DataError(str(error)) from None
    return Model(Split(pattern), merges=Merges(ranked), special_tokens=special_tokens, byte_ids=ranked.byte_ids)


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a rank file. It stores the pattern and the special tokens only with phrases, in a second file."""
    if allow_inexact:
        model = without_unsupported(model, "tiktoken", SUPPORTED, by_rank=True)
    content = b"".join(
        b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks_of(model, allow_inexact).items()
    )
    files = {path: content}
    if model.phrases:
        fields = {"pat_str": pattern_with_phrases(model), "special_tokens": dict(model.special_tokens)}
        files = {_companion(path): json.dumps(fields).encode(), **files}
    with replacing_all([*files]) as temporaries:
        for temporary, (target, each) in zip(temporaries, files.items(), strict=True):
            with writing(target):
                temporary.write_bytes(each)
    if len(files) == 1:
        _companion(path).unlink(missing_ok=True)  # from a model with phrases, which this one replaces


def _companion(path: Path) -> Path:
    """Return the path of the JSON file next to a rank file with phrases: other arguments of `tiktoken.Encoding`."""
    return path.with_name(f"{path.name}.json")


def _read_companion(path: Path) -> tuple[str, dict[str, int]]:
    with locate_errors(path):
        try:
            fields = parse_json(path.read_bytes())
            pattern, special_tokens = fields["pat_str"], fields["special_tokens"]
        except (ValueError, KeyError, TypeError):
            raise DataError('expected a JSON object with "pat_str" and "special_tokens"') from None
        if not isinstance(pattern, str) or not isinstance(special_tokens, dict):
            raise DataError('"pat_str" must be a string and "special_tokens" an object')
        if not has_phrases(pattern):
            raise DataError('"pat_str" is damaged: it contains no phrases', remedy="export the model again")
        check_special_tokens(special_tokens)
    return pattern, special_tokens


def ranks_of(model: Model, allow_inexact: bool = False, remedy: Message = _KEEP_OR_DROP) -> dict[bytes, int]:
    """Return the rank of each token. Raise if encoding by ranks would differ from encoding by merges.

    >>> ranks_of(Model(split=r"\\w+", merges={(97, 97): 256}))[b"aa"]
    256
    """
    ranks: dict[bytes, int] = {}
    for token in sorted({*model.byte_ids, *model.merges.values()}):
        ranks.setdefault(model.vocab[token], token)
    if allow_inexact:
        for token in model.phrases.values():
            ranks.setdefault(model.vocab[token], token)
        return ranks
    if model.phrases:
        check_not_in_chunks(model)
    check_supported(model, "tiktoken", SUPPORTED, remedy)
    try:
        recovered: Mapping[tuple[int, int], int] = from_ranks(ranks, model.pattern, {}).merges
    except ValueError:
        recovered = {}
    if list(recovered.items()) != list(model.merges.items()):
        differing = next((item for item in model.merges.items() if item not in recovered.items()), None)
        raise DataError(
            f"encoding by ranks would differ from encoding by merges: {_why_not_ranks(model, differing)}",
            remedy=remedy,
        )
    for token in model.phrases.values():
        other = ranks.setdefault(model.vocab[token], token)
        if other != token:
            value = short(model.vocab[token])
            raise DataError(f"tokens {other} and {token} are both {value}, and tiktoken would use the first")
    return ranks


def _why_not_ranks(model: Model, merge: tuple[tuple[int, int], int] | None) -> str:
    if merge is None:
        return "the ids are not in the order of the merges"
    (first, last), token = merge
    value, left, right = (short(model.vocab[part]) for part in (token, first, last))
    return f"the ranks cannot produce token {token}, {value} = {left} + {right}"


def from_ranks(ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int]) -> Model:
    """Recover the merges from ranks: a token is merged from the two tokens that its bytes encode to without it.

    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}
    >>> dict(from_ranks(ranks, r"\\w+", {}).merges)
    {(97, 98): 256, (256, 99): 257}
    """
    import numpy as np  # not above, because every command would import it

    if has_phrases(pattern):
        return model_with_phrases(pattern, ranks, lambda plain, others: from_ranks(others, plain, special_tokens))
    for token, rank in ranks.items():
        if type(rank) is not int or not 0 <= rank <= MAX_ID:
            raise DataError(f"the rank of {short(token)} must be an integer from 0 to {MAX_ID}, got {short(rank)}")
    data = np.frombuffer(b"".join(ranks), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, ranks)], dtype=np.int64)
    return _model(_Ranks(data, offsets, np.array([*ranks.values()], dtype=np.uint32)), pattern, special_tokens)
