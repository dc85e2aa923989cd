"""A transformers tokenizer whose ids come from the core of this package: `load`.

`BatchBPETokenizer` is a `transformers.PreTrainedTokenizerFast` that replaces only how text is encoded and ids decoded.
Its vocabulary, added tokens, chat templates and files are transformers' own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import check_integer
from ..errors import ArgumentError, short
from ..formats import auto_tokenizer, load_any, native
from ..formats.byte_level import from_byte_level
from ..formats.file_errors import locate_errors
from ..formats.huggingface import entries_of, vocabulary_only, with_added
from ..model import Model
from ..tokenizer import Tokenizer

if TYPE_CHECKING:
    from .call import Call, chosen, inputs_of, state_of

    Backend: Any
    BatchEncoding: Any
    PaddingStrategy: Any
    TruncationStrategy: Any
    PreTrainedTokenizerFast: Any = object
else:
    try:
        from tokenizers import Tokenizer as Backend
        from transformers import BatchEncoding, PreTrainedTokenizerFast
        from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy
    except ImportError:
        remedy = "run pip install 'batchbpe[transformers]'"
        raise ImportError(f"batchbpe.transformers requires transformers 5 or later; {remedy}") from None
    from .call import Call, chosen, inputs_of, state_of


def load(source: Any, **settings: Any) -> BatchBPETokenizer:
    """Return a transformers tokenizer that encodes and decodes with the core of this package.

    `source` is a `Tokenizer`, a transformers tokenizer, or the path of anything that `Tokenizer.from_file` loads.
    `settings`, such as `padding_side="left"`, replace those of the source, as in `from_pretrained`.

    >>> tokenizer = load(Tokenizer.train("aaabdaaabac", 260, special_tokens=["<|endoftext|>"]))
    >>> tokenizer("aaabd<|endoftext|>")
    {'input_ids': [258, 100, 259], 'attention_mask': [1, 1, 1]}
    """
    is_path = isinstance(source, str | os.PathLike)
    if is_path and any((Path(source) / name).is_file() for name in BatchBPETokenizer.vocab_files_names.values()):
        with locate_errors(source):
            loaded = BatchBPETokenizer.from_pretrained(os.fspath(source), **settings)
            loaded.tokenizer  # noqa: B018  raises an error if it is not byte-level
        return loaded  # type: ignore[no-any-return]
    tokenizer = source
    if not isinstance(source, Tokenizer):
        tokenizer = Tokenizer(load_any("source", source, "use a byte-level tokenizer"))
    with TemporaryDirectory() as folder:
        tokenizer.export(Path(folder) / "tokenizer", "transformers")
        loaded = BatchBPETokenizer.from_pretrained(str(Path(folder) / "tokenizer"), **settings)
    name = Path(source).stem if is_path else getattr(source, "name_or_path", tokenizer.name)
    loaded.name_or_path = loaded.init_kwargs["name_or_path"] = name
    return loaded  # type: ignore[no-any-return]


class _Core:
    """The tokenizer that was last built, and the state of the backend that it was built from.

    It is not part of pickles, nor of the hashes by which `datasets` finds cached results. Copies share it.
    """

    def __init__(self) -> None:
        self.built: tuple[Any, Tokenizer] | None = None

    def __reduce__(self) -> Any:
        return _Core, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Core:
        copied = _Core()
        copied.built = self.built
        return copied


class BatchBPETokenizer(PreTrainedTokenizerFast):  # type: ignore[misc]
    """A transformers tokenizer that encodes and decodes with a `Tokenizer`, its attribute `tokenizer`.

    An option that is not supported raises an error.
    """

    vocab_files_names = {"tokenizer_file": "tokenizer.json", "vocab_file": native.IN_FOLDER}  # noqa: RUF012  as in transformers

    def __init__(self, *, vocab_file: str | None = None, **kwargs: Any) -> None:
        """Create a tokenizer from the files of a folder; see `load` and `from_pretrained`.

        `vocab_file` contains a model that no tokenizer.json can represent. Its `backend_tokenizer` has the vocabulary,
        but cannot encode.
        """
        self._model = native.load(vocab_file) if vocab_file else None
        self._core = _Core()
        if self._model:
            self._tokenizer = Backend.from_str(json.dumps(vocabulary_only(self._model)))
        super().__init__(**kwargs)

    @classmethod
    def convert_to_native_format(cls, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments of `__init__`. Other classes convert files here."""
        return kwargs

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoTokenizer") -> None:
        """Do nothing. transformers would make `save_pretrained` copy this module into the folder."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer in use. It follows changes of the vocabulary, the normalizer and the pre-tokenizer.

        >>> tokenizer = load(Tokenizer.train("aaabdaaabac", 259))
        >>> tokenizer.add_tokens(["ac"]), tokenizer.tokenizer.encode("aaabac")
        (1, [258, 259])
        """
        backend = self._tokenizer
        state = (backend.get_vocab_size(), state_of(backend.normalizer), state_of(backend.pre_tokenizer))
        built = self._core.built
        if built is None or built[0] != state:
            self._core.built = built = state, Tokenizer.from_huggingface(self)
        return built[1]

    @property
    def own_model(self) -> Model | None:
        """The model if no tokenizer.json can represent it, with tokens and a post-processor that were set since.

        >>> load(Tokenizer.train("aaabdaaabac", 259)).own_model
        """
        if self._model is None:
            return None
        carried = {**self._model.carried}
        for name in ("post_processor", "decoder"):
            state = state_of(getattr(self._tokenizer, name))
            carried |= {name: json.loads(state) if state else None}
        carried = {name: part for name, part in carried.items() if part is not None}
        return replace(with_added(self._model, entries_of(self.added_tokens_decoder)), carried=carried)

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        for token in map(str, new_tokens):
            value = from_byte_level(token)
            is_known = self._tokenizer.token_to_id(token) is not None
            if is_known and value not in (None, token.encode()) and token not in self.added_tokens_encoder:
                reason = f"must not be the byte-level spelling of another token, {short(value)}"
                raise ArgumentError("new_tokens", token, reason)
        self._core.built = None  # the flags of a token that exists may change
        return int(super()._add_tokens(new_tokens, special_tokens))

    def _encode_plus(
        self,
        text: Any,
        text_pair: Any = None,
        add_special_tokens: bool = True,
        padding_strategy: Any = "do_not_pad",
        truncation_strategy: Any = "do_not_truncate",
        max_length: int | None = None,
        stride: int = 0,
        is_split_into_words: bool = False,
        pad_to_multiple_of: int | None = None,
        padding_side: str | None = None,
        return_tensors: Any = None,
        return_token_type_ids: bool | None = None,
        return_attention_mask: bool | None = None,
        return_overflowing_tokens: bool = False,
        return_special_tokens_mask: bool = False,
        return_offsets_mapping: bool = False,
        return_length: bool = False,
        verbose: bool = True,
        split_special_tokens: bool | None = None,
        sanitize_control_tokens: bool = False,
        **unsupported: Any,
    ) -> Any:
        _check_supported(unsupported)
        if sanitize_control_tokens:  # encodes the parts of a chat one by one
            given = {name: each for name, each in locals().items() if name not in ("self", "unsupported", "__class__")}
            return super()._encode_plus(**given)
        side, multiple = padding_side or self.padding_side, pad_to_multiple_of or 1
        if side not in ("left", "right"):
            raise ArgumentError("padding_side", side, "must be 'left' or 'right'")
        check_integer("pad_to_multiple_of", multiple, least=1)
        call = Call(
            tokenizer=self.tokenizer,
            names_of=self.convert_ids_to_tokens,
            allow_special=not chosen(split_special_tokens, self.split_special_tokens),
            add_special_tokens=add_special_tokens,
            post_processor=self._tokenizer.post_processor,
            truncation=TruncationStrategy(truncation_strategy),
            truncation_side=self.truncation_side,
            max_length=max_length,
            stride=stride,
            padding=PaddingStrategy(padding_strategy),
            padding_side=side,
            multiple=multiple,
            pad={"pad_id": self.pad_token_id, "pad_type_id": self.pad_token_type_id, "pad_token": self.pad_token},
        )
        inputs, is_batch = inputs_of(text, text_pair, is_split_into_words)
        wanted = {
            "token_type_ids": chosen(return_token_type_ids, "token_type_ids" in self.model_input_names),
            "attention_mask": chosen(return_attention_mask, "attention_mask" in self.model_input_names),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
        }
        try:
            columns, encodings, samples = call.encode(inputs, wanted, return_overflowing_tokens)
        except UnicodeEncodeError as error:
            raise ArgumentError("text", error.object, "must not contain surrogates") from None
        if return_length:
            columns["length"] = [len(ids) for ids in columns["input_ids"]]
        if return_overflowing_tokens:
            columns["overflow_to_sample_mapping"] = samples
        for ids in columns["input_ids"] if max_length is None else ():
            if len(ids) > self.model_max_length:
                self._eventual_warn_about_too_long_sequence(ids, max_length, verbose)
                break
        if return_tensors in ("np", "pt"):
            columns = {name: _as_array(rows) for name, rows in columns.items()}
        if not is_batch and return_tensors is None and not return_overflowing_tokens:
            columns = {name: rows if name == "length" else rows[0] for name, rows in columns.items()}
        n_sequences = 1 if all(pair is None for _, pair in inputs) else 2
        return BatchEncoding(columns, encodings, tensor_type=return_tensors, n_sequences=n_sequences)

    def _decode(
        self,
        token_ids: Any,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool | None = None,
        **kwargs: Any,
    ) -> str:
        ids = token_ids["input_ids"] if isinstance(token_ids, dict) else token_ids
        ids = [ids] if isinstance(ids, int) else ids
        cleans_up = chosen(clean_up_tokenization_spaces, self.clean_up_tokenization_spaces)
        # Recent versions ignore the setting, which removes spaces, unless this one forces it.
        is_forced = getattr(self, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", True)
        is_cleaned = cleans_up and (is_forced or clean_up_tokenization_spaces)
        if not is_cleaned and type(self._tokenizer.decoder).__name__ == "ByteLevel":
            try:
                return self.tokenizer.core_encoder.decode_text(ids, "replace", skip_special_tokens)
            except (KeyError, ValueError, TypeError, OverflowError):  # unknown ids, which transformers leaves out
                if self._model and not any(id < 0 for id in ids):
                    return self._decode_known(ids, skip_special_tokens)
        options = {"clean_up_tokenization_spaces": clean_up_tokenization_spaces, **kwargs}
        return str(super()._decode(token_ids, skip_special_tokens, **options))

    def _decode_known(self, ids: list[int], skip_special_tokens: bool) -> str:
        """Decode without unknown ids, and placeholders as their names."""
        skipped = {*self.tokenizer.special_tokens.values()} if skip_special_tokens else set()
        vocab, name_of = self.tokenizer.vocab, self._tokenizer.id_to_token
        values = (vocab[id] if id in vocab else (name_of(id) or "").encode() for id in ids if id not in skipped)
        return b"".join(values).decode("utf-8", "replace")

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the text of tokens."""
        if self._model:  # the backend does not know that a name ends with a mark
            return str(self.decode(self.convert_tokens_to_ids(tokens)))
        return str(super().convert_tokens_to_string(tokens))

    def _encode_without_added_tokens(self, text: str) -> list[int]:
        if self._model:
            raise NotImplementedError(
                "sanitize_control_tokens is not supported for a model that tokenizer.json cannot represent"
            )
        return super()._encode_without_added_tokens(text)  # type: ignore[no-any-return]

    def train_new_from_iterator(
        self,
        text_iterator: Iterable[str | Iterable[str]],
        vocab_size: int,
        length: int | None = None,
        new_special_tokens: Sequence[str] | None = None,
        show_progress: bool = True,
        **unsupported: Any,
    ) -> BatchBPETokenizer:
        """Train a new vocabulary on texts or batches of texts; everything else is taken from this tokenizer.

        See the parameter `like` of `Tokenizer.train`. `length` is accepted for compatibility and ignored.

        >>> tokenizer = load(Tokenizer.train("aaabdaaabac", 258, special_tokens=["</s>"]))
        >>> tokenizer.train_new_from_iterator([["xyxyxy"], ["xy"]], 258, show_progress=False)("xyz")["input_ids"]
        [256, 122]
        """
        _check_supported(unsupported)
        texts = (text for texts in text_iterator for text in ([texts] if isinstance(texts, str) else texts))
        special_tokens, progress = [*(new_special_tokens or ())], show_progress
        return load(
            Tokenizer.train(None, vocab_size, texts=texts, like=self, special_tokens=special_tokens, progress=progress)
        )

    def _save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        folder, config_file = Path(save_directory), Path(file_names[0])
        if model := self.own_model:
            code, settings = auto_tokenizer.own_class()
            model_file = folder / (f"{filename_prefix}-" * bool(filename_prefix) + native.IN_FOLDER)
            native.save(model, model_file)
            file_names = (*file_names, str(model_file))
        else:
            code, settings = auto_tokenizer.fast_class(auto_tokenizer.needs_code(folder))
            file_names = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        for name, text in code.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        config = {name: value for name, value in json.loads(config_file.read_bytes()).items() if name != "auto_map"}
        config_file.write_text(
            json.dumps(config | settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
        )
        file_names = (*file_names, *(str(folder / name) for name in code))
        if not filename_prefix:
            auto_tokenizer.remove_stale(folder, [Path(name).name for name in file_names])
        return file_names


def _as_array(rows: list[Any]) -> Any:
    """Convert rows of the same length. transformers does the same, but visits each number."""
    is_rectangular = bool(rows) and isinstance(rows[0], list) and len({*map(len, rows)}) == 1
    return np.array(rows, np.int64) if is_rectangular else rows


def _check_supported(options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"unsupported options: {', '.join(sorted(options))}; remove them")
