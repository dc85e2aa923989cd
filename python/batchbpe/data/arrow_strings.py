"""Arrow arrays of strings → batches of plain strings, bounded in bytes and without nulls.

Arrays come from files and from users, so nothing in them is trusted: pyarrow's kernels read wherever offsets, views and
indices point, and a wrong one ends the process. `sizes` checks them all before anything else touches an array. UTF-8 is
not checked here, since the core does that faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .tables import BATCH_CHARACTERS, BATCH_DOCUMENTS, too_large

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = ("string", "large_string")
"""The types that the core takes."""
ROWS = 1 << 16
"""Rows of an array that are looked at together."""

Sizes = npt.NDArray[np.int64]


def arrays(
    array: pa.Array[Any] | pa.ChunkedArray[Any],
    *,
    errors: str = "strict",
    max_document_bytes: int | None = None,
    first_row: int = 0,
) -> Iterator[pa.Array[Any]]:
    """Yield the documents of an array as string or large_string arrays without nulls.

    `errors="replace"` replaces invalid UTF-8 with U+FFFD. A document of more than `max_document_bytes` raises an error
    that names its row; the array begins at `first_row`.

    >>> import pyarrow as pa
    >>> [batch.to_pylist() for batch in arrays(pa.array(["one", None, "two"]).dictionary_encode())]
    [['one', 'two']]
    """
    for _, piece in pieces(array, max_document_bytes, first_row):
        batch = piece.drop_null() if piece.null_count else piece  # which would import pyarrow's compute
        if len(batch):
            yield replaced(batch) if errors == "replace" else batch


def pieces(
    array: pa.Array[Any] | pa.ChunkedArray[Any], max_document_bytes: int | None = None, first_row: int = 0
) -> Iterator[tuple[int, pa.Array[Any]]]:
    """Yield batches of an array as plain strings, nulls included, and the row at which each begins.

    >>> import pyarrow as pa
    >>> [(row, batch.to_pylist()) for row, batch in pieces(pa.array(["one", None]), first_row=7)]
    [(7, ['one', None])]
    """
    import pyarrow as pa

    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        for start in range(0, len(chunk), ROWS):
            block = chunk.slice(start, ROWS) if len(chunk) > ROWS else chunk
            ends = _checked_ends(block)
            # Most batches are small: of them, only the first and the last offset are looked at.
            if ends is not None and ends[-1] - ends[0] <= min(2 * BATCH_CHARACTERS, max_document_bytes or 1 << 62):
                yield first_row + start, block
                continue
            size = sizes(block) if ends is None else np.diff(ends).astype(np.int64)
            check_sizes(size, max_document_bytes, first_row + start)
            for begin, end in cuts(size, len(block) if ends is not None else BATCH_DOCUMENTS):
                yield first_row + start + begin, plain(block.slice(begin, end - begin))
        first_row += len(chunk)


def _checked_ends(array: pa.Array[Any]) -> npt.NDArray[np.int32] | npt.NDArray[np.int64] | None:
    """Give the offsets of plain strings, all of which lie within the data and in order; None for other encodings."""
    import pyarrow as pa

    name = str(array.type)
    if name not in PLAIN:
        return None
    as_binary: Any = pa.binary() if name == "string" else pa.large_binary()
    dtype = np.dtype(np.int32 if name == "string" else np.int64)
    try:
        # All that full validation does for strings, except for UTF-8.
        array.view(as_binary).validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(f"the column is damaged: {error}") from error
    offsets: Any = array.buffers()[1]
    if not len(array):
        return np.zeros(1, np.int64)
    return np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)


def sizes(array: pa.Array[Any]) -> Sizes:
    """Give the number of bytes of each row, 0 for a null; raise if the array points outside of its data.

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
        raise ValueError(f"the column is damaged: {error}") from error
    # A view takes 16 bytes, of which the first four are the size.
    views: Any = array.buffers()[1]
    found = np.frombuffer(views, np.int32, 4 * len(array), 16 * array.offset)[::4] if len(array) else np.zeros(0)
    return np.where(_valid(array), found, 0).astype(np.int64)


def _entry_sizes(array: Any) -> Sizes:
    """Give the number of bytes of each row of a dictionary array."""
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
    ValueError: row 11 has 5 bytes, more than max_document_bytes=4; raise the limit, or split the document
    """
    if max_document_bytes is not None and sizes.max(initial=0) > max_document_bytes:
        row = int(np.argmax(sizes > max_document_bytes))
        raise ValueError(too_large(f"row {first_row + row} has {sizes[row]} bytes", max_document_bytes))


def cuts(sizes: Sizes, step: int) -> Iterator[tuple[int, int]]:
    """Cut rows into batches of at most `step` rows, and of few bytes unless a single row has more.

    >>> list(cuts(np.array([3_000_000, 3_000_000, 1, 1]), 3))
    [(0, 1), (1, 3), (3, 4)]
    """
    ends = np.concatenate([[0], np.cumsum(sizes)])
    for first in range(0, len(sizes), step or 1):
        start, stop = first, min(first + step, len(sizes))
        while ends[stop] - ends[start] > 2 * BATCH_CHARACTERS:
            end = int(ends.searchsorted(ends[start] + BATCH_CHARACTERS, "right")) - 1
            end = min(max(end, start + 1), stop)
            yield start, end
            start = end
        if start < stop:
            yield start, stop


def plain(array: Any) -> Any:
    """Give strings of any encoding as a string or large_string array. `sizes` has checked them."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        return plain(array.dictionary).take(array.indices)
    if str(array.type) in PLAIN:
        return array
    if not len(array):
        return pa.array([], pa.large_string())
    # The views of nulls may be anything, and casting follows them.
    valid, (_, views, *data) = _valid(array), array.buffers()
    rows = np.frombuffer(views, np.uint8, 16 * len(array), 16 * array.offset).reshape(-1, 16) * valid[:, None]
    bits = np.packbits(valid, bitorder="little")
    clean = pa.Array.from_buffers(array.type, len(array), [*map(pa.py_buffer, (bits.data, rows.data)), *data])
    return clean.cast(pa.large_string())


def replaced(array: Any) -> Any:
    """Replace invalid UTF-8 in plain strings with U+FFFD.

    >>> import pyarrow as pa
    >>> replaced(pa.array([b"a", b"b\\xff", None]).view(pa.string())).to_pylist()
    ['a', 'b\\ufffd', None]
    """
    import pyarrow as pa

    if invalid(array) is None:
        return array
    texts = array.view(pa.large_binary() if str(array.type) == "large_string" else pa.binary()).to_pylist()
    return pa.array([None if text is None else text.decode("utf-8", "replace") for text in texts], pa.large_string())


def invalid(array: Any) -> tuple[int, int] | None:
    """Find the first row of plain strings that is invalid UTF-8, and the byte in it.

    >>> import pyarrow as pa
    >>> invalid(pa.array([b"a", b"b\\xff"]).view(pa.string()))
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


def invalid_at(array: Any, first_row: int) -> str | None:
    """Say which row is invalid UTF-8, if one is."""
    found = invalid(array)
    if found is None:
        return None
    where = f"row {first_row + found[0]}: invalid UTF-8 at byte {found[1]} of the text"
    return f'{where}; errors="replace" puts U+FFFD there and continues'


def those(documents: Any, taken: npt.NDArray[np.bool_]) -> Any:
    """Give those documents of a batch, or rows of a table, that are taken.

    >>> import numpy as np
    >>> those(["one", "two", "three"], np.array([True, False, True]))
    ['one', 'three']
    """
    if isinstance(documents, list):
        return [text for text, wanted in zip(documents, taken, strict=True) if wanted]
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(taken, bitorder="little").data)  # pa.array would import pandas
    return documents.filter(pa.BooleanArray.from_buffers(pa.bool_(), len(taken), [None, bits]))


def bytes_and_offsets(array: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Give the bytes of a pyarrow string or binary array, not copied, and where each of its rows begins in them."""
    import pyarrow as pa

    large = array.type in (pa.large_string(), pa.large_binary())
    _, offsets, data = array.buffers()
    dtype = np.dtype(np.int64 if large else np.int32)
    # In a file that was made so the offsets may lie anywhere, and an array without any may have no buffer.
    if len(array) or (offsets and offsets.size > array.offset * dtype.itemsize):
        ends = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
    else:
        ends = np.zeros(1, np.int64)
    ends = np.require(ends, np.int64, "A")
    bytes_ = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    bytes_.flags.writeable = False  # arrow data never changes, and the core copies what could
    if ends[0] or ends[-1] < len(bytes_):  # of a slice, only its own part: the core looks at all that it gets
        bytes_, ends = bytes_[ends[0] : ends[-1]], ends - ends[0]
    return bytes_, ends
