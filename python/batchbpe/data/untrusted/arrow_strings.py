"""Arrow arrays of strings → batches of plain strings, bounded in bytes and without nulls.

Arrays come from files and users and are not trusted: pyarrow's kernels follow offsets, views and indices without
checking them, and an invalid one crashes the process. `sizes` validates an array before anything else reads it. UTF-8
is not validated here, because the core does that faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...util.surrogates import Errors
from ..documents import ArrowTexts, invalid_utf8, too_large
from ..options import ReadOptions
from ..source import Rows

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = ("string", "large_string")
"""Types that the core reads directly."""
ROWS = 1 << 16
"""Number of rows of an array that are validated together."""

Sizes = npt.NDArray[np.int64]


def batches_of(
    array: pa.Array[Any], *, errors: Errors = "strict", max_document_bytes: int | None = None, first_row: int = 0
) -> Iterator[ArrowTexts]:
    """Yield the documents of an array in batches, without nulls.

    `errors="replace"` replaces invalid UTF-8 with U+FFFD. A document of more than `max_document_bytes` raises an error
    that names its row. `first_row` is the number of the first row of the array.

    >>> import pyarrow as pa
    >>> [batch.array.to_pylist() for batch in batches_of(pa.array(["one", None, "two"]).dictionary_encode())]
    [['one', 'two']]
    """
    for _, piece in pieces(array, max_document_bytes, first_row):
        batch = piece.drop_null() if piece.null_count else piece  # drop_null imports pyarrow.compute
        if len(batch):
            yield ArrowTexts(replace_invalid(batch) if errors == "replace" else batch)


def pieces(
    array: pa.Array[Any], max_document_bytes: int | None = None, first_row: int = 0
) -> Iterator[tuple[int, pa.Array[Any]]]:
    """Yield batches of an array as plain strings, nulls included, each with the number of its first row.

    >>> import pyarrow as pa
    >>> [(row, batch.to_pylist()) for row, batch in pieces(pa.array(["one", None]), first_row=7)]
    [(7, ['one', None])]
    """
    for start in range(0, len(array), ROWS):
        block = array.slice(start, ROWS) if len(array) > ROWS else array
        ends = _checked_ends(block)
        # Most batches are small. For these, the first and the last offset are enough.
        small = min(2 * ReadOptions.BATCH_CHARACTERS, max_document_bytes or 1 << 62)
        if ends is not None and ends[-1] - ends[0] <= small:
            yield first_row + start, block
            continue
        size = sizes(block) if ends is None else np.diff(ends).astype(np.int64)
        check_sizes(size, max_document_bytes, first_row + start)
        for begin, end in cuts(size, len(block) if ends is not None else ReadOptions.BATCH_DOCUMENTS):
            yield first_row + start + begin, plain(block.slice(begin, end - begin))


def rows_of(texts: pa.Array[Any], others: pa.Array[Any], options: ReadOptions, first_row: int = 0) -> Iterator[Rows]:
    """Yield the rows of two columns as Python objects, in batches. Rows whose text is null are skipped.

    The second column contains strings, or values of fixed size.

    >>> import pyarrow as pa
    >>> list(rows_of(pa.array(["one", None]), pa.array([1, 2]), ReadOptions()))
    [[('one', 1)]]
    """
    size = sizes(texts)
    check_sizes(size, options.max_document_bytes, first_row)
    if is_string(others.type):
        size = size + sizes(others)
    else:
        others.validate(full=True)
    for start, end in cuts(size, ReadOptions.BATCH_DOCUMENTS):
        columns = (
            _values(each.slice(start, end - start), options.errors, first_row + start) for each in (texts, others)
        )
        yield [(text, other) for text, other in zip(*columns, strict=True) if text is not None]


def is_string(type_: Any) -> bool:
    """Return whether an arrow type, or the name of one, is a string type in any encoding.

    >>> is_string("dictionary<values=string, indices=int32, ordered=0>"), is_string("int64")
    (True, False)
    """
    return bool(re.match(r"(dictionary<values=)?(large_)?string(_view)?\b", str(type_)))


def _values(column: Any, errors: Errors, first_row: int) -> list[Any]:
    if not is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    column = plain(column)
    if errors == "replace":
        column = replace_invalid(column)
    invalid = find_invalid(column, first_row)
    if invalid:
        raise invalid
    return list(column.to_pylist())


def _checked_ends(array: pa.Array[Any]) -> npt.NDArray[np.int32] | npt.NDArray[np.int64] | None:
    """Return the validated offsets of plain strings, or None for other encodings."""
    import pyarrow as pa

    name = str(array.type)
    if name not in PLAIN:
        return None
    as_binary: Any = pa.binary() if name == "string" else pa.large_binary()
    dtype = np.dtype(np.int32 if name == "string" else np.int64)
    try:
        # Full validation except for UTF-8, which binary arrays do not have.
        array.view(as_binary).validate(full=True)
    except pa.ArrowException as error:
        raise DataError(f"the column is damaged: {error}") from error
    offsets: Any = array.buffers()[1]
    if not len(array):
        return np.zeros(1, np.int64)
    return np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)


def sizes(array: pa.Array[Any]) -> Sizes:
    """Return the number of bytes of each row, 0 for a null. An array that points outside of its data is an error.

    >>> import pyarrow as pa
    >>> sizes(pa.array(["one", None, "three"], pa.large_string())).tolist()
    [3, 0, 5]
    """
    import pyarrow as pa

    ends = _checked_ends(array)
    if ends is not None:
        return np.diff(ends).astype(np.int64)
    try:
        array.validate()
        if pa.types.is_dictionary(array.type):
            return _entry_sizes(array)
        as_binary: Any = pa.binary_view()
        array.view(as_binary).validate(full=True)
    except (pa.ArrowException, IndexError) as error:
        raise DataError(f"the column is damaged: {error}") from error
    # A view has 16 bytes, the first four of which are the size.
    views: Any = array.buffers()[1]
    found = np.frombuffer(views, np.int32, 4 * len(array), 16 * array.offset)[::4] if len(array) else np.zeros(0)
    return np.where(_valid(array), found, 0).astype(np.int64)


def _entry_sizes(array: Any) -> Sizes:
    """Return the number of bytes of each row of a dictionary array."""
    entries, indices = sizes(array.dictionary), array.indices
    indices.validate(full=True)
    used = indices.drop_null().to_numpy()
    if len(used) and not (used.min() >= 0 and used.max() < len(entries)):
        wrong = used.min() if used.min() < 0 else used.max()
        raise IndexError(f"index {wrong} into a dictionary of {len(entries)} entries")
    found = np.zeros(len(array), np.int64)
    found[_valid(indices)] = entries[used.astype(np.int64)]
    return found


def _valid(array: pa.Array[Any]) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def check_sizes(sizes: Sizes, max_document_bytes: int | None, first_row: int = 0) -> None:
    """Raise if a row is too large.

    >>> check_sizes(np.array([3, 5]), 4, first_row=10)
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: row 11 has 5 bytes, more than max_document_bytes=4; raise the limit or split the document
    """
    if max_document_bytes is not None and sizes.max(initial=0) > max_document_bytes:
        row = int(np.argmax(sizes > max_document_bytes))
        raise too_large(f"row {first_row + row} has {sizes[row]} bytes", max_document_bytes)


def cuts(sizes: Sizes, step: int) -> Iterator[tuple[int, int]]:
    """Divide rows into batches of at most `step` rows and a few megabytes, unless a single row is larger.

    >>> list(cuts(np.array([3_000_000, 3_000_000, 1, 1]), 3))
    [(0, 1), (1, 3), (3, 4)]
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    for first in range(0, len(sizes), step or 1):
        start, stop = first, min(first + step, len(sizes))
        while ends[stop] - ends[start] > 2 * ReadOptions.BATCH_CHARACTERS:
            end = int(ends.searchsorted(ends[start] + ReadOptions.BATCH_CHARACTERS, "right")) - 1
            end = min(max(end, start + 1), stop)
            yield start, end
            start = end
        if start < stop:
            yield start, stop


def plain(array: Any) -> Any:
    """Convert strings of any encoding to a string or large_string array. Call `sizes` first, which validates them."""
    import pyarrow as pa

    if str(array.type) in PLAIN:
        return array
    if not len(array):
        return pa.array([], pa.large_string())
    if not pa.types.is_dictionary(array.type):
        return _from_views(array, np.arange(len(array)), _valid(array))
    if str(array.type.value_type) in PLAIN:
        return array.dictionary.take(array.indices)
    # Views share bytes, so converting all entries could take far more memory than these rows do.
    is_valid = _valid(array.indices)
    rows = np.zeros(len(array), np.int64)
    rows[is_valid] = array.indices.drop_null().to_numpy()
    if not len(array.dictionary):
        return pa.nulls(len(array), pa.large_string())
    return _from_views(array.dictionary, rows, is_valid & _valid(array.dictionary)[rows])


def _from_views(array: Any, rows: npt.NDArray[np.int64], is_valid: npt.NDArray[np.bool_]) -> Any:
    """Convert some rows of a string_view array to large_string."""
    import pyarrow as pa

    _, views, *data = array.buffers()
    selected = np.frombuffer(views, np.uint8, 16 * len(array), 16 * array.offset).reshape(-1, 16)[rows]
    selected = selected * is_valid[:, None]  # the view of a null may be anything, and casting would follow it
    bits = np.packbits(is_valid, bitorder="little")
    buffers = [*map(pa.py_buffer, (bits.data, selected.data)), *data]
    return pa.Array.from_buffers(array.type, len(rows), buffers).cast(pa.large_string())


def replace_invalid(array: Any) -> Any:
    """Replace invalid UTF-8 in plain strings with U+FFFD.

    >>> import pyarrow as pa
    >>> replace_invalid(pa.array([b"a", b"b\\xff", None]).view(pa.string())).to_pylist()
    ['a', 'b\\ufffd', None]
    """
    import pyarrow as pa

    if first_invalid(array) is None:
        return array
    texts = array.view(pa.large_binary() if str(array.type) == "large_string" else pa.binary()).to_pylist()
    return pa.array([None if text is None else text.decode("utf-8", "replace") for text in texts], pa.large_string())


def first_invalid(array: Any) -> tuple[int, int] | None:
    """Find the first row of plain strings that is invalid UTF-8, and the byte in it.

    >>> import pyarrow as pa
    >>> first_invalid(pa.array([b"a", b"b\\xff"]).view(pa.string()))
    (1, 1)
    """
    import pyarrow as pa

    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        texts = array.view(pa.large_binary() if str(array.type) == "large_string" else pa.binary())
        for row, text in enumerate(texts):
            try:
                (text.as_py() or b"").decode()
            except UnicodeDecodeError as error:
                return row, error.start
    return None


def find_invalid(array: Any, first_row: int) -> DataError | None:
    """Return an error about the first row that is invalid UTF-8, if there is one.

    >>> import pyarrow as pa
    >>> print(find_invalid(pa.array([b"a", b"b\\xff"]).view(pa.string()), first_row=10))
    row 11: invalid UTF-8 at byte 1 of the text; errors="replace" replaces it with U+FFFD
    """
    found = first_invalid(array)
    if found is None:
        return None
    row, byte = found
    return invalid_utf8(f"invalid UTF-8 at byte {byte} of the text", where=f"row {first_row + row}")
