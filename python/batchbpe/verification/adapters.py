"""How each engine loads a file and is called: special tokens in a text are tokens, and nothing is added.

Packages are imported when they are used.
"""

from __future__ import annotations

import base64
import logging
import os
import shutil
import tempfile
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, parse_json
from ..formats import auto_tokenizer
from ..formats.byte_level import from_byte_level
from ..formats.carried import CONFIG
from ..formats.phrase_pattern import pattern_with_phrases
from ..tokenizer import Tokenizer

FOLDER = "folder"
GIGATOKEN_SPLITS = {
    "gpt2": "gpt2",
    "gpt4": "cl100k",
    "cl100k": "cl100k",
    "llama3": "cl100k",
    "o200k": "o200k",
    "qwen2": "qwen2",
    "qwen3.5": "qwen35",
    "deepseek": "deepseek_v3",
    "kimi": "kimi",
}
"""gigatoken's names for patterns, which rank files need."""
_SUFFIXES = (".json", ".txt", ".jinja", ".py", ".model")
"""Of the files in a folder that AutoTokenizer may read."""
_CODE_KEYS = frozenset({"auto_map", "configuration_files"})
"""The fields of a config.json that name code, or another config.json."""


@dataclass(frozen=True)
class Export:
    """A file or folder to compare."""

    path: Path
    format: str
    """`FOLDER`, or the name of a model format."""
    tokenizer: Tokenizer | None = None
    """What this core has loaded, if it could."""
    problem: str = ""
    """Why this core could not load it."""
    config: Path | None = None
    """The model's config.json."""

    @property
    def loaded(self) -> Tokenizer:
        """What this core has loaded. Raise the error if it could not."""
        if self.tokenizer is None:
            raise DataError(self.problem)
        return self.tokenizer

    def file(self, format: str, name: str) -> Path | None:
        """Return the path if it has a format, or the file with a name in the folder, if there is one."""
        inside = self.path / name
        return self.path if self.format == format else inside if self.format == FOLDER and inside.is_file() else None


@dataclass(frozen=True)
class Loaded:
    """A tokenizer of an engine."""

    encode: Callable[[list[str]], list[list[int]]]
    decode: Callable[[list[int]], str]
    token: Callable[[int], bytes | None]
    """The bytes of a token; None if the id is not used."""
    size: int
    """The size of the vocabulary."""
    is_special: Callable[[int], object] = lambda _: False
    """Whether a token is found in a text before the text is split, if the engine says so."""
    parses_special: bool = True
    """Whether special tokens in a text are tokens. If not, the reference encodes them as plain text too."""
    detail: str = ""
    """What the engine has chosen itself, such as a class."""
    pattern: str = ""
    """The pattern that the engine has chosen itself, if it names one."""


def tokenizer_json(export: Export) -> Path | None:
    """Return the path of the tokenizer.json, if there is one."""
    return export.file("huggingface", "tokenizer.json")


def tekken_json(export: Export) -> Path | None:
    """Return the path of the tekken.json, if there is one."""
    return export.file("tekken", "tekken.json")


def load_batchbpe(export: Export) -> Loaded:
    """Return what this core has loaded."""
    tokenizer = export.loaded
    return Loaded(
        lambda texts: tokenizer.encode_batch(texts, "all"), tokenizer.decode, tokenizer.vocab.get, tokenizer.vocab_size
    )


def load_tokenizers(export: Export) -> Loaded:
    """Load a tokenizer.json with Hugging Face's library."""
    import tokenizers

    loaded: Any = tokenizers.Tokenizer.from_file(str(tokenizer_json(export)))
    loaded.no_truncation()
    loaded.no_padding()
    encode = getattr(loaded, "encode_batch_fast", loaded.encode_batch)  # does not compute offsets
    added = {token: each.content for token, each in loaded.get_added_tokens_decoder().items()}
    return Loaded(
        lambda texts: [each.ids for each in encode(texts, add_special_tokens=False)],
        lambda ids: loaded.decode(ids, skip_special_tokens=False),
        lambda token: _unspelled(loaded.id_to_token(token), token in added),
        loaded.get_vocab_size(with_added_tokens=True),
        added.__contains__,
    )


def _unspelled(name: str | None, is_added: bool) -> bytes | None:
    """Return the bytes of a token of a tokenizer.json. Added tokens are not in byte-level spelling."""
    if name is None:
        return None
    value = None if is_added else from_byte_level(name)
    return name.encode() if value is None else value


def load_transformers(export: Export, trust_remote_code: bool = False) -> Loaded:
    """Load a folder with AutoTokenizer, next to the config.json of the model."""
    with _quiet(), tempfile.TemporaryDirectory() as temporary:
        from transformers import AutoTokenizer

        # Code is cached by the name of its folder, so a random name would leave a new copy each time.
        folder = _beside_config(export, Path(temporary) / "batchbpe_verify")
        load: Any = AutoTokenizer.from_pretrained
        loaded = load(str(folder), trust_remote_code=trust_remote_code, local_files_only=True)

    def encode(texts: list[str]) -> list[list[int]]:
        with _quiet():
            return loaded(texts, add_special_tokens=False, return_attention_mask=False)["input_ids"]  # type: ignore[no-any-return]

    def token(id: int) -> bytes | None:
        return _unspelled(loaded.convert_ids_to_tokens(id), id in loaded.added_tokens_decoder)

    return Loaded(
        encode,
        lambda ids: loaded.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False),
        token,
        len(loaded),
        loaded.added_tokens_decoder.__contains__,
        detail=f"trust_remote_code={trust_remote_code}, {type(loaded).__name__}",
    )


def _beside_config(export: Export, folder: Path) -> Path:
    """Put links to the files of a folder next to another config.json, so that nothing is changed."""
    folder.mkdir()
    for path in export.path.iterdir():
        if path.is_file() and path.suffix in _SUFFIXES and path.name != "config.json":
            try:
                (folder / path.name).symlink_to(path.resolve())
            except OSError:  # not supported
                shutil.copyfile(path, folder / path.name)
    if export.config is not None:
        shutil.copyfile(export.config, folder / "config.json")
    return folder


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what transformers logs, including when it is imported."""
    name, logger = "TRANSFORMERS_VERBOSITY", logging.getLogger("transformers")
    before, level = os.environ.get(name), logger.level
    os.environ[name] = "error"
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def load_tiktoken(export: Export) -> Loaded:
    """Load a rank file, with the pattern and the special tokens that this core has recognized."""
    import tiktoken

    model = export.loaded.model
    if model.split.steps:
        raise DataError("tiktoken has a single pattern, and this file needs several steps")
    lines = (line.split() for line in export.path.read_bytes().splitlines() if line)
    encoding = tiktoken.Encoding(
        export.path.stem,
        pat_str=pattern_with_phrases(model) if model.phrases else model.pattern,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in lines},
        special_tokens=dict(model.special_tokens),
    )
    form: Any = model.split.normalization

    def encode(texts: list[str]) -> list[list[int]]:
        if form != "none":  # as programs with such rank files do themselves
            texts = [unicodedata.normalize(form, text) for text in texts]
        return encoding.encode_batch(texts, allowed_special="all")

    def token(id: int) -> bytes | None:
        try:
            return encoding.decode_single_token_bytes(id)
        except (KeyError, OverflowError):
            return None

    return Loaded(encode, encoding.decode, token, encoding.n_vocab, encoding.is_special_token)


def load_mistral_common(export: Export) -> Loaded:
    """Load a tekken.json. mistral-common never finds special tokens in a text."""
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    logging.getLogger("mistral_common").setLevel(logging.ERROR)
    loaded = Tekkenizer.from_file(tekken_json(export))
    return Loaded(
        lambda texts: [loaded.encode(text, bos=False, eos=False) for text in texts],
        lambda ids: loaded.decode(ids, SpecialTokenPolicy.KEEP),
        lambda id: loaded.id_to_byte_piece(id, SpecialTokenPolicy.KEEP) if id < loaded.n_words else None,
        loaded.n_words,
        parses_special=False,
        detail="special tokens as text",
    )


def load_gigatoken(export: Export) -> Loaded:
    """Load a tokenizer.json, or a rank file with the pattern that this core has recognized."""
    import gigatoken

    path = tokenizer_json(export)
    if path is not None:
        loaded = gigatoken.Tokenizer(path)
    else:
        model = export.loaded.model
        name = GIGATOKEN_SPLITS.get(model.split.name)
        if name is None or model.phrases:
            raise DataError(f"gigatoken has no pattern for rank files like {model.split.name}")
        loaded = gigatoken.Tokenizer.from_tiktoken(export.path, name, dict(model.special_tokens))
    vocab = loaded.vocab
    return Loaded(
        loaded.encode_batch_list, lambda ids: loaded.decode(ids).decode("utf-8", "replace"), vocab.get, len(vocab)
    )


def has_auto_map(export: Export) -> bool:
    """Return whether a folder asks transformers to run code."""
    try:
        return "auto_map" in _fields(export.path / CONFIG)
    except (OSError, ValueError):
        return False


def load_transformers_with_code(export: Export) -> Loaded:
    """Load a folder with the code in it, if this package wrote it. Other code is not run."""
    if not _has_only_own_code(export):
        raise DataError("not run: the folder or its config.json has code that batchbpe did not write")
    return load_transformers(export, trust_remote_code=True)


def _has_only_own_code(export: Export) -> bool:
    """Return whether transformers runs only code that this package writes. Raise if a file cannot be read."""
    written = (auto_tokenizer.fast_class(with_code=True), auto_tokenizer.own_class())
    code = {name: text for files, _ in written for name, text in files.items()}
    auto_maps = [settings["auto_map"] for _, settings in written]  # others may name code outside the folder
    return (
        _fields(export.path / CONFIG).get("auto_map") in auto_maps
        and (export.config is None or _CODE_KEYS.isdisjoint(_fields(export.config)))
        and all(path.read_text("utf-8") == code.get(path.name) for path in export.path.glob("*.py"))
    )


def _fields(path: Path) -> Mapping[str, Any]:
    fields = parse_json(path.read_bytes())
    return fields if isinstance(fields, Mapping) else {}
