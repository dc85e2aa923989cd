"""`Tokenizer`: train, load, save and export. Encoding and decoding are in `codec`."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from ..arguments import check_path
from ..errors import DataError, short
from ..formats import Format, Loadable, huggingface, load_file, native, save_file
from ..formats import tiktoken as rank_file
from ..formats.file_errors import locate_errors
from ..formats.phrase_pattern import pattern_with_phrases
from ..formats.portability import check_not_empty
from ..formats.roles import RoleOptions, roles_of
from ..formats.unsupported import check_bare_split
from ..model import Model
from ..options import documented, picked
from ..patterns import Split
from ..storage.atomic import replacing_all, writing
from ..training import train as training
from ..util.surrogates import Errors
from .codec import Codec

if TYPE_CHECKING:
    import tiktoken

    from ..analysis.comparison import Comparison
    from ..analysis.display import Encoding
    from ..analysis.id_map import IdMap


P = ParamSpec("P")


def _creating(train: Callable[P, Model]) -> Callable[P, Tokenizer]:
    """Return a function with the signature and the documentation of `train` that creates a tokenizer."""

    @functools.wraps(train)
    def create(*args: P.args, **kwargs: P.kwargs) -> Tokenizer:
        return Tokenizer(train(*args, **kwargs))

    signature = inspect.signature(train).replace(return_annotation="Tokenizer")
    create.__signature__ = signature  # type: ignore[attr-defined]
    return create


class Tokenizer(Codec):
    """Encodes and decodes with a model. It is immutable, so threads and processes can share it.

    Tokenizers are created by `train`, `from_file`, `from_tiktoken` and `from_huggingface`, or from a `Model`.
    Tokenizers with equal models are equal.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100])
    'aaabd'
    >>> len(tokenizer)
    259
    """

    train = staticmethod(_creating(training.train))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Load a tokenizer from a file or folder in any supported format, which is detected from the content.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     Tokenizer.from_file(f"{folder}/mine.model").encode("aaab")
        [258]
        """
        return _from_source(load_file(path), path)

    @classmethod
    def from_tiktoken(
        cls,
        path: str | os.PathLike[str],
        pattern: Split | str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Tokenizer:
        """Load a tokenizer from a .tiktoken rank file or a `tiktoken.Encoding`.

        Rank files do not store the pattern or the special tokens. The files of OpenAI, Llama 3 and 4, Qwen, GLM 4 and
        Kimi K2 are recognized by their ranks. For other files, pass the pattern (a name, a regular expression or a
        `Split`) and the special tokens.

        >>> encoding = Tokenizer.train("aaabdaaabac", 259).to_tiktoken()
        >>> Tokenizer.from_tiktoken(encoding).encode("aaab")
        [258]
        """
        return _from_source(rank_file.load(path, Split.of(pattern) if pattern else None, special_tokens), path)

    @classmethod
    def from_huggingface(cls, source: Any) -> Tokenizer:
        """Load a tokenizer from Hugging Face's files, or from an object of `tokenizers` or `transformers`.

        `source` is the path of a tokenizer.json, of a vocab.json or merges.txt (with the other one next to it), or of a
        folder with these files; or the content of a tokenizer.json, as bytes or as a string that starts with "{".

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).export(f"{folder}/tokenizer.json", "huggingface")
        ...     Tokenizer.from_huggingface(folder).encode("aaab")
        [258]
        """
        return _from_source(huggingface.load(source), source)

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Write `prefix`.model, which `from_file` loads, and `prefix`.vocab, a human-readable list of the tokens.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['mine.model', 'mine.vocab']
        """
        check_path("prefix", prefix)
        path = Path(prefix)
        path = path if path.suffix == ".model" else path.with_name(path.name + ".model")
        vocab_path = path.with_suffix(".vocab")
        with replacing_all([vocab_path, path]) as (temporary_vocab, temporary_model):
            with writing(vocab_path):
                native.write_vocab(self.model, temporary_vocab)
            with writing(path):
                temporary_model.write_text(native.render(self.model), encoding="utf-8", newline="\n")

    @property
    def roles(self) -> dict[str, str]:
        """The special token of each role, as an export to transformers writes them: explicit ones, or by their names.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<|endoftext|>"]).roles
        {'bos': '<|endoftext|>', 'eos': '<|endoftext|>'}
        """
        return roles_of(self.model)

    @documented(roles=[RoleOptions])
    def export(
        self,
        path: str | os.PathLike[str],
        format: Format,
        *,
        allow_inexact: bool = False,
        bos: str | None = None,
        eos: str | None = None,
        pad: str | None = None,
        unk: str | None = None,
        mask: str | None = None,
        cls: str | None = None,
        sep: str | None = None,
        chat_template: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write a file for another tool, or a folder for transformers.

        Raise if the other tool would encode differently. With `allow_inexact`, write the file anyway, without what the
        format cannot represent.

        Parameters
        ----------
        path: the file or folder.
        format: its format; see https://batchbpe.github.io/batchbpe/formats.html.
        allow_inexact: whether to write the file even if some text would be encoded differently.
        {roles}
        Only transformers, gguf and batchbpe store roles and a chat template. chat_template is the text of the template,
        or a path object such as `Path("chat.jinja")`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).export(f"{folder}/mine.tiktoken", "tiktoken")
        ...     Path(f"{folder}/mine.tiktoken").read_text().splitlines()[-1]
        'YWFhYg== 258'
        """
        roles = picked(RoleOptions, locals())
        save_file(self.model, path, format, allow_inexact=allow_inexact, roles=roles)

    def to_tiktoken(self) -> tiktoken.Encoding:
        """Convert to a `tiktoken.Encoding`. Raise if tiktoken would encode differently.

        >>> Tokenizer.train("aaabdaaabac", 259).to_tiktoken().encode("aaab")
        [258]
        """
        try:
            import tiktoken
        except ImportError:
            raise ImportError("to_tiktoken requires tiktoken; run pip install tiktoken") from None
        check_bare_split(self.model.split, "tiktoken", remedy="export to another format")
        check_not_empty(self.pattern, "tiktoken")
        special_tokens = dict(self.special_tokens)
        for first, following in pairwise(sorted(special_tokens)):
            if following.startswith(first):
                raise DataError(
                    f"special token {short(following)} starts with {short(first)}, and tiktoken may match either",
                    remedy="rename one of them",
                )
        ranks = rank_file.ranks_of(self.model, remedy="export to another format to keep them")
        pattern = pattern_with_phrases(self.model)
        return tiktoken.Encoding(self.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special_tokens)

    def view(self, text: str, *, errors: Errors = "strict") -> Encoding:
        """Encode a text for display: a notebook shows it with colored tokens. Special tokens are encoded as such.

        >>> Tokenizer.train("aaabdaaabac", 259).view("aaabd")
        Encoding([258, 100])
        """
        from ..analysis.display import Encoding

        return Encoding(self, self.encode(text, "all", errors=errors))

    def compare(self, text: str, *others: Tokenizer, errors: Errors = "strict") -> Comparison:
        """Encode a text with this and other tokenizers: a notebook shows the tokens side by side.

        >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 259))
        >>> one.compare("aaabd", two)
        Comparison(batchbpe=4 tokens, batchbpe (2)=2 tokens)
        """
        from ..analysis.comparison import Comparison, unique_names

        tokenizers = (self, *others)
        names = unique_names([getattr(each, "name", "") for each in tokenizers])
        return Comparison(dict(zip(names, tokenizers, strict=True)), text, errors=errors)

    def id_map(self, base: Loadable) -> IdMap:
        """Relate the ids of this vocabulary to those of another: which tokens are the same, and the parts of new ones.

        `base` can be a tokenizer of this package, of `tokenizers` or of transformers, a model, or a path. If it lacks a
        token, the parts of the token are the ids to which `base` encodes it.
        https://batchbpe.github.io/batchbpe/embeddings.html shows how to give a language model this vocabulary.

        >>> base = Tokenizer.train("aaabdaaabac", 257)
        >>> longer = Tokenizer.train("aaabdaaabac", 259, base=base)
        >>> longer.id_map(base)
        IdMap(kept=257, moved=0, added=2, removed=0)
        >>> longer.id_map(base).parts(258)
        [256, 97, 98]
        """
        from ..analysis.id_map import IdMap

        return IdMap(self, base)

    def _repr_html_(self) -> str:
        """Display what the vocabulary contains in a notebook."""
        from ..analysis.inspection import inspect_model

        return inspect_model(self)._repr_html_()

    def show(self, text: str, *, errors: Errors = "strict") -> None:
        """Print a text with colored tokens, or with | between tokens if the output does not support 256 colors.

        A subscript is the number of tokens that a character is split into.

        >>> Tokenizer.train("aaabdaaabac", 259).show("aaabd")
        aaab|d
        """
        self.view(text, errors=errors).show()


def _from_source(model: Model, source: Any) -> Tokenizer:
    """Create a tokenizer with the name of the file or object that the model was loaded from."""
    if not isinstance(source, str | os.PathLike) or huggingface.is_content(source):
        return Tokenizer(model, name=getattr(source, "name", None))
    with locate_errors(source):
        return Tokenizer(model, name=Path(source).stem)
