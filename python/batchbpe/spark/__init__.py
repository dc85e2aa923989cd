"""Count chunks and runs, and encode documents, on Apache Spark.

A task passes whole arrow batches of documents to the core, on one thread, and yields partial counts. Spark shuffles
them by chunk and adds them up, so the result is the same as on one machine. Merging is not distributed: train on the
counts. The functions return data frames, which Spark computes when they are written or collected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arguments import check_bool, check_integer, check_string
from ..choices import Normalization
from ..counts.counter import ChunkCounter
from ..counts.text_counter import TextCounter
from ..data.options import MAX_DOCUMENT_BYTES
from ..errors import ArgumentError, ArgumentTypeError, listed
from ..formats.counts_folder import VERSIONS
from ..formats.counts_parquet import split_metadata
from ..jobs.encoded import DocumentEncoder
from ..jobs.marks import Mark, marks_of
from ..jobs.token_files import Part
from ..model import Model
from ..model.checks import check_special_tokens
from ..patterns import Split
from ..phrases.counting import EligibleChunks
from ..phrases.options import PhraseChunks
from ..util.surrogates import Errors, check_errors
from .tasks import PickledEncoder, count_task, encode_task, start_runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

    from ..tokenizer import Tokenizer

TASK_MEMORY = 256 << 20
"""Default limit for the counts of a task, in bytes."""


def count_chunks(
    dataframe: DataFrame,
    column: str = "text",
    *,
    pattern: Split | str = "gpt4",
    normalization: Normalization | None = None,
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
    column: the column that contains the text.
    pattern: name or regular expression.
    normalization: Unicode normalization form of the text, such as NFC.
    special_tokens: removed from the text before it is split.
    freq_cutoff: leave out chunks that occur fewer times in all documents.
    errors: "strict", or "replace" to replace invalid UTF-8 with U+FFFD.
    max_document_bytes: a larger document is an error.
    task_memory: a task whose counts take more bytes passes them on and starts again with no counts.
    observation: receives `total`, `unique`, `longest_chunk`, `bytes_counted` and `dropped_bytes` (of text that the
        pattern does not match) when the counts are computed, before the cutoff.

    """
    split = Split.of(pattern, normalization)
    check_special_tokens(special_tokens)
    check_integer("freq_cutoff", freq_cutoff)
    if freq_cutoff >= 1 << 63:
        raise ArgumentError("freq_cutoff", freq_cutoff, "must be less than 2**63")
    start = partial(ChunkCounter, split, [*special_tokens], errors, 1)
    partial_counts = _partial_counts(dataframe, column, "chunk", start, errors, max_document_bytes, task_memory)
    return _summed(partial_counts, "chunk", split_metadata(split), freq_cutoff, observation)


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
    chunks = EligibleChunks(model, phrase_chunks)
    start = partial(start_runs, chunks, errors)
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
    append_eos: Mark = False,
    prepend_bos: Mark = False,
    allow_special: bool = False,
    errors: Errors = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> DataFrame:
    """Encode the documents in a column: the data frame with a column of ids (array<int>) in place of the text.

    Spark broadcasts the model with the task, once to each executor, and each Python worker builds its encoder once.
    The ids of a null are null.

    Parameters
    ----------
    dataframe: the documents, with any other columns.
    tokenizer: encodes the documents.
    column: the column that contains the text.
    ids_column: the name of the new column.
    keep_text: keep the text as well, which sends it back from Python to Spark.
    append_eos: put the special token with the role eos, or the one with this name, after each document.
    prepend_bos: put the special token with the role bos, or the one with this name, before each document.
    allow_special: encode special tokens in the text as tokens, instead of as plain text.
    errors, max_document_bytes: as in `count_chunks`.

    """
    if not isinstance(getattr(tokenizer, "model", None), Model):
        raise ArgumentTypeError("tokenizer", tokenizer, "must be a Tokenizer")
    check_string("ids_column", ids_column)
    check_bool("keep_text", keep_text)
    check_bool("allow_special", allow_special)
    encoder = DocumentEncoder(tokenizer, marks_of(tokenizer, append_eos, prepend_bos), allow_special, errors)
    return with_ids(dataframe, encoder, column, ids_column, max_document_bytes, keep_text=keep_text)


def with_ids(
    dataframe: DataFrame,
    encoder: DocumentEncoder,
    column: str,
    ids_column: str,
    max_document_bytes: int,
    *,
    keep_text: bool = False,
    part: Part = "",
) -> DataFrame:
    """Encode the documents in a column, or only those of one part."""
    from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType

    others = [name for name in getattr(dataframe, "columns", []) if name != column]
    rows, has_file = select(dataframe, [*others, column], encoder.errors, max_document_bytes)
    names = [*others, *[column] * keep_text, ids_column]
    if ids_column in names[:-1]:
        raise ArgumentError("ids_column", ids_column, "must not be the name of another column")
    ids = StructField(ids_column, ArrayType(IntegerType(), containsNull=False))
    schema = StructType([*(dataframe.schema[name] for name in names[:-1]), ids])
    task = partial(encode_task, PickledEncoder(encoder), part, names, has_file, max_document_bytes)
    return rows.mapInArrow(task, schema)


def quoted(column: str) -> str:
    """Quote the name of a column, which Spark would otherwise parse.

    >>> quoted("a.b")
    '`a.b`'
    """
    return f"`{column.replace('`', '``')}`"


def select(
    dataframe: DataFrame, columns: Sequence[str], errors: Errors, max_document_bytes: int
) -> tuple[DataFrame, bool]:
    """Check the arguments, and select columns, the last of which contains the text.

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
    start: Callable[[], TextCounter],
    errors: Errors,
    max_document_bytes: int,
    task_memory: int,
) -> DataFrame:
    check_integer("task_memory", task_memory, least=1)
    texts, has_file = select(dataframe, [column], errors, max_document_bytes)
    task = partial(count_task, start, key, has_file, errors, max_document_bytes, task_memory)
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
    described = chunk.alias(key, metadata={"batchbpe": {"version": VERSIONS[0]} | metadata})
    return sums.filter(chunk.isNotNull() & (count >= freq_cutoff)).select(described, count)
