"""What runs on Spark's Python workers: tasks that receive arrow batches of documents and yield counts or ids."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from .._core import ChunkTable, InvalidUtf8
from ..counts.text_counter import TextCounter
from ..data.documents import ArrowTexts, invalid_utf8, too_large
from ..data.options import ReadOptions
from ..data.readers.texts import split_documents
from ..data.untrusted.arrow_strings import batches_of, cuts, first_invalid, pieces, replace_invalid, sizes
from ..errors import DataError
from ..jobs.encoded import DocumentEncoder, Encoded
from ..jobs.shards import Layout, Shard
from ..jobs.token_files import Part
from ..phrases.counting import EligibleChunks
from ..tokenizer import Tokenizer
from ..util.arrow import bytes_and_offsets, int64_array, mask_array
from ..util.surrogates import Errors
from .task_errors import reporting

Batches = Iterable[pa.RecordBatch]
ROWS = 1 << 16
"""Number of counts that a task passes on at once."""


@reporting
def count_task(
    start: Callable[[], TextCounter],
    key: str,
    has_file: bool,
    errors: Errors,
    max_document_bytes: int,
    task_memory: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """Yield the counts of some documents."""
    counter = start()
    for file, rows in _by_file(batches, has_file, max_document_bytes):
        for documents in batches_of(rows.columns[-1], errors=errors):
            try:
                counter.add(documents)
            except InvalidUtf8:
                raise _invalid_document(documents.array, file) from None
            if counter.memory > task_memory:
                yield from _as_batches(counter, key)
    yield from _as_batches(counter, key)
    if counter.dropped_bytes:
        dropped: list[Any] = [pa.array([None], pa.binary()), pa.array([counter.dropped_bytes], pa.int64())]
        yield pa.RecordBatch.from_arrays(dropped, [key, "count"])


def start_runs(chunks: EligibleChunks, errors: Errors) -> TextCounter:
    """Return a counter of runs."""
    arguments = chunks.encoder, chunks.ids, [*chunks.model.found_tokens], 1
    return TextCounter(partial(ChunkTable.of_runs, *arguments), errors)


def _as_batches(counter: TextCounter, key: str) -> Iterator[pa.RecordBatch]:
    """Take the counts of a counter as arrow batches with the types that Spark expects."""
    data, offsets, counts = counter.take_arrays()
    for start, stop in cuts(np.diff(offsets), ROWS):
        first, last = offsets[start], offsets[stop]
        ends = (offsets[start : stop + 1] - first).astype(np.int32)
        buffers = [None, pa.py_buffer(ends.data), pa.py_buffer(data[first:last].data)]
        chunks = pa.Array.from_buffers(pa.binary(), stop - start, buffers)
        yield pa.RecordBatch.from_arrays([chunks, int64_array(counts[start:stop].view(np.int64))], [key, "count"])


def _by_file(batches: Batches, has_file: bool, max_document_bytes: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each file, and its name. The last column is the text, before the name of the file if known."""
    import pyarrow.compute as pc

    run_end_encode: Any = pc.run_end_encode  # type: ignore[attr-defined]
    for batch in batches:
        names, ends, rows = [""], [batch.num_rows], batch
        if has_file:
            files = run_end_encode(batch.columns[-1])
            names, ends = files.values.to_pylist(), files.run_ends.to_pylist()
            rows = batch.select([*range(batch.num_columns - 1)])
        for name, (start, end) in zip(names, pairwise([0, *ends]), strict=True):
            some = rows.slice(start, end - start)
            largest = int(sizes(some.columns[-1]).max(initial=0))
            if largest > max_document_bytes:
                raise too_large(f"a document has {largest} bytes", max_document_bytes, where=name or "")
            yield name or "", some


def _invalid_document(texts: Any, file: str) -> DataError:
    found = first_invalid(texts)
    position = f" at byte {found[1]} of a document" if found else ""
    return invalid_utf8(f"invalid UTF-8{position}", where=file)


@reporting
def encode_task(
    how: PickledEncoder,
    part: Part,
    names: Sequence[str],
    has_file: bool,
    max_document_bytes: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of the batches, with or without the last one, which contains the text, and the ids.

    Only the documents of one part are encoded.
    """
    encoder = how.encoder
    for file, rows in _by_file(batches, has_file, max_document_bytes):
        for row, piece in pieces(rows.columns[-1]):
            some = rows.slice(row, len(piece))
            texts = replace_invalid(piece) if encoder.errors == "replace" else piece
            if part:
                selected = mask_array(encoder.is_validation(ArrowTexts(texts)) == (part == "validation"))
                some, texts = some.filter(selected), texts.filter(selected)
            ids = _as_lists(_encode(encoder, texts, file), texts)
            yield pa.RecordBatch.from_arrays([*some.columns[: len(names) - 1], ids], [*names])


@reporting
def write_task(
    how: PickledEncoder, layout: Layout, has_file: bool, max_document_bytes: int, batches: Batches
) -> Iterator[pa.RecordBatch]:
    """Write the ids of a partition to the shard with its number, and yield how many there are."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context
    encoder, number = how.encoder, context.partitionId()
    try:
        with Shard(layout, number) as shard:
            for file, rows in _by_file(batches, has_file, max_document_bytes):
                for _, piece in pieces(rows.columns[-1].drop_null()):
                    texts = replace_invalid(piece) if encoder.errors == "replace" else piece
                    encoded = _encode(encoder, texts, file)
                    try:
                        shard.add(encoded)
                    except DataError as error:  # a partition is a shard, so documents cannot be split
                        error.remedy = "use more partitions or another format"
                        raise
    except OSError as error:
        raise DataError(str(error), remedy="pass a folder that all executors share and can write to") from None
    for part, written in shard.files.items():
        row: list[Any] = [pa.array([value]) for value in (number, part, written.tokens, written.documents)]
        yield pa.RecordBatch.from_arrays(row, ["number", "part", "tokens", "documents"])


WRITTEN = "number long, part string, tokens long, documents long"
"""The columns that `write_task` yields."""


class PickledEncoder:
    """A `DocumentEncoder` on its way to the workers, each of which builds the encoder of its model once."""

    def __init__(self, encoder: DocumentEncoder) -> None:
        """Pickle the model, which is the larger part."""
        self.model = pickle.dumps(encoder.tokenizer.model)
        self.others = {each.name: getattr(encoder, each.name) for each in fields(encoder) if each.name != "tokenizer"}

    @property
    def encoder(self) -> DocumentEncoder:
        """The encoder, on this worker."""
        return DocumentEncoder(_tokenizer(self.model), **self.others)


@reporting
def split_task(options: ReadOptions, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the documents of whole text files, whose names are in the last column."""
    for file, rows in _by_file(batches, has_file=True, max_document_bytes=sys.maxsize):
        data, offsets = bytes_and_offsets(rows.columns[0])
        for start, end in pairwise(offsets):
            try:
                for documents in split_documents(io.BytesIO(data[start:end].data), options):
                    yield pa.RecordBatch.from_arrays([documents.array.cast(pa.string())], ["value"])
            except DataError as error:
                error.locate(file)
                raise


@lru_cache(maxsize=1)
def _tokenizer(pickled_model: bytes) -> Tokenizer:
    return Tokenizer(pickle.loads(pickled_model))


def _encode(encoder: DocumentEncoder, texts: Any, file: str) -> Encoded:
    """Encode strings; nulls are empty."""
    plain = texts.fill_null("") if texts.null_count else texts
    try:
        return encoder.encode(ArrowTexts(plain))
    except InvalidUtf8:
        raise _invalid_document(texts, file) from None


def _as_lists(encoded: Encoded, texts: Any) -> pa.Array[Any]:
    """Return the ids as Spark expects them. The ids of a null are null."""
    ends = np.concatenate([[0], encoded.ends]).astype(np.int32)
    numbers = pa.Int32Array.from_buffers(pa.int32(), len(encoded.ids), [None, pa.py_buffer(encoded.ids.data)])
    is_valid = texts.is_valid().buffers()[1] if texts.null_count else None
    buffers = [is_valid, pa.py_buffer(ends.data)]
    return pa.Array.from_buffers(pa.list_(pa.int32()), len(texts), buffers, children=[numbers])
