"""Read documents as strings, and write files of documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from batchbpe.analysis.groups import by_column
from batchbpe.data.corpus import Corpus, sources
from batchbpe.data.documents import ArrowTexts, Documents, TextFile, Texts
from batchbpe.data.options import ReadOptions

MB = 1 << 20


def documents(data: Any = None, *, texts: Any = None, files: Any = None, **options: Any) -> Iterator[Documents]:
    """Find the sources of data at once, and yield their documents. Errors name the file."""
    how = ReadOptions(**options)
    found = sources(data, how) if texts is files is None else Corpus(data, texts, files, how).sources

    def read() -> Iterator[Documents]:
        for source in found:
            with source.blamed():
                yield from source

    return read()


def grouped(path: Path, column: str, **options: Any) -> list[tuple[str, Documents]]:
    """Return the documents of a file with their groups. Errors name the file."""
    found = []
    for source, parts in by_column(Corpus(path, options=ReadOptions(**options)).sources, column):
        with source.blamed():
            found += parts
    return found


def texts(data: Any = None, **options: Any) -> list[str]:
    """Return all documents of `data` as strings."""
    return [text for batch in documents(data, **options) for text in strings(batch)]


def strings(batch: Documents) -> list[str]:
    match batch:
        case TextFile():
            with batch.open() as stream:
                return [stream.read().decode()]
        case ArrowTexts(array):
            return array.to_pylist()
        case Texts(found):
            return found
    raise AssertionError(batch)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def zstd(path: Path, *frames: bytes) -> Path:
    with path.open("wb") as file:
        for frame in frames:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(frame)
            file.write(sink.getvalue())
    return path


def jsonl(path: Path, *records: object) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def arrow(path: Path, column: Any, *, stream: bool = False, compression: str | None = None, **others: Any) -> Path:
    table = pa.table({**others, "text": column})
    new: Any = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return path


def overwrite(path: Path, old: bytes, new: bytes) -> Path:
    data = path.read_bytes()
    assert data.count(old) == 1 and len(old) == len(new), data.count(old)
    path.write_bytes(data.replace(old, new))
    return path


def many_megabytes(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * MB]))
