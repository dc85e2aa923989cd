"""A model that is ready to be used."""

from __future__ import annotations

from functools import cached_property

from ._core import Encoder, split_text
from .errors import short
from .model import Model


class Loaded:
    """A model, and the core's encoder for it, made when it is first needed."""

    def __init__(self, model: Model) -> None:
        """Take a model; only its pattern is tried."""
        if not isinstance(model, Model):
            raise TypeError(f"a Model is needed, not {short(model)}: see Tokenizer.train and Tokenizer.from_file")
        split_text(model.pattern, "")
        self.model = model

    @cached_property
    def encoder(self) -> Encoder:
        """The core's encoder."""
        model = self.model
        return Encoder(
            model.pattern,
            model.byte_ids,
            list(model.stop_words.items()),
            [(first, last, token) for (first, last), token in model.merges.items()],
            list(model.special_tokens.items()),
        )

    def __reduce__(self) -> tuple[type[Loaded], tuple[Model]]:
        """Pickle the model alone."""
        return Loaded, (self.model,)

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """The id of each token but the special ones, by its bytes; of two with the same bytes the stop word's."""
        model = self.model
        ids: dict[bytes, int] = {}
        for token in (*model.stop_words.values(), *model.byte_ids, *model.merges.values()):
            ids.setdefault(model.vocab[token], token)
        return ids
