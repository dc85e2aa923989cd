"""Jsonl: one JSON object per line, with the text in one of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

from ...errors import DataError, json_problem
from ..documents import Documents, invalid_utf8, too_large
from ..files import Location, open_stream, size_of, split_suffix
from ..options import ReadOptions
from ..source import Rows, Source, batched, batched_rows
from .tables import check_group_column, check_text_column


class JsonlSource(Source):
    """A jsonl file."""

    def __init__(self, location: Location, options: ReadOptions) -> None:
        """Create a source."""
        super().__init__(str(location), lambda _: self._documents(), size_of(location))
        self._open = partial(open_stream, location, split_suffix(location)[1], self.move)
        self._options = options

    def _documents(self) -> Iterator[Documents]:
        with self._open() as stream:
            yield from jsonl_documents(stream, self._options)

    def rows(self, group_column: str) -> Iterator[Rows]:
        """Yield rows of text and group, in batches. Records whose text is null are skipped."""
        with self._open() as stream:
            yield from batched_rows(self._rows(stream, group_column))

    def _rows(self, stream: BinaryIO, group_column: str) -> Iterator[tuple[str, Any]]:
        for number, record in json_lines(stream, self._options):
            for text in text_fields([(number, record)], field_of(self._options), "line"):
                check_group_column(record, group_column, f"line {number}", noun="field")
                yield text, record[group_column]


def jsonl_documents(stream: BinaryIO, options: ReadOptions) -> Iterator[Documents]:
    """Yield the documents of a stream of lines."""
    return batched(text_fields(json_lines(stream, options), field_of(options), "line"))


def field_of(options: ReadOptions) -> str:
    """Return the field that contains the text."""
    return options.text_column if options.jsonl_field is None else options.jsonl_field


def json_lines(stream: BinaryIO, options: ReadOptions) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank. A byte order mark is skipped.

    >>> from io import BytesIO
    >>> list(json_lines(BytesIO(b'{"text": "to be"}'), ReadOptions()))
    [(1, {'text': 'to be'})]
    """
    offset, limit = 0, options.max_document_bytes
    for number, line in enumerate(iter(lambda: stream.readline(limit + 1), b""), 1):
        where = f"line {number}"
        if len(line) > limit and line[-1:] != b"\n":
            raise too_large(f"the line at byte {offset} is too long", limit, where=where)
        try:
            if not line.isspace():
                yield number, json.loads(line.decode("utf-8" if offset else "utf-8-sig", options.errors))
        except UnicodeDecodeError as error:
            problem = f"invalid UTF-8 at byte {offset + error.start} of the file"
            raise invalid_utf8(problem, where=where) from error
        except (ValueError, RecursionError) as error:
            raise DataError(json_problem(error), where=where, remedy="each line must be one object") from error
        offset += len(line)


def text_fields(records: Iterable[tuple[int, Any]], field: str, where: str) -> Iterator[str]:
    """Yield the text of each numbered record. A record whose text is null is skipped.

    >>> list(text_fields([(1, {"text": "to be"}), (2, {"text": None})], "text", "line"))
    ['to be']
    """
    for number, record in records:
        if not isinstance(record, dict):
            raise DataError(f"expected an object with the field {field!r}", where=f"{where} {number}")
        text = record.get(field)
        if isinstance(text, str):
            yield text
        elif text is not None or field not in record:
            types = {name: type(value).__name__ for name, value in record.items()}
            check_text_column(types, field, f"{where} {number}", noun="field")
