"""Jsonl: one JSON object per line, with the text in one of its fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError, json_problem
from .documents import invalid_utf8, too_large
from .options import ReadOptions
from .tables import check_text_column


def json_lines(stream: BinaryIO, place: Path | str, options: ReadOptions) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank. A byte order mark is skipped.

    >>> from io import BytesIO
    >>> list(json_lines(BytesIO(b'{"text": "to be"}'), "a.jsonl", ReadOptions()))
    [(1, {'text': 'to be'})]
    """
    offset, limit = 0, options.max_document_bytes
    for number, line in enumerate(iter(lambda: stream.readline(limit + 1), b""), 1):
        where = f"{place}, line {number}"
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

    >>> list(text_fields([(1, {"text": "to be"}), (2, {"text": None})], "text", "a.jsonl, line"))
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
