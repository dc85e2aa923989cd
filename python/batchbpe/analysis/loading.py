"""`loaded`: a tokenizer, or what one can be made of, such as its path → the tokenizer."""

from __future__ import annotations

from ..formats import Loadable, load_any
from ..tokenizer import Tokenizer


def loaded(parameter: str, source: Loadable) -> Tokenizer:
    """Return the tokenizer itself, or that of a model, of a path, or of an object of `tokenizers` or transformers.

    `parameter` is the argument that errors name.

    >>> tokenizer = Tokenizer.train("to be", 256)
    >>> loaded("tokenizer", tokenizer) is tokenizer, loaded("tokenizer", tokenizer.model) == tokenizer
    (True, True)
    """
    return source if isinstance(source, Tokenizer) else Tokenizer(load_any(parameter, source))
