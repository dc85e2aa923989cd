"""The results of `inspection` as rows and tables for display."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import plural
from .display import quoted_token
from .tables import NOTHING, Table

if TYPE_CHECKING:
    from .inspection import ChunkInfo, CountsSummary, ModelSummary, TokenInfo

MAX_NAMES = 8
"""Number of special tokens, roles or options that a notebook displays."""


def quoted(item: TokenInfo | ChunkInfo) -> str:
    """Return a token or chunk in quotes, on one line."""
    return quoted_token(bytes.fromhex(item.hex))


def model_rows(summary: ModelSummary) -> dict[str, Any]:
    """Return what is displayed of a vocabulary: values, and dicts of values, by name."""
    from .inspection import training_log

    rows = asdict(summary)
    rows["pattern"] = rows.pop("split")
    for kind in ("special_tokens", "added_tokens"):  # a name may contain control characters
        names = {name if name.isprintable() else repr(name)[1:-1]: token for name, token in rows[kind].items()}
        rows[kind] = names
    for name, token in {"longest_merge": summary.longest_merge, "longest_phrase": summary.longest_phrase}.items():
        rows[name] = token and f"{quoted(token)} ({plural(token.bytes, 'byte')})"
    if log := training_log(summary.training):
        rows["training"]["batches"] = len(log.size)
    for name in ("added_tokens", "roles", "chat_template"):
        if not rows[name]:
            del rows[name]
    if not summary.phrases:
        del rows["phrases"], rows["longest_phrase"]
    if not summary.hidden:
        del rows["hidden"]
    return {name.replace("_", " "): value for name, value in rows.items()}


def counts_rows(summary: CountsSummary) -> dict[str, Any]:
    """Return what is displayed of chunk counts, besides the chunks themselves."""
    ranges = {
        f"{each.least:,} to {each.most:,}" if each.least < each.most else str(each.least): each.unique
        for each in summary.distribution
    }
    return {
        "total chunks": summary.total,
        "unique chunks": summary.unique,
        "pattern": summary.split,
        **{
            f"fraction in the {int(n):,} most frequent chunks": fraction
            for n, fraction in summary.share_of_most_frequent.items()
        },
        "longest chunk": plural(summary.longest_chunk, "byte"),
        "unique chunks by count": ranges,
    }


def model_tables(summary: ModelSummary) -> Iterator[Table]:
    """Yield the rows of a vocabulary as a table."""
    yield ["vocabulary", ""], [[name, _cell(value)] for name, value in model_rows(summary).items()]


def counts_tables(summary: CountsSummary) -> Iterator[Table]:
    """Yield the figures, the distribution and some chunks."""
    rows = counts_rows(summary)
    ranges = rows.pop("unique chunks by count")
    yield ["chunk counts", ""], [[name, _cell(value)] for name, value in rows.items()]
    yield ["count", "unique chunks"], [[bounds, f"{number:,}"] for bounds, number in ranges.items()]
    yield from chunk_tables(summary)


def chunk_tables(summary: CountsSummary) -> Iterator[Table]:
    """Yield the most frequent and the rarest chunks.

    >>> from batchbpe.analysis import inspect_counts
    >>> [*chunk_tables(inspect_counts("to be or not to be", top=1))]
    [(['most frequent', 'count'], [["' be'", '2']]), (['rarest', 'count'], [["'to'", '1']])]
    """
    for name, chunks in {"most frequent": summary.most_frequent, "rarest": summary.rarest}.items():
        yield [name, "count"], [[quoted(chunk), f"{chunk.count:,}"] for chunk in chunks]


def token_table(tokens: Iterable[TokenInfo]) -> Table:
    """Return a row for each token."""
    return ["id", "token", "bytes"], [[str(each.id), quoted(each), f"{each.bytes:,}"] for each in tokens]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{name} {_cell(each)}" for name, each in value.items()]
        return ", ".join([*pairs[:MAX_NAMES], *[f"… ({len(pairs):,})"] * (len(pairs) > MAX_NAMES)]) or NOTHING
    if isinstance(value, float):
        value = round(value, 4)
    return NOTHING if value is None else f"{value:,}" if type(value) in (int, float) else str(value)
