"""Documents by group, such as a language: a column, the file, or the caller gives the group.

Each function yields sources with their documents by group. Read them within `source.blamed()`, so that errors name the
file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..data.documents import Documents, Texts
from ..data.options import Sampling
from ..data.sampling import Selection
from ..data.source import Source

NO_GROUP = "(none)"
"""Name of the group of documents whose group is null or empty."""
GroupedDocuments = Iterator[tuple[Source, Iterator[tuple[str, Documents]]]]


def by_name(groups: Mapping[str, Sequence[Source]], sampling: Sampling) -> GroupedDocuments:
    """Yield the sources of each group. The limit in bytes applies to each group.

    >>> source = Source("", lambda _: [Texts(["to be"])])
    >>> [list(parts) for _, parts in by_name({"en": [source]}, Sampling())]
    [[('en', Texts(strings=['to be']))]]
    """
    for group, sources in groups.items():
        selection = Selection(sampling)
        for source in sources:
            yield source, _selected(group, selection, source)


def by_file(sources: Sequence[Source], sampling: Sampling) -> GroupedDocuments:
    """Yield sources, each of which is a group: the file name without its suffixes, or the path if it is not unique.

    >>> source = Source("texts/en.txt", lambda _: [Texts(["to be"])])
    >>> [list(parts) for _, parts in by_file([source], Sampling())]
    [[('en', Texts(strings=['to be']))]]
    """
    names = [Path(source.name).name.partition(".")[0] for source in sources]
    occurrences = Counter(names)
    for name, source in zip(names, sources, strict=True):
        group = name if name and occurrences[name] == 1 else source.name or "in memory"
        yield source, _selected(group, Selection(sampling), source)


def by_column(sources: Iterable[Source], group_column: str) -> GroupedDocuments:
    """Yield sources whose documents have their group in a column of a table, or in a field of a jsonl file.

    >>> import pyarrow as pa
    >>> from batchbpe.data.corpus import sources
    >>> table = pa.table({"text": ["to be", "zu sein"], "language": ["en", "de"]})
    >>> [list(parts) for _, parts in by_column(sources(table), "language")]
    [[('en', Texts(strings=['to be'])), ('de', Texts(strings=['zu sein']))]]
    """
    for source in sources:
        yield source, _grouped(source, group_column)


def _selected(group: str, selection: Selection, source: Source) -> Iterator[tuple[str, Documents]]:
    return ((group, documents) for documents in selection.of(source))


def _grouped(source: Source, group_column: str) -> Iterator[tuple[str, Documents]]:
    for rows in source.rows(group_column):
        groups: dict[str, list[str]] = defaultdict(list)
        for text, group in rows:
            groups[NO_GROUP if group in (None, "") else str(group)].append(text)
        yield from ((group, Texts(texts)) for group, texts in groups.items())
