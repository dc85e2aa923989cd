"""`TextCounter`: feeds documents to a table of the core, which splits them and counts what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .. import _core
from ..data.documents import ArrowTexts, Documents, TextFile, Texts
from ..data.source import Source
from ..data.text_files import read_blocks
from ..errors import ArgumentTypeError
from ..formats.counts_csv import Arrays
from ..util.surrogates import Errors, combine_documents


class TextCounter:
    """Counts what the core's tables count: chunks, or pairs or runs of chunks.

    >>> counter = TextCounter(lambda: _core.ChunkTable(" ?[a-z]+", [], 1))
    >>> counter.add(Texts(["to be or not to be"]))
    >>> counter.take_arrays()[2].tolist()
    [2, 1, 1, 1, 1]
    """

    def __init__(
        self,
        create_table: Callable[[], _core.ChunkTable],
        errors: Errors = "strict",
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Start with no counts.

        Parameters
        ----------
        create_table: creates the first table, and another one each time its counts have been taken.
        errors: "strict", or "replace" to replace invalid UTF-8 and lone surrogates with U+FFFD.
        on_progress: called when everything added so far has been counted or queued, with the position in the text file
            that is being read, or 0.

        """
        self.errors, self.on_progress = errors, on_progress
        self.bytes_read = 0
        """Bytes of text; chunk counts are not text."""
        self.dropped_bytes = 0
        """Bytes that the pattern does not match."""
        self.skipped_chunks = 0
        """Chunks that were too long."""
        self._create_table = create_table
        self._table: _core.ChunkTable | None = None

    @property
    def table(self) -> _core.ChunkTable:
        """The core's table."""
        if self._table is None:
            self._table = self._create_table()
        return self._table

    def add_sources(
        self, sources: Iterable[Source], select: Callable[[Source], Iterable[Documents]] = lambda source: source
    ) -> None:
        """Count the documents of some sources, or those that `select` returns. Errors name the file."""
        for source in sources:
            with source.blamed():
                for documents in select(source):
                    self.add(documents)

    def add(self, documents: Documents, skip: int = 0) -> None:
        """Count documents. The first `skip` bytes of a text file are skipped."""
        match documents:
            case Texts(strings):
                self._add_strings(strings)
            case ArrowTexts():
                data, offsets = documents.buffers()
                self.table.add_documents(data, offsets)
                self._progress(int(offsets[-1] - offsets[0]))
            case TextFile():
                before = skip
                for done in read_blocks(documents, self.errors, self._add_block, skip):
                    self._progress(done - before, done)
                    before = done
            case _:
                raise ArgumentTypeError("documents", type(documents).__name__, "must be Documents")

    def _add_strings(self, strings: list[str]) -> None:
        try:
            size = self.table.add_strings(strings)
        except UnicodeEncodeError:
            size = self.table.add_strings(combine_documents(strings, self.errors))
        self._progress(size)

    def _add_block(self, block: bytes, offset: int, last: bool) -> int:
        return self.table.add_block(block, offset, last)  # a new table if `on_progress` took the counts

    def _progress(self, size: int, position: int = 0) -> None:
        self.bytes_read += size
        self.on_progress(position)

    @property
    def total(self) -> int:
        """Number of chunks counted so far; exact with one thread."""
        return self._table.total if self._table else 0

    @property
    def unique(self) -> int:
        """Upper bound of the number of unique chunks so far: threads may have found the same ones."""
        return self._table.unique if self._table else 0

    @property
    def memory(self) -> int:
        """Bytes of memory that the counts take."""
        return self._table.memory if self._table else 0

    def take_arrays(self) -> Arrays:
        """Return the counts, and start again with none."""
        data, offsets, counts, dropped, skipped = self.table.finish()
        self._table = None
        self.dropped_bytes, self.skipped_chunks = self.dropped_bytes + dropped, self.skipped_chunks + skipped
        return data, offsets, counts
