"""Cases that load, encode and decode."""

import hashlib
import timeit
from functools import partial

import numpy as np

from benchmarks.encoders import encoder, import_tool
from benchmarks.measure import Case
from benchmarks.texts import column, load_documents, load_pieces, load_text

SHORT = "The theory is in the inaccessible parts."


def digest(ids):
    ids = np.asarray(ids, dtype=np.uint32)
    return {"result": f"{len(ids):,} tokens", "ids": hashlib.sha256(ids.tobytes()).hexdigest()}


def load(tool, ranks):
    import_tool(tool)
    return Case(int, lambda _: encoder(tool, ranks), lambda tokenizer: digest(tokenizer.to_list(SHORT)))


def imported(tool, ranks):
    import_tool(tool)
    return encoder(tool, ranks)


def to_numpy(tool, ranks, path):
    return Case(partial(load_text, path), imported(tool, ranks).to_numpy, digest, again=True)


def to_list(tool, ranks, path):
    return Case(partial(load_text, path), imported(tool, ranks).to_list, digest, again=True)


def batch(tool, ranks, path, pieces=False):
    """Encode documents, or pieces of 3,000 characters."""
    tokenizer = imported(tool, ranks)
    read = load_pieces if pieces else load_documents
    return Case(partial(read, path), tokenizer.batch, lambda result: digest(tokenizer.flat(result)), again=True)


def short(tool, ranks, loops):
    tokenizer = imported(tool, ranks)

    def best(_):
        return min(timeit.repeat(lambda: tokenizer.to_list(SHORT), number=loops, repeat=20)) / loops

    return Case(int, best, lambda best: digest(tokenizer.to_list(SHORT)) | {"seconds": best, "cpu": None})


def decode(tool, ranks, path):
    """Decode what the tool's fastest encoder returns: an array, or a list."""
    tokenizer = imported(tool, ranks)
    encode = tokenizer.to_numpy if tool in ("batchbpe", "gigatoken") else tokenizer.to_list

    def describe(text):
        return {"result": f"{len(text):,} characters", "ids": hashlib.sha256(text.encode()).hexdigest()}

    return Case(lambda: encode(load_text(path)), tokenizer.decode, describe, again=True)


def count(path):
    from batchbpe import ChunkCounts

    def describe(chunks):
        return {"result": f"{chunks.total:,} chunks, {chunks.unique:,} unique"}

    return Case(partial(column, path), ChunkCounts.count, describe)
