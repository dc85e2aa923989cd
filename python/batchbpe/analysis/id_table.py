"""An `IdMap` as a table: in arrow, and in parquet, csv and json files.

https://batchbpe.github.io/batchbpe/formats.html#id-maps describes the columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..arguments import check_path
from ..errors import ArgumentError
from ..util.arrow import int64_array
from .display import decoded, quoted_token
from .id_map import IdMap, Ids, rows_of
from .tables import NOTHING, Table

SUFFIXES = (".parquet", ".csv", ".json")
CHANGES = {"added": "parts", "moved": "old id", "removed": "replaced by"}
"""What is displayed of each change, besides the id and the token."""
MAX_PARTS = 8
"""Maximum number of parts that are displayed."""


def check_suffix(parameter: str, path: str | os.PathLike[str]) -> None:
    """Raise unless the name of a file ends in one of `SUFFIXES`.

    >>> check_suffix("path", "ids.txt")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must end in .parquet, .csv or .json, got 'ids.txt'
    """
    check_path(parameter, path)
    if Path(path).suffix not in SUFFIXES:
        raise ArgumentError(parameter, os.fspath(path), "must end in .parquet, .csv or .json")


def table_of(id_map: IdMap) -> pa.Table:
    """Return the tokens of the new vocabulary, and then those that were removed."""
    tokens, removed = id_map.tokens, id_map.removed
    parts, sizes = rows_of(id_map.ids, id_map.offsets, tokens)
    values = [*id_map.tokenizer.vocab.values()]
    if len(removed):
        more, more_sizes = rows_of(id_map.reverse.ids, id_map.reverse.offsets, removed)
        parts, sizes = np.concatenate([parts, more]), np.concatenate([sizes, more_sizes])
        values += map(id_map.base.vocab.__getitem__, removed.tolist())
    columns = {
        "change": pa.array([*id_map.changes.tolist(), *["removed"] * len(removed)], pa.string()),
        "id": _nullable(np.concatenate([tokens, np.full(len(removed), -1)])),
        "old_id": _nullable(np.concatenate([id_map.old_ids[tokens], removed])),
        "token": pa.array([*map(_readable, values)], pa.string()),
        "bytes": pa.array(values, pa.binary()),
        "parts": _lists(parts, sizes),
    }
    return pa.table(columns)


def _readable(value: bytes) -> str:
    text = decoded(value)
    if text is None:
        return repr(value)[2:-1]
    return text if text.isprintable() else repr(text)[1:-1]


def _nullable(ids: Ids) -> Any:
    """Return ids as an arrow array, in which -1 is null. See `util.arrow` about buffers."""
    is_valid = pa.py_buffer(np.packbits(ids >= 0, bitorder="little").data)
    return pa.Int64Array.from_buffers(pa.int64(), len(ids), [is_valid, pa.py_buffer(ids.data)])


def _lists(ids: Ids, sizes: Ids) -> Any:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets.data)]
    return pa.Array.from_buffers(pa.large_list(pa.int64()), len(sizes), buffers, children=[int64_array(ids)])


def examples(id_map: IdMap, limit: int) -> dict[str, pa.Table]:
    """Return the first rows of the table for each change."""
    table = id_map.table()
    found = {change: table.filter(pc.equal(table["change"], pa.scalar(change))).slice(0, limit) for change in CHANGES}
    return {change: rows.drop_columns("change") for change, rows in found.items()}


def example_tables(id_map: IdMap, found: Mapping[str, pa.Table]) -> Iterator[Table]:
    """Yield a table for display of each change that has examples.

    >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 258))
    >>> id_map = two.id_map(one)
    >>> [*example_tables(id_map, examples(id_map, 1))]
    [(['added', 'token', 'parts'], [['257', "'ab'", "97 'a' + 98 'b'"]])]
    """
    for change, table in found.items():
        is_removed = change == "removed"
        vocab = (id_map.tokenizer if is_removed else id_map.base).vocab
        cells = []
        for row in table.to_pylist():
            parts = [f"{part} {quoted_token(vocab[part])}" for part in row["parts"][:MAX_PARTS]]
            parts += ["…"] * (len(row["parts"]) > MAX_PARTS)
            last = str(row["old_id"]) if change == "moved" else " + ".join(parts) or NOTHING
            cells.append([str(row["old_id" if is_removed else "id"]), quoted_token(row["bytes"]), last])
        if cells:
            yield [change, "token", CHANGES[change]], cells


def json_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows with hexadecimal digits, `hex`, in place of `bytes`."""
    return _with_hex(table).to_pylist()


def _with_hex(table: pa.Table) -> pa.Table:
    digits = [row["bytes"].hex() for row in table.select(["bytes"]).to_pylist()]
    return table.set_column(table.column_names.index("bytes"), "hex", pa.array(digits, pa.string()))


def write_table(table: pa.Table, path: Path, suffix: str) -> None:
    """Write a table in the format that a suffix stands for."""
    if suffix == ".parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd")
    elif suffix == ".csv":
        import pyarrow.csv as csv

        parts = [" ".join(map(str, row["parts"])) for row in table.select(["parts"]).to_pylist()]
        in_text = _with_hex(table).drop_columns("parts").append_column("parts", pa.array(parts, pa.string()))
        csv.write_csv(in_text, path)
    else:
        lines = (json.dumps(row, ensure_ascii=False) for row in json_rows(table))
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8", newline="\n")
