"""A transformers tokenizer that runs a batchbpe model which tokenizer.json cannot represent.

`Tokenizer.export(folder, "transformers")` copies this file into the folder if it is needed. Using it requires
`pip install batchbpe`. Two tokens may have the same bytes, such as a stop word and a merge; a mark at the end of the
name distinguishes them.
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
    """Encodes and decodes with a `batchbpe.Tokenizer`."""

    vocab_files_names = {"vocab_file": MODEL}  # noqa: RUF012  as in transformers
    model_input_names = ["input_ids", "attention_mask"]  # noqa: RUF012

    def __init__(self, vocab_file: str, **kwargs: Any) -> None:
        """Load the model file of the folder."""
        from batchbpe import Tokenizer
        from batchbpe.formats.placeholders import unused_tokens

        self.vocab_file = vocab_file
        self.tokenizer = Tokenizer.from_file(vocab_file)
        # transformers uses the number of names as the next id and as the number of embeddings.
        self._ids: dict[str, int] = unused_tokens(self.tokenizer.model)
        self._placeholders = {token: name.encode() for name, token in self._ids.items()}
        for token in self.tokenizer.vocab:
            name = self.tokenizer.id_to_token(token) or ""
            while name in self._ids:
                name += MARK
            self._ids[name] = token
        self._names = {token: name for name, token in self._ids.items()}
        super().__init__(**kwargs)
        special = [AddedToken(name, special=True, normalized=False) for name in self.tokenizer.special_tokens]
        self.add_tokens(special, special_tokens=True)

    @property
    def vocab_size(self) -> int:
        """The largest id plus one."""
        return int(self.tokenizer.n_vocab)

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token, including tokens added later."""
        return self._ids | dict(self.added_tokens_encoder)

    def _tokenize(self, text: str, **kwargs: Any) -> list[str]:
        return [self._names[token] for token in self.tokenizer.encode_ordinary(text)]

    def _convert_token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def _convert_id_to_token(self, index: int) -> str | None:
        return self._names.get(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        """Return the text of tokens."""
        return self._decode([self._ids.get(token, self.added_tokens_encoder.get(token, -1)) for token in tokens])

    def _decode(self, token_ids: int | list[int], skip_special_tokens: bool = False, **kwargs: Any) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else [int(token) for token in token_ids]
        if skip_special_tokens:
            special = {*self.all_special_ids, *self.tokenizer.special_tokens.values()}
            ids = [token for token in ids if token not in special]
        known = self.tokenizer.vocab
        added = {id: token.content.encode() for id, token in self.added_tokens_decoder.items() if id not in known}
        others = self._placeholders | added
        if others.keys().isdisjoint(ids):
            return str(self.tokenizer.decode(ids))
        parts = (others[id] if id in others else self.tokenizer.decode_bytes([id]) for id in ids)
        return b"".join(parts).decode("utf-8", "replace")

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str]:
        """Copy the model file."""
        target = Path(save_directory) / ((filename_prefix + "-" if filename_prefix else "") + MODEL)
        if target.resolve() != Path(self.vocab_file).resolve():
            shutil.copyfile(self.vocab_file, target)
        return (str(target),)
