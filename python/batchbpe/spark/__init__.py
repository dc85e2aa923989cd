"""Count chunks and runs, and encode documents, on Apache Spark.

A task passes whole arrow batches of documents to the core, on one thread, and yields partial counts. Spark shuffles
them by chunk and adds them up, so the result is the same as on one machine. Merging is not distributed: train on the
counts. The functions return data frames, which Spark computes when they are written or collected.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .._core import ChunkTable, Encoder, InvalidUtf8
from ..arguments import check_bool, check_integer, check_string
from ..counts.counter import ChunkCounter
from ..data.documents import invalid_utf8, too_large
from ..data.options import MAX_DOCUMENT_BYTES
from ..data.untrusted.arrow_strings import batches_of, cuts, first_invalid, pieces, replace_invalid, sizes
from ..errors import ArgumentError, ArgumentTypeError, DataError, listed
from ..formats.counts_folder import VERSION
from ..jobs.encode import end_token
from ..jobs.shards import Encoded
from ..model import Model, check_special_tokens
from ..model.encoder import encoder_for
from ..patterns import resolve_pattern
from ..phrases.counting import ChunksOfPhrases, PhraseChunks, RunCounter
from ..util.arrow import bytes_and_offsets, int64_array
from ..util.surrogates import Errors, check_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from ..tokenizer import Tokenizer

Batches = Iterable[pa.RecordBatch]

TASK_MEMORY = 256 << 20
"""Default limit for the counts of a task, in bytes."""
ROWS = 1 << 16
"""Number of counts that a task passes on at once."""


def count_chunks(
    dataframe: DataFrame,
    column: str = "text",
    *,
    pattern: str = "gpt4",
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    freq_cutoff: int = 1,
    errors: Errors = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    task_memory: int = TASK_MEMORY,
    observation: Observation | None = None,
) -> DataFrame:
    """Count the chunks of the documents in a column: a data frame with the columns `chunk` (binary) and `count` (long).

    `counts.write.parquet(folder)` writes a folder that `ChunkCounts.load` and `train` read, because the metadata of the
    column `chunk` contains the pattern.

    Parameters
    ----------
    dataframe: the documents. Nulls are skipped.
    column: the column that holds the text.
    pattern: name or regular expression.
    special_tokens: removed from the text before it is split.
    freq_cutoff: leave out chunks that occur fewer times in all documents.
    errors: "strict", or "replace" to replace invalid UTF-8 with U+FFFD.
    max_document_bytes: a larger document is an error.
    task_memory: a task whose counts take more bytes passes them on and starts again with no counts.
    observation: receives `total`, `unique`, `longest_chunk`, `bytes_counted` and `dropped_bytes` (of text that the
        pattern does not match) when the counts are computed, before the cutoff.

    """
    pattern = resolve_pattern(pattern)
    check_special_tokens(special_tokens)
    check_integer("freq_cutoff", freq_cutoff)
    if freq_cutoff >= 1 << 63:
        raise ArgumentError("freq_cutoff", freq_cutoff, "must be less than 2**63")
    start = partial(ChunkCounter, pattern, [*special_tokens], errors, 1)
    partial_counts = _partial_counts(dataframe, column, "chunk", start, errors, max_document_bytes, task_memory)
    return _summed(partial_counts, "chunk", {"pattern": pattern}, freq_cutoff, observation)


def count_runs(
    dataframe: DataFrame,
    model: Model | Tokenizer,
    column: str = "text",
    *,
    phrase_chunks: PhraseChunks = "letters",
    errors: Errors = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    task_memory: int = TASK_MEMORY,
) -> DataFrame:
    """Count the runs of chunks that are tokens of a model: a data frame with the columns `run` and `count` (long).

    A run is binary: its ids, in four bytes each. `runs.write.parquet(folder)` writes a folder that `RunCounts.load`
    reads. The parameters are those of `count_chunks` and of `RunCounts.count`. The special tokens of the model are
    removed from the text.
    """
    model = getattr(model, "model", model)
    if not isinstance(model, Model):
        raise ArgumentTypeError("model", model, "must be a Tokenizer or a Model")
    chunks = ChunksOfPhrases(model, phrase_chunks)
    start = partial(_start_runs, chunks, errors)
    partial_counts = _partial_counts(dataframe, column, "run", start, errors, max_document_bytes, task_memory)
    metadata = {"model_id": model.tokens_id, "kind": chunks.kind, "min_count": 1}
    return _summed(partial_counts, "run", metadata)


def encode(
    dataframe: DataFrame,
    tokenizer: Tokenizer,
    column: str = "text",
    *,
    ids_column: str = "ids",
    keep_text: bool = False,
    end_of_text: str | None = None,
    errors: Errors = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> DataFrame:
    """Encode the documents in a column: the data frame with a column of ids (array<int>) in place of the text.

    Spark broadcasts the model with the task, once to each executor, and each Python worker builds its encoder once.
    Special tokens in the text are encoded as plain text. The ids of a null are null.

    Parameters
    ----------
    dataframe: the documents, with any other columns.
    tokenizer: encodes the documents.
    column: the column that holds the text.
    ids_column: the name of the new column.
    keep_text: keep the text as well, which sends it back from Python to Spark.
    end_of_text: special token to append to each document.
    errors, max_document_bytes: as in `count_chunks`.

    """
    from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

    model = getattr(tokenizer, "model", None)
    if not isinstance(model, Model):
        raise ArgumentTypeError("tokenizer", tokenizer, "must be a Tokenizer")
    check_string("ids_column", ids_column)
    check_bool("keep_text", keep_text)
    others = [name for name in getattr(dataframe, "columns", []) if name != column]
    rows, has_file = _select(dataframe, [*others, column], errors, max_document_bytes)
    names = [*others, *[column] * keep_text, ids_column]
    if ids_column in names[:-1]:
        raise ArgumentError("ids_column", ids_column, "must not be the name of another column")
    ids = StructField(ids_column, ArrayType(IntegerType(), containsNull=False))
    schema = StructType([*(dataframe.schema[name] for name in names[:-1]), ids])
    end = end_token(tokenizer, end_of_text)
    task = partial(_encode_task, pickle.dumps(model), end, names, has_file, errors, max_document_bytes)
    return rows.mapInArrow(task, schema)


def quoted(column: str) -> str:
    """Quote the name of a column, which Spark would otherwise parse.

    >>> quoted("a.b")
    '`a.b`'
    """
    return f"`{column.replace('`', '``')}`"


def _select(
    dataframe: DataFrame, columns: Sequence[str], errors: Errors, max_document_bytes: int
) -> tuple[DataFrame, bool]:
    """Check the arguments, and select columns, the last of which holds the text.

    If Spark knows the file of each row, it is added as another column.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions

    if not hasattr(dataframe, "mapInArrow"):
        raise ArgumentTypeError("dataframe", type(dataframe).__name__, "must be a Spark DataFrame")
    column = columns[-1]
    check_string("column", column)
    check_errors(errors)
    check_integer("max_document_bytes", max_document_bytes, least=1)
    types = {field.name: field.dataType.simpleString() for field in dataframe.schema.fields}
    if column not in types:
        raise ArgumentError("column", column, f"must be one of the columns ({listed(sorted(types))})")
    if types[column] != "string":
        remedy = f"cast it: dataframe.withColumn({column!r}, dataframe[{column!r}].cast('string'))"
        raise ArgumentError("column", column, f"must be of type string, not {types[column]}", remedy=remedy)
    # Renamed, because mapInArrow does not quote names.
    named = [functions.col(quoted(name)).alias(f"column{number}") for number, name in enumerate(columns)]
    with _unlogged(), suppress(AnalysisException):  # raised if the rows do not come from files
        with_file = dataframe.select(*named, functions.col("_metadata.file_path").alias("file"))
        return with_file, len(with_file.columns) > len(named)  # Spark Connect only finds out now
    return dataframe.select(*named), False


@contextmanager
def _unlogged() -> Iterator[None]:
    """Suppress the message that Spark 4 logs about an exception before it raises it."""
    logger = logging.getLogger("DataFrameQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _partial_counts(
    dataframe: DataFrame,
    column: str,
    key: str,
    start: Callable[[], ChunkCounter],
    errors: Errors,
    max_document_bytes: int,
    task_memory: int,
) -> DataFrame:
    check_integer("task_memory", task_memory, least=1)
    texts, _ = _select(dataframe, [column], errors, max_document_bytes)
    task = partial(_count_task, start, key, errors, max_document_bytes, task_memory)
    return texts.mapInArrow(task, f"{key} binary, count long")


def _summed(
    partial_counts: DataFrame,
    key: str,
    metadata: dict[str, Any],
    freq_cutoff: int = 1,
    observation: Observation | None = None,
) -> DataFrame:
    """Add up partial counts. The count of null is that of bytes that were dropped."""
    from pyspark.sql import functions as f

    # Shuffled first, because within a task the chunks are unique: Spark would look for equal ones in vain.
    # A sum of longs overflows at 2**63: only if nine exabytes of text consisted of a single chunk.
    sums = partial_counts.repartition(key).groupBy(key).agg(f.sum("count").alias("count"))
    chunk, count = f.col(key), f.col("count")
    if observation is not None:
        sums = sums.observe(
            observation,
            f.sum(f.when(chunk.isNotNull(), count)).alias("total"),
            f.count(chunk).alias("unique"),
            f.max(f.length(chunk)).alias("longest_chunk"),
            f.sum(f.length(chunk) * count).alias("bytes_counted"),
            f.sum(f.when(chunk.isNull(), count)).alias("dropped_bytes"),
        )
    described = chunk.alias(key, metadata={"batchbpe": {"version": VERSION} | metadata})
    return sums.filter(chunk.isNotNull() & (count >= freq_cutoff)).select(described, count)


def _count_task(
    start: Callable[[], ChunkCounter],
    key: str,
    errors: Errors,
    max_document_bytes: int,
    task_memory: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """Yield the counts of some documents."""
    counter = start()
    for batch in batches:
        for file, rows in _by_file(batch, batch.num_columns > 1):
            texts = rows.column(0)
            _check_size(texts, max_document_bytes, file)
            for documents in batches_of(texts, errors=errors):
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


def _start_runs(chunks: ChunksOfPhrases, errors: Errors) -> RunCounter:
    special_tokens = [*chunks.model.found_tokens]
    create = partial(ChunkTable.of_runs, chunks.encoder, chunks.eligible, special_tokens, 1)
    return RunCounter(create, chunks.model.pattern, errors)


def _as_batches(counter: ChunkCounter, key: str) -> Iterator[pa.RecordBatch]:
    """Take the counts of a counter as arrow batches with the types that Spark expects."""
    data, offsets, counts, _ = counter.take()
    for start, stop in cuts(np.diff(offsets), ROWS):
        first, last = offsets[start], offsets[stop]
        ends = (offsets[start : stop + 1] - first).astype(np.int32)
        buffers = [None, pa.py_buffer(ends.data), pa.py_buffer(data[first:last].data)]
        chunks = pa.Array.from_buffers(pa.binary(), stop - start, buffers)
        yield pa.RecordBatch.from_arrays([chunks, int64_array(counts[start:stop].view(np.int64))], [key, "count"])


def _by_file(batch: pa.RecordBatch, has_file: bool) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each file, whose name is in the last column, without that column."""
    if not has_file:
        yield "", batch
        return
    import pyarrow.compute as pc

    last = batch.num_columns - 1
    run_end_encode: Any = pc.run_end_encode  # type: ignore[attr-defined]
    files, start = run_end_encode(batch.column(last)), 0
    for file, stop in zip(files.values.to_pylist(), files.run_ends.to_pylist(), strict=True):
        yield file or "", batch.select([*range(last)]).slice(start, stop - start)
        start = stop


def _check_size(texts: pa.Array[Any], max_document_bytes: int, file: str) -> None:
    largest = int(sizes(texts).max(initial=0))
    if largest > max_document_bytes:
        raise too_large(f"a document has {largest} bytes", max_document_bytes, where=file)


def _invalid_document(texts: Any, file: str) -> DataError:
    found = first_invalid(texts)
    place = f" at byte {found[1]} of a document" if found else ""
    return invalid_utf8(f"invalid UTF-8{place}", where=file)


def _encode_task(
    pickled_model: bytes,
    end: int | None,
    names: Sequence[str],
    has_file: bool,
    errors: Errors,
    max_document_bytes: int,
    batches: Batches,
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of the batches, with or without the last one, which holds the text, and the ids."""
    encoder = _encoder(pickled_model)
    for batch in batches:
        for file, rows in _by_file(batch, has_file):
            texts = rows.column(rows.num_columns - 1)
            _check_size(texts, max_document_bytes, file)
            for row, piece in pieces(texts):
                ids = _encode(encoder, replace_invalid(piece) if errors == "replace" else piece, end, file)
                others = rows.columns[: len(names) - 1]
                yield pa.RecordBatch.from_arrays([*(each.slice(row, len(piece)) for each in others), ids], [*names])


@lru_cache(maxsize=1)
def _encoder(pickled_model: bytes) -> Encoder:
    return encoder_for(pickle.loads(pickled_model))


def _encode(encoder: Encoder, texts: Any, end: int | None, file: str) -> pa.Array[Any]:
    plain = texts.fill_null("") if texts.null_count else texts
    try:
        ids, offsets = encoder.encode_documents(*bytes_and_offsets(plain), ([], []), 1)
    except InvalidUtf8:
        raise _invalid_document(texts, file) from None
    encoded = Encoded(ids, offsets[1:]).with_end(end)
    ends = np.concatenate([[0], encoded.ends]).astype(np.int32)
    numbers = pa.Int32Array.from_buffers(pa.int32(), len(encoded.ids), [None, pa.py_buffer(encoded.ids.data)])
    is_valid = texts.is_valid().buffers()[1] if texts.null_count else None
    buffers = [is_valid, pa.py_buffer(ends.data)]
    return pa.Array.from_buffers(pa.list_(pa.int32()), len(texts), buffers, children=[numbers])
