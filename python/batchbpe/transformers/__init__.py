"""A transformers tokenizer whose ids come from the core of this package: `load`.

`BatchBPETokenizer` is a `transformers.PreTrainedTokenizerFast` that replaces only how text is encoded and ids decoded.
Its vocabulary, added tokens, chat templates and files are transformers' own.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..formats import auto_tokenizer, native
from ..formats.huggingface import entries_of, with_added
from ..formats.placeholders import vocabulary_only
from ..model import Model
from ..tokenizer import Tokenizer
from ..tokenizer.paper import BatchTokenizer

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
        raise ImportError('batchbpe.transformers requires transformers 5; run pip install "transformers>=5"') from None
    from .call import Call, chosen, inputs_of, state_of


def load(source: Any) -> BatchBPETokenizer:
    """Return a transformers tokenizer that encodes and decodes with the core of this package.

    `source` is a `Tokenizer`, a transformers tokenizer, or the path of anything that `Tokenizer.from_file` loads.

    >>> tokenizer = load(Tokenizer.train("aaabdaaabac", 260, special_tokens=["<|endoftext|>"]))
    >>> tokenizer("aaabd<|endoftext|>")
    {'input_ids': [258, 100, 259], 'attention_mask': [1, 1, 1]}
    """
    if isinstance(source, str | os.PathLike):
        if any((Path(source) / name).is_file() for name in BatchBPETokenizer.vocab_files_names.values()):
            return BatchBPETokenizer.from_pretrained(os.fspath(source))  # type: ignore[no-any-return]
        source = Tokenizer.from_file(source)
    elif isinstance(source, Model | BatchTokenizer):
        source = Tokenizer(source) if isinstance(source, Model) else source.tokenizer
    elif not isinstance(source, Tokenizer):
        source = Tokenizer.from_huggingface(source)
    with TemporaryDirectory() as folder:
        source.export(Path(folder) / "tokenizer", "transformers")
        loaded = BatchBPETokenizer.from_pretrained(str(Path(folder) / "tokenizer"))
    loaded.name_or_path = loaded.init_kwargs["name_or_path"] = source.name
    return loaded  # type: ignore[no-any-return]


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
        self._current: tuple[Any, Tokenizer] | None = None
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
        if self._current is None or self._current[0] != state:
            if self._model:
                tokenizer = Tokenizer(with_added(self._model, entries_of(self.added_tokens_decoder)))
            else:
                tokenizer = Tokenizer.from_huggingface(backend)
            self._current = state, tokenizer
        return self._current[1]

    def _add_tokens(self, new_tokens: Any, special_tokens: bool = False) -> int:
        self._current = None  # the flags of a token that exists may change
        return int(super()._add_tokens(new_tokens, special_tokens))

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the core, which is rebuilt when it is first used."""
        return {**self.__dict__, "_current": None}

    def __copy__(self) -> BatchBPETokenizer:
        """Share everything, including the core."""
        return self._with(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> BatchBPETokenizer:
        """Share only the core, which is immutable."""
        current = {"_current": self._current}
        return self._with({name: copy.deepcopy(each, memo) for name, each in self.__getstate__().items()} | current)

    def _with(self, attributes: dict[str, Any]) -> BatchBPETokenizer:
        copied = type(self).__new__(type(self))
        copied.__dict__ |= attributes
        return copied

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
        call = Call(
            owner=self,
            tokenizer=self.tokenizer,
            allowed_special="none" if chosen(split_special_tokens, self.split_special_tokens) else "all",
            add_special_tokens=add_special_tokens,
            truncation=TruncationStrategy(truncation_strategy),
            max_length=max_length,
            stride=stride,
            padding=PaddingStrategy(padding_strategy),
            multiple=pad_to_multiple_of or 1,
            padding_side=padding_side or self.padding_side,
        )
        inputs, is_batch = inputs_of(text, text_pair, is_split_into_words)
        wanted = {
            "token_type_ids": chosen(return_token_type_ids, "token_type_ids" in self.model_input_names),
            "attention_mask": chosen(return_attention_mask, "attention_mask" in self.model_input_names),
            "special_tokens_mask": return_special_tokens_mask,
            "offset_mapping": return_offsets_mapping,
        }
        columns, encodings, samples = call.encode(inputs, wanted, return_overflowing_tokens)
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
        # Recent versions ignore this setting, which removes spaces, unless another one says that it is serious.
        is_serious = getattr(self, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", True)
        is_cleaned = cleans_up and (is_serious or clean_up_tokenization_spaces)
        if not is_cleaned and type(self._tokenizer.decoder).__name__ == "ByteLevel":
            try:
                return self.tokenizer.core_encoder.decode_text(ids, "replace", skip_special_tokens)
            except (KeyError, ValueError, TypeError, OverflowError):
                pass  # unknown ids: transformers leaves them out, or decodes placeholders
        options = {"clean_up_tokenization_spaces": clean_up_tokenization_spaces, **kwargs}
        return str(super()._decode(token_ids, skip_special_tokens, **options))

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
        **unsupported: Any,
    ) -> BatchBPETokenizer:
        """Train a new vocabulary on texts or batches of texts; everything else is taken from this tokenizer.

        See the parameter `like` of `Tokenizer.train`. `length` is accepted for compatibility and ignored.

        >>> tokenizer = load(Tokenizer.train("aaabdaaabac", 258, special_tokens=["</s>"]))
        >>> tokenizer.train_new_from_iterator([["xyxyxy"], ["xy"]], 258)("xyz")["input_ids"]
        [256, 122]
        """
        _check_supported(unsupported)
        texts = (text for texts in text_iterator for text in ([texts] if isinstance(texts, str) else texts))
        special_tokens = [*(new_special_tokens or ())]
        return load(Tokenizer.train(texts=texts, vocab_size=vocab_size, like=self, special_tokens=special_tokens))

    def _save_pretrained(
        self,
        save_directory: str | os.PathLike[str],
        file_names: tuple[str, ...],
        legacy_format: bool | None = None,
        filename_prefix: str | None = None,
    ) -> tuple[str, ...]:
        folder, config_file = Path(save_directory), Path(file_names[0])
        if self._model:
            code, settings = auto_tokenizer.own_class()
            model = folder / (f"{filename_prefix}-" * bool(filename_prefix) + native.IN_FOLDER)
            native.save(self.tokenizer.model, model)
            file_names = (*file_names, str(model))
        else:
            code, settings = auto_tokenizer.fast_class(auto_tokenizer.keeps_class(folder))
            file_names = super()._save_pretrained(save_directory, file_names, legacy_format, filename_prefix)
        for name, text in code.items():
            (folder / name).write_text(text, encoding="utf-8")
        config = {name: value for name, value in json.loads(config_file.read_bytes()).items() if name != "auto_map"}
        config_file.write_text(json.dumps(config | settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return (*file_names, *(str(folder / name) for name in code))


def _as_array(rows: list[Any]) -> Any:
    """Convert rows of the same length. transformers does the same, but visits each number."""
    is_rectangular = bool(rows) and isinstance(rows[0], list) and len({*map(len, rows)}) == 1
    return np.array(rows, np.int64) if is_rectangular else rows


def _check_supported(options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"unsupported options: {', '.join(sorted(options))}; remove them")
