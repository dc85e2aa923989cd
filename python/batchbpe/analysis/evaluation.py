"""`evaluate`: compare tokenizers on the same text, or on groups of documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, get_args

from ..arguments import check_number
from ..choices import Unit
from ..counts import ChunkCounts
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling
from ..data.source import Source
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, listed, plural, short
from ..options import accepting
from ..tokenizer import Tokenizer
from ..util.progress import Meter, bar, format_size
from . import auditing, groups, lower_bound
from .evaluation_table import EvaluationTable
from .evaluator import Evaluator, TextEncoder, Tokenizers, named_tokenizers
from .group_evaluation import compare_groups
from .metrics import total

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .ngram import NgramBits


@accepting(ReadOptions, Sampling)
def evaluate(
    tokenizers: Tokenizers,
    data: Mapping[str, Data] | Data | None = None,
    *,
    texts: Mapping[str, str | Iterable[str]] | str | Iterable[str] | None = None,
    files: Mapping[str, Files] | Files | None = None,
    group_column: str | None = None,
    by_file: bool = False,
    per: Unit = "character",
    parity: str | None = None,
    audit: bool = False,
    ngram_train: Data | Corpus | None = None,
    ngram_order: int = 5,
    bound: bool = False,
    bound_seconds: float | None = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> EvaluationTable:
    """Evaluate tokenizers on the same text, and by group if the data is a dict or has a column of groups.

    Special tokens in the text are encoded as ordinary text. A tokenizer that is not a `Tokenizer`, or that overrides
    `Tokenizer.encode`, is called as `encode(document)` for every document and every unique word, which is slower.

    Parameters
    ----------
    tokenizers: a tokenizer, the path of a model file, or a list or dict of these. A tokenizer is any object with a
        method `encode(text)`.
    data: anything that `train` accepts, or a dict of groups and their data. Words are unknown in chunk counts, and only
        tokenizers with the same pattern can encode them.
    texts: evaluate on these strings, or on a dict of groups of strings, whatever they look like, instead of `data`.
    files: evaluate on these paths, globs, folders or URLs, or on a dict of groups of these; "-" is standard input.
    group_column: column of tables, or field of jsonl files, that contains the group of each document.
    by_file: whether each file is a group.
    per: unit of text whose cost in tokens is compared between groups. "text" is for groups that contain the same text
        in different languages.
    parity: the group with which the others are compared; by default the cheapest for the first tokenizer.
    audit: whether to find unused and suspicious tokens; see `Audit`. Only a `Tokenizer` can be audited.
    ngram_train: documents to train n-gram models on, which then predict the data; see `ngram_bits`.
    ngram_order: number of tokens in the longest n-grams.
    bound: whether to compute how many tokens any vocabulary of the same size needs; see `lower_bound.bound`. This takes
        minutes. Tokenizers that have no bound, such as those with phrases, are in `EvaluationTable.unbounded`.
    bound_seconds: stop the search for each bound after about this many seconds. The bound is valid, but not as high.
    {reading}
    sample and limit_bytes select from each group. They cannot be combined with `group_column`.
    threads: number of threads; all cores by default.
    progress: whether to display a progress bar.

    >>> plain, merged = (Tokenizer.train("to be or not to be", size) for size in (256, 258))
    >>> [result.tokens for result in evaluate({"bytes": plain, "merged": merged}, "to be")]
    [5, 3]
    >>> evaluate(plain, texts=["notes.txt"], limit_bytes=5)[0].tokens
    9
    >>> texts = {"en": "to be or not to be", "de": "Sein oder Nichtsein"}
    >>> result = evaluate({"merged": merged}, texts, audit=True)
    >>> result.groups.reference_group, round(result.groups.tokenizers["merged"].parity["de"], 2)
    ('en', 1.29)
    >>> 257 in result.audits["merged"].unused
    False

    """
    named = named_tokenizers(tokenizers)
    if audit and not any(isinstance(each, Tokenizer) for each in named.values()):
        raise ArgumentError("audit", audit, "needs a Tokenizer, since other objects have no known vocabulary")
    if bound_seconds is not None:
        check_number("bound_seconds", bound_seconds)
        if not bound:
            raise ArgumentError("bound_seconds", bound_seconds, ("needs ", Setting("bound", True)))
    corpus = Corpus.of(data, texts, files, reading)
    grouped = grouped_documents(corpus, group_column, by_file)
    _check_comparison(per, parity, grouped is not None)
    _check_ngrams(ngram_train, ngram_order, corpus, grouped is not None)
    sources, documents = grouped or (corpus.sources, groups.by_name({"": corpus.sources}, corpus.sampling))
    evaluators: dict[str, Evaluator] = {}
    new_evaluator = partial(Evaluator, named, errors=corpus.options.errors, threads=threads)
    new_evaluator()  # reports wrong arguments even if there are no documents
    with reading_bar(sources, show=progress) as update:
        for source, parts in documents:
            with source.blamed():
                for group, some in parts:
                    if group not in evaluators:
                        evaluators[group] = new_evaluator()
                    evaluators[group].add(some)
                    update()
    full = {group: evaluator for group, evaluator in sorted(evaluators.items()) if evaluator.text.bytes}
    check_text(full, sources, corpus)
    by_group = {group: evaluator.results() for group, evaluator in full.items()}
    evaluations = [total(parts) for parts in zip(*by_group.values(), strict=True)]
    empty = sorted(evaluators.keys() - full.keys())
    counted = [each.text.chunks for each in full.values()]
    bounds, unbounded = lower_bound.bounds(named, counted, bound_seconds, progress=progress) if bound else ({}, {})
    return EvaluationTable(
        evaluations,
        named,
        compare_groups(by_group, per, parity, empty) if grouped else None,
        {
            each.name: auditing.audit(tokenizer, frequencies=each.frequencies)
            for each, tokenizer in zip(evaluations, named.values(), strict=True)
            if audit and isinstance(tokenizer, Tokenizer)
        },
        _ngram_bits(ngram_train, ngram_order, corpus, named, threads, progress=progress),
        bounds,
        unbounded,
    )


def grouped_documents(
    corpus: Corpus, group_column: str | None, by_file: bool
) -> tuple[list[Source], groups.GroupedDocuments] | None:
    """Return the sources to read and their documents by group, or None if nothing defines groups.

    >>> sources, documents = grouped_documents(Corpus({"en": ["to be"], "de": ["zu sein"]}), None, by_file=False)
    >>> [group for _, parts in documents for group, _ in parts]
    ['en', 'de']
    """
    by_name = _by_name(corpus)
    _check_groups(corpus, by_name is not None, group_column, by_file)
    if group_column is not None:
        return corpus.sources, groups.by_column(corpus.sources, group_column)
    if by_file:
        return corpus.sources, groups.by_file(corpus.sources, corpus.sampling)
    if by_name is None:
        return None
    return [source for each in by_name.values() for source in each], groups.by_name(by_name, corpus.sampling)


def required_groups(
    corpus: Corpus, group_column: str | None, by_file: bool
) -> tuple[list[Source], groups.GroupedDocuments]:
    """Return what `grouped_documents` does, or raise if nothing defines groups, or if there is only one.

    >>> required_groups(Corpus({"en": ["to be"]}), None, by_file=False)
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: at least two groups are needed, got en
    """
    found = grouped_documents(corpus, group_column, by_file)
    if found is None:
        remedy = ("or use ", Setting("group_column"), " or ", Setting("by_file"))
        raise ArgumentTypeError("groups", corpus.given, "must be a dict of group names and their data", remedy=remedy)
    if group_column is None:
        check_two_groups(list(map(str, corpus.given)) if not by_file else [source.name for source in found[0]])
    return found


def check_two_groups(names: Collection[str]) -> None:
    """Raise unless there are at least two groups."""
    if len(names) < 2:
        raise DataError(f"at least two groups are needed, got {listed(names)}")


def _by_name(corpus: Corpus) -> dict[str, list[Source]] | None:
    """Return the sources of each group if the data is a dict of groups. A dict of integers is chunk counts."""
    given = corpus.given
    if not isinstance(given, Mapping) or isinstance(given, ChunkCounts):
        return None
    is_data = given is corpus.data
    if is_data and all(isinstance(each, Integral) for each in given.values()):
        return None
    kind = "data" if is_data else "texts" if given is corpus.texts else "files"
    for group, value in given.items():
        if value is None or isinstance(value, Integral):
            raise ArgumentTypeError(f"{kind}[{group!r}]", value, "must be text, files or other data")
    options = corpus.options
    return {str(group): Corpus(**{kind: each}, options=options).sources for group, each in given.items()}


def _check_groups(corpus: Corpus, is_dict: bool, group_column: str | None, by_file: bool) -> None:
    """Raise unless at most one of a dict, `group_column` and `by_file` defines the groups."""
    if group_column is not None and by_file:
        raise ArgumentError("group_column", group_column, ("must be omitted if ", Setting("by_file"), " is set"))
    for name, value in {"group_column": group_column, "by_file": by_file or None}.items():
        if value is not None and is_dict:
            raise ArgumentError(name, value, "must be omitted if the data is a dict of groups")
    for name in ("sample", "limit_bytes") if group_column is not None else ():
        value = getattr(corpus.sampling, name)
        if value != getattr(Sampling, name):
            raise ArgumentError(name, value, ("must be omitted with ", Setting("group_column")))


def _check_comparison(per: Unit, parity: str | None, is_grouped: bool) -> None:
    if per not in get_args(Unit):
        raise ArgumentError("per", per, f"must be one of {', '.join(map(repr, get_args(Unit)))}")
    for name, value in {"per": per if per != "character" else None, "parity": parity}.items():
        if value is not None and not is_grouped:
            remedy = ("use a dict of groups, ", Setting("group_column"), " or ", Setting("by_file"))
            raise ArgumentError(name, value, "needs groups", remedy=remedy)


def _check_ngrams(train: Data | Corpus | None, order: int, corpus: Corpus, is_grouped: bool) -> None:
    """Raise unless n-gram models can be trained, and predict the text that has been evaluated."""
    from .ngram import check_order

    check_order("ngram_order", order)
    if train is None:
        return
    if is_grouped:
        raise ArgumentError(
            "ngram_train", train, "cannot be combined with groups", remedy="evaluate the text of each group separately"
        )
    _ = _as_corpus(train, corpus).sources  # raises if a file is missing
    if corpus.read_once:
        raise ArgumentError("ngram_train", train, f"needs data that can be read more than once, not {corpus.read_once}")


def _ngram_bits(
    train: Data | Corpus | None,
    order: int,
    corpus: Corpus,
    tokenizers: Mapping[str, TextEncoder],
    threads: int | None,
    *,
    progress: bool,
) -> dict[str, NgramBits]:
    from .ngram import corpus_bits

    if train is None:
        return {}
    return corpus_bits(
        tokenizers, _as_corpus(train, corpus), replace(corpus), order=order, threads=threads, progress=progress
    )


def _as_corpus(train: Data | Corpus, corpus: Corpus) -> Corpus:
    """Return a corpus that has not been read yet, with the options of another."""
    return replace(train) if isinstance(train, Corpus) else Corpus(train, options=corpus.options)


def check_text(found: object, sources: Iterable[Source], corpus: Corpus) -> None:
    """Raise if nothing was found because the data contains no text.

    >>> evaluate(Tokenizer.train("to be", 256), "")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: no text found in ''; pass data that is not empty
    """
    if not found:
        names = [source.name for source in sources if source.name]
        value = short(corpus.given)
        if names:
            value = names[0] if len(names) == 1 else plural(len(names), "file")
        is_sample = corpus.sampling.sample < 1
        remedy = ("raise ", Setting("sample"), " or pass more data") if is_sample else "pass data that is not empty"
        raise DataError(f"no text found in {value}", remedy=remedy)


@contextmanager
def reading_bar(sources: Sequence[Source], *, show: bool) -> Iterator[Callable[[], object]]:
    """Display progress through the sources. The function that is returned updates the display."""
    meter = Meter(sources)
    with bar("counting", meter.size, show=show) as update:
        yield lambda: update(meter.done, format_size(meter.done))
