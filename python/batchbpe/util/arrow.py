"""Arrow arrays as numpy arrays and back, without copying.

pyarrow's own conversions check whether a numpy array belongs to pandas, and import pandas to find out. Building arrays
from buffers avoids that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def bytes_and_offsets(array: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of a string or binary array as a view, and the offset of each row in them.

    >>> data, offsets = bytes_and_offsets(pa.array(["to", "be"]))
    >>> data.tobytes(), offsets.tolist()
    (b'tobe', [0, 2, 4])
    """
    is_large = array.type in (pa.large_string(), pa.large_binary())
    _, offset_buffer, data = array.buffers()
    dtype = np.dtype(np.int64 if is_large else np.int32)
    # An empty array may have no offsets at all.
    if len(array) or (offset_buffer and offset_buffer.size > array.offset * dtype.itemsize):
        offsets = np.frombuffer(offset_buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    else:
        offsets = np.zeros(1, np.int64)
    offsets = np.require(offsets, np.int64, "A")  # files may store them misaligned
    values = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    values.flags.writeable = False  # Arrow data never changes; the core copies what could
    if offsets[0] or offsets[-1] < len(values):  # a slice: the core looks at everything it is given
        values, offsets = values[offsets[0] : offsets[-1]], offsets - offsets[0]
    return values, offsets


def int64_array(values: npt.NDArray[np.int64]) -> Any:
    """Return an int64 array that shares the memory of `values`.

    >>> int64_array(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    values = np.ascontiguousarray(values)
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values.data)])


def mask_array(mask: npt.NDArray[np.bool_]) -> Any:
    """Return a boolean array with the values of `mask`.

    >>> mask_array(np.array([True, False])).to_pylist()
    [True, False]
    """
    bits = pa.py_buffer(np.packbits(mask, bitorder="little").data)
    return pa.BooleanArray.from_buffers(pa.bool_(), len(mask), [None, bits])
