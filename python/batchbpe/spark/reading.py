"""Read documents with Spark.

Paths and URLs are passed to Spark unchanged. The suffix tells the format (`data.readers.FORMATS`). A path without a
known suffix is a folder of parquet files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..data.options import ReadOptions
from ..data.readers import FORMATS
from ..data.readers.jsonl import field_of
from ..data.readers.tables import check_text_column
from ..errors import DataError
from . import quoted
from .tasks import split_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

NOT_READ = (".json", ".zip", ".tar", *(suffix for suffix, format in FORMATS.items() if not format.on_spark))


def read_documents(session: SparkSession, inputs: Sequence[str], options: ReadOptions) -> DataFrame:
    """Read the documents of all inputs as the column `text`."""
    from pyspark.sql import functions

    by_format: dict[str, list[str]] = {}
    for path in inputs:
        by_format.setdefault(_format(path), []).append(path)
    frames = []
    for format, paths in by_format.items():
        reader = session.read.option("recursiveFileLookup", True)
        if format == "text":
            frame, column = _read_texts(reader, paths, options), "value"
        elif format == "json":
            column = field_of(options)
            schema = f"{quoted(column)} STRING"
            frame = reader.schema(schema).option("mode", "FAILFAST").json(paths)
        else:
            frame, column = reader.parquet(*paths), options.text_column
            check_text_column(dict(frame.dtypes), column, paths[0])
        frames.append(frame.select(functions.col(quoted(column)).alias("text")))
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.union(other)
    return frame


def _read_texts(reader: DataFrameReader, paths: list[str], options: ReadOptions) -> DataFrame:
    """Read the documents of text files as the column `value`."""
    whole = reader.text(paths, wholetext=True)
    if options.document == "file":
        return whole
    separator = "\n" if options.document == "line" else options.document
    if options.document == "blank-line" or len(separator.encode()) > 1:
        # Spark misses separators of several bytes where it divides a file.
        return whole.select("value", "_metadata.file_path").mapInArrow(partial(split_task, options), "value string")
    documents = reader.text(paths, lineSep=separator)
    if options.document == "line":
        # As binary, because Spark would count characters, and the text may be invalid UTF-8.
        shorter = "cast(substring(cast(value as binary), 1, octet_length(value) - 1) as string)"
        documents = documents.selectExpr(f"if(endswith(value, char(13)), {shorter}, value) as value")
    return documents.filter("value != ''")


def _format(path: str) -> str:
    """Return the format of a path or URL.

    >>> _format("s3a://bucket/data/*.jsonl.gz"), _format("hdfs:///data/fineweb"), _format("book.txt")
    ('json', 'parquet', 'text')
    """
    name = re.sub(r"\.(gz|zst|bz2)$", "", path.lower().rstrip("/"))
    if name == "-" or name.endswith(NOT_READ):
        known = [suffix for suffix, format in FORMATS.items() if format.on_spark]
        remedy = f"pass {', '.join(known[:-1])} or {known[-1]}, or count without Spark"
        raise DataError("Spark cannot read this as documents", where=path, remedy=remedy)
    return next((format.on_spark for suffix, format in FORMATS.items() if name.endswith(suffix)), None) or "parquet"
