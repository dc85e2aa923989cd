"""Encoding many files into shards of ids, for training language models; it can go on where it was stopped.

A shard is a file that is written whole or not at all. With each, the place is recorded that it has come to.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Encoder, threads_or_all
from ..data.readers import Documents, Source, TextFile, in_blocks
from ..data.sampling import Selection
from ..data.tables import MAX_DOCUMENT_BYTES, CountsFile
from ..errors import listed, short
from ..progress import bar
from ..storage.atomic import replacing, writing
from ..storage.locks import IN_FOLDER, locked
from ..surrogates import surrogate_error, without_surrogates
from ..tokenizer import Tokenizer
from .resume import Record
from .shards import SHARDS, Encoded, Shard, ShardFormat

RECORD = "shards.json"
LONG = 1 << 20
"""A document of more bytes takes long to encode, if it is one chunk."""


def dtype_of(tokenizer: Tokenizer) -> np.dtype[Any]:
    """Give the type of ids in files: uint16 if they fit, else uint32."""
    return np.dtype("<u2" if tokenizer.n_vocab <= 1 << 16 else "<u4")


def end_token(tokenizer: Tokenizer, end_of_text: str | None) -> int | None:
    """Give the id of the special token that ends a text."""
    if end_of_text is not None and end_of_text not in tokenizer.special_tokens:
        known = listed(tokenizer.special_tokens)
        raise ValueError(f"there is no special token {short(end_of_text)} to end a text with, only {known}")
    return None if end_of_text is None else tokenizer.special_tokens[end_of_text]


def encode_documents(
    tokenizer: Tokenizer, stream: Iterable[Documents], threads: int | None, errors: str = "strict"
) -> Iterator[Iterable[Encoded]]:
    """Encode documents as they come from a source, a long text file block by block.

    Each thread encodes a batch of its own, while the next ones are read.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> for batch in encode_documents(tokenizer, [["aaab", "ac"], ["d"]], None):
    ...     print([(some.ids.tolist(), some.ends.tolist()) for some in batch])
    [([258, 97, 99], [1, 3])]
    [([100], [1])]
    """
    encoder = tokenizer._loaded.encoder
    at_once = threads_or_all(threads)
    pool = ThreadPoolExecutor(at_once)
    begun: deque[Future[Iterable[Encoded]]] = deque()
    try:
        for future in _begin(pool, encoder, stream, at_once, errors):
            begun.append(future)
            if len(begun) > at_once:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def encode_sources(
    tokenizer: Tokenizer, sources: Iterable[Source], selection: Selection, threads: int | None, errors: str
) -> Iterator[Encoded]:
    """Encode the documents of sources, one source after the other.

    Errors of reading name the source: whoever writes the ids must not take them for errors of writing.
    """
    for source in sources:
        try:
            with source.named():
                for batch in encode_documents(tokenizer, selection.of(source), threads, errors):
                    yield from batch
        except OSError as error:
            raise ValueError(str(error)) from None


def _begin(
    pool: ThreadPoolExecutor, encoder: Encoder, stream: Iterable[Documents], threads: int, errors: str
) -> Iterator[Future[Iterable[Encoded]]]:
    done: Future[Iterable[Encoded]]
    try:
        for documents in stream:
            if _is_long(documents):
                done = Future()
                done.set_result(_encode(encoder, documents, threads, errors))
                yield done
            else:
                yield pool.submit(list, _encode(encoder, documents, 1, errors))
    except Exception as error:  # what was read before it comes before it
        done = Future()
        done.set_exception(error)
        yield done


def _is_long(documents: Documents) -> bool:
    """Whether it may take long to encode: then that is done by the caller's thread, which hears of Ctrl-C."""
    if isinstance(documents, list):
        return max(map(len, documents), default=0) > LONG
    if isinstance(documents, TextFile | CountsFile | dict):
        return isinstance(documents, TextFile)
    from ..data.arrow_strings import bytes_and_offsets

    return int(np.diff(bytes_and_offsets(documents)[1]).max(initial=0)) > LONG


def _encode(encoder: Encoder, documents: Documents, threads: int, errors: str) -> Iterator[Encoded]:
    if isinstance(documents, TextFile):
        yield from _encode_file(encoder, documents, threads, errors)
    elif isinstance(documents, list):
        try:
            ids, offsets = encoder.encode_batch_to_numpy(documents, ([], []), threads)
        except UnicodeEncodeError as error:
            if errors != "replace":
                raise surrogate_error(error) from None
            ids, offsets = encoder.encode_batch_to_numpy(list(map(without_surrogates, documents)), ([], []), threads)
        yield Encoded(ids, offsets[1:])
    elif isinstance(documents, CountsFile | dict):
        raise ValueError("chunk counts have no text to encode; give the documents")
    else:
        from ..data.arrow_strings import bytes_and_offsets

        ids, offsets = encoder.encode_documents(*bytes_and_offsets(documents), ([], []), threads)
        yield Encoded(ids, offsets[1:])


def _encode_file(encoder: Encoder, file: TextFile, threads: int, errors: str) -> Iterator[Encoded]:
    encoded: list[Encoded] = []

    def use(block: bytes, offset: int, last: bool) -> int:
        ids, used = encoder.encode_block(block, offset, last, ([], []), threads)
        encoded.append(Encoded(ids, np.array([len(ids)] if last else [], np.int64)))
        return used

    for _ in in_blocks(file, errors, use):
        yield encoded.pop()


def encode_files(
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    folder: Path,
    *,
    format: ShardFormat = "bin",
    end_of_text: str | None = None,
    shard_tokens: int = 100_000_000,
    selection: Selection | None = None,
    errors: str = "strict",
    columns: Sequence[str | None] = (),
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    resume: bool = False,
    skip_errors: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Encode all documents into shards in a folder, and say how many, of how many tokens.

    A shard is closed after `shard_tokens` tokens, at the end of the batch of documents. `end_of_text` names a special
    token to put after each document. Special tokens in the text are plain text. `columns` are those by which the text
    was found, and `max_document_bytes` is what the sources were made with: for the record, as a job goes on only with
    the same.

    >>> import tempfile
    >>> from batchbpe.data.corpus import sources
    >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     encode_files(tokenizer, sources(["aaab", "ac"]), Path(folder), end_of_text="<eot>")["tokens"]
    ...     np.fromfile(Path(folder) / "shard_000000.bin", np.uint16).tolist()
    5
    [258, 259, 97, 99, 259]
    """
    if shard_tokens < 1 or (format == "llm.c" and shard_tokens > 1 << 30):
        raise ValueError(f"shard_tokens={shard_tokens}: give 1 to 1,073,741,824")
    chosen = format, end_of_text, shard_tokens, selection or Selection(), errors, columns, max_document_bytes
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give a folder, or a name that ends in .npy or .bin")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: there is no folder {folder.parent}; make it first")
    end_token(tokenizer, end_of_text)  # an error before the folder is made
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with locked(folder):
        job = _Job(tokenizer, sources, folder, *chosen, resume, skip_errors, threads)
        with bar("encoding", sum(source.size for source in sources), show=progress) as update:
            job.encode(update)
        return job.record.more


class _Job:
    def __init__(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[Source],
        folder: Path,
        format: ShardFormat,
        end_of_text: str | None,
        shard_tokens: int,
        selection: Selection,
        errors: str,
        columns: Sequence[str | None],
        max_document_bytes: int,
        resume: bool,
        skip_errors: bool,
        threads: int | None,
    ) -> None:
        self.end = end_token(tokenizer, end_of_text)
        self.tokenizer, self.folder, self.format, self.shard_tokens = tokenizer, folder, format, shard_tokens
        self.sources, self.selection, self.errors = sources, selection, errors
        self.skip_errors, self.threads = skip_errors, threads
        self.dtype = dtype_of(tokenizer)
        options = {
            "vocabulary": fingerprint(tokenizer), "format": format, "dtype": self.dtype.name, "columns": columns,
            "end_of_text": end_of_text, "shard_tokens": shard_tokens, "errors": errors,
            "max_document_bytes": max_document_bytes,
            "sample": selection.sample, "seed": selection.seed, "limit_bytes": selection.limit_bytes,
        }  # fmt: skip
        more = {"shards": [], "sizes": [], "tokens": 0, "documents": 0, "failed": {}, "finished": False}
        self.record = Record(folder / RECORD, options, sources, selection, **more)
        if self.record.path.exists() and not resume:
            raise FileExistsError(f"{folder} holds shards already: give another folder, or --resume to go on with them")
        halves = set(folder.glob(".*.tmp"))  # of a job that was killed
        own = {*halves, folder / IN_FOLDER} | (
            {folder / self._name(0)} if resume else set()
        )  # killed before its record
        if not self.record.path.exists() and set(folder.iterdir()) - own:
            raise FileExistsError(f"{folder} holds other files: give another folder for the shards")
        if self.record.path.exists():
            self.record.load()
            self._check_shards()
        for half in halves:  # nobody writes them: the folder is locked
            half.unlink()

    def _check_shards(self) -> None:
        """Compare the shards with the record, by size: they are not read again."""
        for name, size in zip(self.record.more["shards"], self.record.more["sizes"], strict=True):
            path = self.folder / name
            if not path.exists():
                raise FileNotFoundError(f"{path} is gone: remove {self.folder} to begin anew")
            if path.stat().st_size != size:
                problem = f"it has {path.stat().st_size} bytes, not {size}"
                raise ValueError(f"{path} is damaged: {problem}; remove {self.folder} to start again")

    def encode(self, update: Callable[[float, str], object]) -> None:
        todo = self._todo()
        more = self.record.more
        while not more["finished"]:
            name = self._name(len(more["shards"]))
            with replacing(self.folder / name) as path, SHARDS[self.format](path, self.dtype) as shard:
                more["finished"] = self._fill(shard, todo, update)
            if shard.tokens or not more["shards"]:
                more["shards"].append(name)
                more["sizes"].append((self.folder / name).stat().st_size)
            else:
                (self.folder / name).unlink()
            more["tokens"] += shard.tokens
            more["documents"] += shard.documents
            self.record.save()

    def _name(self, number: int) -> str:
        return f"shard_{number:06}.{'parquet' if self.format == 'parquet' else 'bin'}"

    def _fill(self, shard: Shard, todo: Iterator[Encoded | None], update: Any) -> bool:
        for some in todo:
            if some is None:  # all up to here can be recorded
                if shard.tokens >= self.shard_tokens:
                    return False
                continue
            shard.add(some, self.end)
            tokens = self.record.more["tokens"] + shard.tokens
            update(sum(source.at for source in self.sources), f"{tokens:,} tokens")
        return True

    def _todo(self) -> Iterator[Encoded | None]:
        """Give the ids of all documents that are not encoded yet, and None where the place is recorded."""
        for source, items, _ in self.record.todo():
            try:
                with source.named():
                    left = islice(self.selection.of(source), items, None)
                    encoded = encode_documents(self.tokenizer, left, self.threads, self.errors)
                    for item, some in enumerate(encoded, items + 1):
                        yield from some
                        self.record.move(item)
                        yield None
            except (ValueError, OSError) as error:
                if not self.skip_errors:
                    raise ValueError(str(error)) from None
                self.record.more["failed"][source.name or "the data"] = str(error)


def fingerprint(tokenizer: Tokenizer) -> str:
    """Give a number by which a vocabulary is known again."""
    model = tokenizer.model
    parts = (model.pattern, model.byte_ids, *map(sorted, (model.stop_words.items(), model.special_tokens.items())))
    merges = np.fromiter(chain(chain.from_iterable(model.merges), model.merges.values()), np.uint32)
    return hashlib.sha256(repr(parts).encode() + merges.tobytes()).hexdigest()[:16]
