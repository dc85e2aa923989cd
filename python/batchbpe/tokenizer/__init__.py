"""`Tokenizer`: train, load, save and export. Encoding and decoding are in `codec`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..arguments import check_path
from ..counts import ChunkCounts
from ..data import corpus
from ..data.options import MAX_DOCUMENT_BYTES
from ..errors import DataError, short
from ..formats import Format, huggingface, load_file, native, save_file
from ..formats import tiktoken as rank_file
from ..formats.file_errors import locate_errors
from ..formats.phrase_pattern import pattern_with_phrases
from ..formats.portability import check_not_empty
from ..model import Model
from ..patterns import resolve_pattern
from ..phrases.counting import PhraseChunks
from ..policies import Policy
from ..storage.atomic import replacing_all, writing
from ..training import train as training
from ..training.loop import Batch
from ..training.options import Ties
from ..util.surrogates import Errors
from .codec import Codec

if TYPE_CHECKING:
    import tiktoken

    from ..analysis.comparison import Comparison
    from ..analysis.view import Encoding


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

    @classmethod
    def train(
        cls,
        data: corpus.Data | None = None,
        vocab_size: int | None = None,
        *,
        texts: str | Iterable[str] | None = None,
        files: corpus.PathLike | Iterable[corpus.PathLike] | None = None,
        pattern: str | None = None,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        policy: Policy | str = "continue_search",
        overlapping: bool = False,
        ties: Ties = "ids",
        base: Tokenizer | Model | None = None,
        phrases: int | Literal["auto"] = 0,
        phrase_chunks: PhraseChunks = "letters",
        max_words: int = 4,
        phrase_sample: float | None = None,
        text_column: str = "text",
        jsonl_field: str | None = None,
        errors: Errors = "strict",
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        sample: float = 1.0,
        seed: int = 0,
        limit_bytes: int | None = None,
        progress: Callable[[int], object] | bool | None = None,
        on_counts: Callable[[ChunkCounts], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
        threads: int | None = None,
    ) -> Tokenizer:
        """Train a tokenizer of `vocab_size` tokens.

        Parameters
        ----------
        data: a text, path, glob, folder or URL; chunk counts; arrow data, data frames or datasets; an iterable of
            strings; or a list of any of these. See `batchbpe.data.corpus`.
        vocab_size: total number of tokens: 256 bytes, stop words, merges and special tokens.
        texts: strings to train on instead of `data`, even if they look like paths.
        files: paths, globs, folders or URLs to train on instead of `data`.
        pattern: name or regular expression; by default that of `base` or of the counts in `data`, or gpt4.
        stop_list_size: number of stop words: the most frequent chunks get whole-chunk tokens.
        freq_cutoff: ignore chunks that occur fewer times.
        special_tokens: a list of names, which get the last ids, or a mapping from name to id.
        cap_divisor: search at most `merges_remaining // cap_divisor` pairs per batch.
        max_batch_size: search at most this many pairs per batch; 0 for no limit.
        policy: chooses which of these pairs are merged: a function, or a name from `batchbpe.policies`.
        overlapping: count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice.
        ties: which of several pairs with equal counts comes first: the one with the smallest "ids", or that of
            "huggingface", so that `policy="serial", overlapping=True` trains like its `BpeTrainer`.
        base: tokenizer to extend. All its tokens, including special tokens, keep their ids; new tokens come after them.
        phrases: number of tokens for phrases such as " of the", or "auto" to balance them with merges. They are part of
            `vocab_size`, and the data is read again to find them.
        phrase_chunks: which chunks a phrase may consist of: "letters" (those with a letter), "text" (also punctuation),
            a regular expression, or a function that receives a chunk.
        max_words: largest number of chunks in a phrase.
        phrase_sample: share of the text from which phrases are learned; by default as much as makes 256 MiB.
        text_column: column of tables, or field of jsonl files, that contains the text.
        jsonl_field: field of jsonl files that contains the text, if not `text_column`. Standard input is then jsonl.
        errors: "strict", or "replace" to replace invalid UTF-8 with U+FFFD.
        max_document_bytes: largest row, line, or part of a text file that cannot be cut.
        sample: share of the documents to use, chosen by `seed`.
        limit_bytes: stop after this many bytes of text.
        progress: True shows progress bars; a function is called with the number of bytes read so far.
        on_counts: called with the chunk counts before training.
        on_batch: called with a `Batch` after each batch.
        threads: number of threads; all cores by default.

        >>> base = Tokenizer.train("aaabdaaabac", 257)
        >>> dict(Tokenizer.train("aaabdaaabac", 259, base=base).merges)
        {(97, 97): 256, (97, 98): 257, (256, 257): 258}

        """
        return Tokenizer(
            training.train(
                data,
                vocab_size,
                texts=texts,
                files=files,
                pattern=pattern,
                stop_list_size=stop_list_size,
                freq_cutoff=freq_cutoff,
                special_tokens=special_tokens,
                cap_divisor=cap_divisor,
                max_batch_size=max_batch_size,
                policy=policy,
                overlapping=overlapping,
                ties=ties,
                base=getattr(base, "model", base),
                phrases=phrases,
                phrase_chunks=phrase_chunks,
                max_words=max_words,
                phrase_sample=phrase_sample,
                text_column=text_column,
                jsonl_field=jsonl_field,
                errors=errors,
                max_document_bytes=max_document_bytes,
                sample=sample,
                seed=seed,
                limit_bytes=limit_bytes,
                progress=progress,
                on_counts=on_counts,
                on_batch=on_batch,
                threads=threads,
            )
        )

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
        cls, path: str | os.PathLike[str], pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
    ) -> Tokenizer:
        """Load a tokenizer from a .tiktoken rank file or a `tiktoken.Encoding`.

        Rank files do not store the pattern or the special tokens. Files published by OpenAI are recognized by name.
        For other files, pass the pattern (a name or a regular expression) and the special tokens.

        >>> encoding = Tokenizer.train("aaabdaaabac", 259).to_tiktoken()
        >>> Tokenizer.from_tiktoken(encoding).encode("aaab")
        [258]
        """
        return _from_source(rank_file.load(path, pattern and resolve_pattern(pattern), special_tokens), path)

    @classmethod
    def from_huggingface(cls, source: Any) -> Tokenizer:
        """Load a tokenizer from a tokenizer.json, a folder with one, or an object of `tokenizers` or `transformers`.

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
                native.write(self.model, temporary_model)

    def export(self, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
        """Write a file for another tool, or a folder for transformers.

        Raise if the other tool would encode differently. With `allow_inexact`, write the file anyway, without what the
        format cannot represent.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).export(f"{folder}/mine.tiktoken", "tiktoken")
        ...     Path(f"{folder}/mine.tiktoken").read_text().splitlines()[-1]
        'YWFhYg== 258'
        """
        save_file(self.model, path, format, allow_inexact=allow_inexact)

    def to_tiktoken(self) -> tiktoken.Encoding:
        """Convert to a `tiktoken.Encoding`. Raise if tiktoken would encode differently.

        >>> Tokenizer.train("aaabdaaabac", 259).to_tiktoken().encode("aaab")
        [258]
        """
        try:
            import tiktoken
        except ImportError:
            raise ImportError("to_tiktoken requires tiktoken; run pip install tiktoken") from None
        check_not_empty(self.pattern, "tiktoken")
        special_tokens = dict(self.special_tokens)
        for first, following in pairwise(sorted(special_tokens)):
            if following.startswith(first):
                raise DataError(
                    f"special token {short(following)} starts with {short(first)}, and tiktoken may match either",
                    remedy="rename one of them",
                )
        ranks = rank_file.ranks_of(self.model, remedy="export to another format to keep them")
        pattern = pattern_with_phrases(self.model) if self.phrases else self.pattern
        return tiktoken.Encoding(self.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special_tokens)

    def view(self, text: str, *, errors: Errors = "strict") -> Encoding:
        """Encode a text for display: a notebook shows it with coloured tokens. Special tokens are encoded as such.

        >>> Tokenizer.train("aaabdaaabac", 259).view("aaabd")
        Encoding([258, 100])
        """
        from ..analysis.view import Encoding

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

    def show(self, text: str, *, errors: Errors = "strict") -> None:
        """Print a text with coloured tokens, or with | between tokens if the output does not support 256 colours.

        A subscript is the number of tokens that a character is split into.

        >>> Tokenizer.train("aaabdaaabac", 259).show("aaabd")
        aaab|d
        """
        self.view(text, errors=errors).show()


def _from_source(model: Model, source: Any) -> Tokenizer:
    """Create a tokenizer with the name of the file or object that the model was loaded from."""
    if not isinstance(source, str | os.PathLike):
        return Tokenizer(model, name=getattr(source, "name", None))
    with locate_errors(source):
        return Tokenizer(model, name=Path(source).stem)
