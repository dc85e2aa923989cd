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

from .._core import MAX_ID, RankedTokens, parse_ranks
from ..errors import ArgumentTypeError, DataError, Message, OutputExistsError, Setting, parse_json, short, warn
from ..model import Model
from ..model.checks import check_special_tokens
from ..model.merges import Merges
from ..patterns import Split
from ..storage.atomic import replacing_all, writing
from .carried import warn_not_written
from .file_errors import check_model_path, line_error, locate_errors, not_found
from .phrase_pattern import (
    check_not_in_chunks,
    has_phrases,
    model_with_phrases,
    pattern_with_phrases,
    split_pattern,
)
from .portability import WHOLE_TEXT
from .published import PUBLISHED, recognize
from .unsupported import check_bare_split, check_supported, check_visible, without_unsupported

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


SUPPORTED = frozenset({"phrases", "stop_words"})
_COMPANION = b'{"pat_str": '
"""How the second file of a model with phrases starts."""
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


def load(source: Any, split: Split | None = None, special_tokens: Mapping[str, int] | None = None) -> Model:
    """Read a rank file, or convert a `tiktoken.Encoding`.

    `split` and `special_tokens` default to those of the encoding, or to those of the published file with these ranks.
    """
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise ArgumentTypeError("special_tokens", special_tokens, "must be a mapping from strings to ids")
    if special_tokens is not None:
        check_special_tokens(special_tokens)
    if hasattr(source, "_mergeable_ranks"):
        given = source._special_tokens if special_tokens is None else special_tokens
        return from_ranks(source._mergeable_ranks, split or source._pat_str, given)
    if not isinstance(source, str | os.PathLike):
        raise ArgumentTypeError("path", source, "must be a file path or a tiktoken.Encoding")
    check_model_path("path", source)
    path = Path(source)
    if not path.is_file():
        is_encoding = "k_" in path.name  # and not the name of a language model
        raise not_found(source, f"pass {DOWNLOADED if is_encoding else DOWNLOADED_FOR_MODEL}")
    with locate_errors(path):
        if _companion(path).is_file():
            with_phrases, stored = _read_companion(_companion(path))
            original = Split(split_pattern(with_phrases)[0])
            if split not in (None, original):
                reason = f"{_companion(path).name} has phrases for the pattern {original}, not {split}"
                raise DataError(reason, remedy=("leave out ", Setting("pattern")))
            split = Split(with_phrases)
            special_tokens = stored if special_tokens is None else special_tokens
        file = _parse(path.read_bytes())
        published = recognize(len(file.ranks), file.rank_of(b"hello"))
        if split is None and published is not None:
            split = published.split
        if split is None:
            raise DataError(
                f"rank files do not store their pattern, and these {len(file.ranks)} ranks are not those of "
                f"{', '.join(PUBLISHED)}",
                remedy=("use ", Setting("pattern", call="Tokenizer.from_tiktoken(path, pattern=…)")),
            )
        if special_tokens is None:
            special_tokens = published.special_tokens if published else {}
        return _model(file, split, special_tokens)


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

    def rank_of(self, token: bytes) -> int | None:
        """Return the rank of a token, if there is one."""
        data = self.data.tobytes()
        at = data.find(token)
        while at >= 0:
            position = self.offsets.searchsorted(at)
            if self.offsets[position] == at and self.offsets[position + 1] == at + len(token):
                return int(self.ranks[position])
            at = data.find(token, at + 1)
        return None


def _parse(content: bytes) -> _Ranks:
    try:
        return _Ranks(*parse_ranks(content))
    except ValueError as error:
        raise line_error(error) from None


def _model(ranks: _Ranks, split: Split, special_tokens: Mapping[str, int]) -> Model:
    if has_phrases(split.pattern):
        data, ends = ranks.data.tobytes(), ranks.offsets.tolist()
        tokens = (data[start:end] for start, end in pairwise(ends))
        return from_ranks(dict(zip(tokens, ranks.ranks.tolist(), strict=True)), split.pattern, special_tokens)
    try:
        ranked, stop_words = RankedTokens.from_ranks(*ranks)
    except ValueError as error:
        raise DataError(str(error)) from None
    return Model(
        split,
        merges=Merges(ranked),
        stop_words=dict(stop_words),
        special_tokens=special_tokens,
        byte_ids=ranked.byte_ids,
    )


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a rank file. It stores the pattern and the special tokens only with phrases, in a second file."""
    check_visible(model, "tiktoken")
    warn_not_written(model, "rank file")
    if None in model.byte_ids:
        reason = f"tiktoken needs all 256 bytes, but the vocabulary lacks 0x{model.byte_ids.index(None):02X}"
        raise DataError(reason, remedy=("use ", Setting("format", "huggingface")))
    if allow_inexact and not model.split.is_bare:
        warn(f"the rank file does not contain how text is split: {model.split}")
    if allow_inexact:
        try:
            _check_encoding(model, "")
        except DataError:
            supported = SUPPORTED - {"stop_words"}
        else:
            supported = SUPPORTED
        model = without_unsupported(model, "tiktoken", supported, by_rank=True)
    content = b"".join(
        b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks_of(model, allow_inexact).items()
    )
    files = {path: content}
    if model.phrases:
        fields = {"pat_str": pattern_with_phrases(model), "special_tokens": dict(model.special_tokens)}
        companion = _companion(path)
        if companion.exists() and not _is_companion(companion):
            reason = f"{companion} exists and is not of a rank file, but the phrases are written to it"
            raise OutputExistsError(reason, remedy="rename it, or choose another name for the export")
        files = {companion: json.dumps(fields).encode(), **files}
    with replacing_all([*files]) as temporaries:
        for temporary, (target, each) in zip(temporaries, files.items(), strict=True):
            with writing(target):
                temporary.write_bytes(each)
    if len(files) == 1 and _is_companion(_companion(path)):
        _companion(path).unlink()  # from a model with phrases, which this one replaces


def _companion(path: Path) -> Path:
    """Return the path of the JSON file next to a rank file with phrases: other arguments of `tiktoken.Encoding`."""
    return path.with_name(f"{path.name}.json")


def _is_companion(path: Path) -> bool:
    """Return whether a file exists that `save` has written next to a rank file. Others are the user's."""
    if not path.is_file():
        return False
    with locate_errors(path), path.open("rb") as file:
        return file.read(len(_COMPANION)) == _COMPANION


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
    check_visible(model, "tiktoken")
    ranks = _ranks(model)
    if allow_inexact:
        for token in model.phrases.values():
            ranks.setdefault(model.vocab[token], token)
        return ranks
    check_bare_split(model.split, "tiktoken", remedy)
    if model.phrases:
        check_not_in_chunks(model)
    check_supported(model, "tiktoken", SUPPORTED, remedy)
    _check_encoding(model, remedy)
    for token in model.phrases.values():
        other = ranks.setdefault(model.vocab[token], token)
        if other != token:
            value = short(model.vocab[token])
            raise DataError(f"tokens {other} and {token} are both {value}, and tiktoken would use the first")
    return ranks


def _ranks(model: Model) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    ids = {*model.byte_ids, *model.merges.values(), *model.stop_words.values()}
    for token in sorted(token for token in ids if token is not None):
        ranks.setdefault(model.vocab[token], token)
    return ranks


def _check_encoding(model: Model, remedy: Message) -> None:
    """Raise if encoding by ranks would differ: tiktoken looks whole chunks up, and otherwise merges by rank."""
    if None in model.byte_ids:
        raise DataError(
            f"byte 0x{model.byte_ids.index(None):02X} is not a token, but tiktoken needs all bytes", remedy=remedy
        )
    ranks = _ranks(model)
    for word, token in model.stop_words.items():
        if ranks[word] != token:
            raise DataError(f"tokens {ranks[word]} and {token} are both {short(word)}", remedy=remedy)
    try:
        recovered = from_ranks(ranks, WHOLE_TEXT, {})
    except ValueError:
        recovered = Model(Split(WHOLE_TEXT), {})
    if [*recovered.merges.items()] != [*model.merges.items()] or recovered.stop_words != model.stop_words:
        reason = _why_not_ranks(model, recovered)
        raise DataError(f"encoding by ranks would differ from encoding by merges: {reason}", remedy=remedy)


def _why_not_ranks(model: Model, recovered: Model) -> str:
    merged = next((word for word in model.stop_words if word not in recovered.stop_words), None)
    if merged is not None:
        return f"stop word {short(merged)} would be merged even inside other chunks"
    found = {*recovered.merges.items()}
    merge = next((item for item in model.merges.items() if item not in found), None)
    if merge is None:
        return "the ids are not in the order of the merges"
    (first, last), token = merge
    value, left, right = (short(model.vocab[part]) for part in (token, first, last))
    return f"the ranks cannot produce token {token}, {value} = {left} + {right}"


def from_ranks(ranks: Mapping[bytes, int], split: Split | str, special_tokens: Mapping[str, int]) -> Model:
    """Recover the merges from ranks: a token is merged from the two tokens that its bytes encode to without it.

    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abc": 257}
    >>> dict(from_ranks(ranks, r"\\w+", {}).merges)
    {(97, 98): 256, (256, 99): 257}
    """
    import numpy as np  # not above, because every command would import it

    split = split if isinstance(split, Split) else Split(split)
    if has_phrases(split.pattern):
        return model_with_phrases(split.pattern, ranks, lambda plain, others: from_ranks(others, plain, special_tokens))
    for token, rank in ranks.items():
        if type(rank) is not int or not 0 <= rank <= MAX_ID:
            raise DataError(f"the rank of {short(token)} must be an integer from 0 to {MAX_ID}, got {short(rank)}")
    data = np.frombuffer(b"".join(ranks), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, ranks)], dtype=np.int64)
    return _model(_Ranks(data, offsets, np.array([*ranks.values()], dtype=np.uint32)), split, special_tokens)
