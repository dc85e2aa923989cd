"""Inspect vocabularies and chunk counts. Results are dataclasses; `dataclasses.asdict` makes them JSON-ready."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays
from ..data.corpus import Data, Files
from ..errors import ArgumentError
from ..formats import Loadable
from ..formats.carried import described
from ..formats.roles import roles_of
from ..model import Model
from ..model.tree import MergeTree
from ..patterns import explain
from .display import decoded
from .inspection_tables import counts_tables, model_tables, token_table
from .loading import loaded
from .tables import Table, Tabular, notebook_tables


@dataclass(frozen=True)
class TokenInfo:
    """A token of a vocabulary.

    >>> TokenInfo.of(258, b" be")
    TokenInfo(id=258, text=' be', hex='206265', bytes=3)
    """

    id: int
    text: str | None
    """The token as text. None if it is not valid UTF-8."""
    hex: str
    bytes: int

    @classmethod
    def of(cls, token: int, value: Any) -> TokenInfo:
        """Describe a token by its id and bytes."""
        return cls(token, decoded(value), value.hex(), len(value))


class FoundTokens(list[TokenInfo]):
    """A list of tokens, which a notebook displays as a table."""

    def _repr_html_(self) -> str:
        return notebook_tables([token_table(self)])


@dataclass(frozen=True)
class TreeNode(TokenInfo):
    """A token and the ids of the tokens from which it was made: two, or the chunks of a phrase."""

    parts: tuple[int, ...]


@dataclass(frozen=True)
class ChunkInfo:
    """A chunk and its count."""

    count: int
    text: str | None
    """The chunk as text. None if it is not valid UTF-8."""
    hex: str
    bytes: int

    @classmethod
    def of(cls, value: Any, count: int) -> ChunkInfo:
        """Describe a chunk by its bytes and count."""
        return cls(count, decoded(value), value.hex(), len(value))


@dataclass(frozen=True, repr=False)
class ModelSummary(Tabular):
    """Contents of a vocabulary; see `inspect_model`.

    >>> inspect_model(Tokenizer.train("aaab", 257)).tokens
    257
    """

    tokens: int
    largest_id: int
    merges: int
    stop_words: int
    special_tokens: Mapping[str, int]
    roles: Mapping[str, str]
    """The special tokens with a role in transformers, such as bos."""
    chat_template: bool
    """Whether there is one."""
    pattern: str
    split: str
    """How text becomes chunks: the name of the pattern, and what happens before."""
    pattern_engine: str
    """What runs the pattern; see `patterns.explain`."""
    longest_merge: TokenInfo | None
    mean_merge_bytes: float
    added_tokens: Mapping[str, int]
    phrases: int
    longest_phrase: TokenInfo | None
    hidden: int
    """Merges whose tokens are only steps to others."""
    training: Mapping[str, Any]
    """Options and data size that training recorded."""

    def tables(self) -> Iterator[Table]:
        """Yield a table of all fields."""
        return model_tables(self)


@dataclass(frozen=True)
class TrainingLog:
    """The batches of a training; see `training_log`. Each list has one number per batch.

    >>> training_log(Tokenizer.train("aaabdaaabac", 259).model.training)
    TrainingLog(size=[1, 1, 1], searched=[1, 1, 1], last_count=[2, 2, 2])
    """

    size: list[int]
    """Pairs merged."""
    searched: list[int]
    """Pairs searched."""
    last_count: list[int]
    """How often the last pair of the batch occurred."""


@dataclass(frozen=True)
class CountRange:
    """Number of unique chunks whose count is between two bounds, inclusive."""

    least: int
    most: int
    unique: int


@dataclass(frozen=True, repr=False)
class CountsSummary(Tabular):
    """Contents of chunk counts; see `inspect_counts`.

    >>> inspect_counts("to be or not to be").total
    6
    """

    total: int
    unique: int
    pattern: str
    split: str
    """How text became chunks: the name of the pattern, and what happened before."""
    share_of_most_frequent: Mapping[str, float]
    """Fraction of the total that the 100 and the 10,000 most frequent chunks make up."""
    longest_chunk: int
    """Length in bytes."""
    most_frequent: tuple[ChunkInfo, ...]
    rarest: tuple[ChunkInfo, ...]
    distribution: tuple[CountRange, ...]

    def tables(self) -> Iterator[Table]:
        """Yield the figures, the distribution and the chunks."""
        return counts_tables(self)


def inspect_model(tokenizer: Loadable) -> ModelSummary:
    """Summarize the vocabulary of a tokenizer, or of its path.

    >>> summary = inspect_model(Tokenizer.train("aaabdaaabac", 259))
    >>> summary.merges, summary.longest_merge
    (3, TokenInfo(id=258, text='aaab', hex='61616162', bytes=4))
    """
    model = loaded("tokenizer", tokenizer).model
    mean = sum(len(model.vocab_with_hidden[token]) for token in model.merges.values()) / max(1, len(model.merges))
    return ModelSummary(
        tokens=len(model.vocab),
        largest_id=model.n_vocab - 1,
        merges=len(model.merges),
        stop_words=len(model.stop_words),
        special_tokens=dict(model.special_tokens),
        roles=roles_of(model),
        chat_template="chat_template" in described(model.carried),
        pattern=model.pattern,
        split=model.split.name,
        pattern_engine=explain(model.split).engine,
        longest_merge=_longest(model, model.visible_merges.values()),
        mean_merge_bytes=round(mean, 3),
        added_tokens=dict(model.added_tokens),
        phrases=len(model.phrases),
        longest_phrase=_longest(model, model.phrases.values()),
        hidden=len(model.hidden),
        training=dict(model.training),
    )


def training_log(training: Mapping[str, Any]) -> TrainingLog | None:
    """Return the log in the training metadata of a model, or None if it has no log.

    Models from other tools, or trained with the policy `serial` or in more than 1,000 batches, have no log.

    >>> training_log(Tokenizer.train("aaabdaaabac", 259, policy="serial").model.training) is None
    True
    """
    batches = training.get("batches")
    if not isinstance(batches, Mapping):  # a model file may contain anything here
        return None
    columns: list[Any] = [batches.get(each.name) for each in fields(TrainingLog)]
    if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return None
    is_valid = all(type(number) is int and number >= 0 for column in columns for number in column)
    return TrainingLog(*columns) if is_valid else None


def _longest(model: Model, tokens: Iterable[int]) -> TokenInfo | None:
    longest = max(tokens, key=lambda token: len(model.vocab[token]), default=None)
    return None if longest is None else TokenInfo.of(longest, model.vocab[longest])


def find_tokens(tokenizer: Loadable, *, search: str | None = None, longest: int | None = None) -> FoundTokens:
    """Return the tokens that contain `search`, by default all; with `longest`, the n longest of them.

    >>> find_tokens(Tokenizer.train("aaabdaaabac", 258), search="ab")
    [TokenInfo(id=257, text='ab', hex='6162', bytes=2)]
    """
    if longest is not None and longest < 0:
        raise ArgumentError("longest", longest, "must be at least 0")
    rows = list(loaded("tokenizer", tokenizer).vocab.items())
    if search is not None:
        rows = [(token, value) for token, value in rows if search.encode() in value]
    if longest is not None:
        rows = sorted(rows, key=lambda row: (-len(row[1]), row[0]))[:longest]
    return FoundTokens(TokenInfo.of(token, value) for token, value in rows)


def tree_nodes(tree: MergeTree) -> Iterator[TreeNode]:
    """Yield a token and all tokens from which it was merged, each before its parts.

    >>> [(node.id, node.parts) for node in tree_nodes(Tokenizer.train("aab aab", 258).merge_tree(256))]
    [(256, (97, 97)), (97, ()), (97, ())]
    """
    todo = [tree]
    while todo:
        node = todo.pop()
        parts = tuple(part.token for part in node.parts)
        yield TreeNode(node.token, decoded(node.value), node.value.hex(), len(node.value), parts)
        todo += reversed(node.parts)


def _chunk(arrays: ChunkArrays, index: int) -> ChunkInfo:
    start, end = arrays.offsets[index : index + 2].tolist()
    return ChunkInfo.of(arrays.data[start:end].tobytes(), int(arrays.counts[index]))


def inspect_counts(
    data: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    top: int = 10,
) -> CountsSummary:
    """Summarize chunk counts, or the chunks of data: totals, the `top` most frequent and rarest, the distribution.

    Parameters
    ----------
    data, texts, files: as in `ChunkCounts.count`.
    top: number of chunks to list.

    >>> summary = inspect_counts("to be or not to be", top=1)
    >>> summary.most_frequent
    (ChunkInfo(count=2, text=' be', hex='206265', bytes=3),)
    >>> summary.distribution
    (CountRange(least=1, most=1, unique=4), CountRange(least=2, most=9, unique=1))
    >>> inspect_counts(texts=["notes.txt"]).total
    2

    """
    if top < 0:
        raise ArgumentError("top", top, "must be at least 0")
    counts = ChunkCounts.count(data, texts=texts, files=files)
    total = counts.total
    edges = [1, 2, *(10**power for power in range(1, 20)), 1 << 64]
    unique = [counts.at_least(low).unique - counts.at_least(high).unique for low, high in pairwise(edges)]
    return CountsSummary(
        total=total,
        unique=counts.unique,
        pattern=counts.pattern,
        split=counts.split.name,
        share_of_most_frequent={
            str(size): round(int(counts.arrays.counts[:size].sum(dtype=object)) / max(1, total), 4)
            for size in (100, 10_000)
        },
        longest_chunk=int(counts.chunk_bytes.max(initial=0)),
        most_frequent=tuple(_chunk(counts.arrays, index) for index in range(min(top, counts.unique))),
        rarest=tuple(_chunk(counts.arrays, index) for index in range(max(0, counts.unique - top), counts.unique)),
        distribution=tuple(
            CountRange(low, high - 1, number)
            for (low, high), number in zip(pairwise(edges), unique, strict=True)
            if number
        ),
    )
