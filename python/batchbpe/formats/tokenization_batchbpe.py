"""A tokenizer of batchbpe as one of transformers, for vocabularies that tokenizer.json cannot hold.

`Tokenizer.export(folder, "transformers")` puts this file into the folder where it is needed; `pip install batchbpe`
makes it work. Two tokens may have the same bytes, such as a stop word and what merges make of it: a mark tells them
apart here.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

MODEL = "batchbpe.model"
MARK = "∎"

if TYPE_CHECKING:
    AddedToken: Any
    Base: Any = object
else:
    from transformers import AddedToken
    from transformers import PreTrainedTokenizer as Base


class BatchBPETokenizer(Base):  # type: ignore[misc]
    """Encodes and decodes by `batchbpe.Tokenizer`."""

    vocab_files_names = {"vocab_file": MODEL}  # noqa: RUF012  as transformers has it
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, vocab_file: str, **kwargs: Any) -> None:
        """Load the model file of the folder."""
        from batchbpe import Tokenizer
        from batchbpe.formats.transformers import check_unused

        self.vocab_file = vocab_file
        self.tokenizer = Tokenizer.from_file(vocab_file)
        check_unused(self.tokenizer.model)
        special = self.tokenizer.special_tokens
        self._names: dict[int, str] = {}
        self._ids: dict[str, int] = {}
        for token in self.tokenizer.vocab:
            name = self.tokenizer.id_to_token(token) or ""
            while name in self._ids:
                name += MARK
            self._names[token], self._ids[name] = name, token
        # transformers takes the number of names for the next id, and for the size of a model.
        gaps = set(range(self.tokenizer.n_vocab)) - set(self.tokenizer.vocab)
        self._gaps = {f"<|unused {token}|>": token for token in sorted(gaps)}
        super().__init__(**kwargs)
        self.add_tokens([AddedToken(name, special=True, normalized=False) for name in special], special_tokens=True)

    @property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return int(self.tokenizer.n_vocab)

    def get_vocab(self) -> dict[str, int]:
        """Give the id of each token, and of those added later."""
        return self._ids | self._gaps | dict(self.added_tokens_encoder)

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return [self._names[token] for token in self.tokenizer.encode_ordinary(text)]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str | None:
        return self._names.get(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Give the text of tokens."""
        return self._decode([self._ids.get(token, self.added_tokens_encoder.get(token, -1)) for token in tokens])

    def _decode(self, token_ids: int | list[int], skip_special_tokens: bool = False, **kwargs: Any) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else [int(token) for token in token_ids]
        if skip_special_tokens:
            special = {*self.all_special_ids, *self.tokenizer.special_tokens.values()}
            ids = [token for token in ids if token not in special]
        added = {id: token for id, token in self.added_tokens_decoder.items() if id not in self.tokenizer.vocab}
        if added.keys().isdisjoint(ids):
            return str(self.tokenizer.decode(ids))
        parts = (added[id].content.encode() if id in added else self.tokenizer.decode_bytes([id]) for id in ids)
        return b"".join(parts).decode("utf-8", "replace")

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Copy the model file."""
        target = Path(save_directory) / ((filename_prefix + "-" if filename_prefix else "") + MODEL)
        if target.resolve() != Path(self.vocab_file).resolve():
            shutil.copyfile(self.vocab_file, target)
        return (str(target),)
