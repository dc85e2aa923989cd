"""The encoders that are compared, behind one interface. None of them has special tokens."""

import base64
import importlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from batchbpe.patterns import PATTERNS
from benchmarks.texts import cached

SPLITS = {"cl100k_base": "cl100k", "o200k_base": "o200k"}
TOOLS = ("batchbpe", "gigatoken", "quicktok", "tiktoken", "tokenizers")


class Encoder(NamedTuple):
    """How a tool encodes and decodes. `flat` returns all ids of a batch as one array."""

    to_numpy: Callable[[str], Any]
    to_list: Callable[[str], list[int]]
    batch: Callable[[list[str]], Any]
    flat: Callable[[Any], Any]
    decode: Callable[[Any], str]


def batchbpe(ranks):
    from batchbpe import Tokenizer

    tokenizer = Tokenizer.from_tiktoken(ranks, pattern=SPLITS[Path(ranks).stem], special_tokens={})
    tokenizer.encode("")  # builds the encoder, as the constructors of the others do
    return Encoder(
        tokenizer.encode_to_numpy,
        tokenizer.encode,
        tokenizer.encode_batch_to_numpy,
        lambda result: result[0],
        tokenizer.decode,
    )


def gigatoken(ranks):
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_tiktoken(ranks, pretokenizer=SPLITS[Path(ranks).stem])

    def flat(result):
        import awkward

        return np.asarray(awkward.flatten(result))

    return Encoder(
        tokenizer.encode,
        lambda text: tokenizer.encode_batch_list([text])[0],
        tokenizer.encode_batch,
        flat,
        lambda ids: tokenizer.decode(ids).decode(),
    )


def quicktok(ranks):
    """Ignore the file: this package ships its own copies."""
    import quicktok

    encoding = quicktok.get_encoding(Path(ranks).stem)
    cores = len(os.sched_getaffinity(0))
    return Encoder(
        lambda text: encoding.encode_batch([text], 1)[0],
        encoding.encode_ordinary,
        lambda texts: encoding.encode_batch(texts, cores),
        lambda result: result[0],
        encoding.decode,
    )


def tiktoken(ranks):
    import tiktoken

    lines = (line.split() for line in Path(ranks).read_bytes().splitlines())
    tokens = {base64.b64decode(token): int(rank) for token, rank in lines}
    pattern = PATTERNS[SPLITS[Path(ranks).stem]]
    encoding = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=tokens, special_tokens={})
    cores = len(os.sched_getaffinity(0))
    return Encoder(
        encoding.encode_to_numpy,
        encoding.encode_ordinary,
        partial(encoding.encode_ordinary_batch, num_threads=cores),
        lambda result: np.concatenate([np.array(ids, np.uint32) for ids in result]),
        encoding.decode,
    )


def tokenizers(ranks):
    """Load tokenizer.json, see `model_file`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(ranks)
    return Encoder(
        lambda text: np.array(tokenizer.encode(text).ids, np.uint32),
        lambda text: tokenizer.encode(text).ids,
        tokenizer.encode_batch_fast,
        lambda result: np.concatenate([np.array(each.ids, np.uint32) for each in result]),
        tokenizer.decode,
    )


def model_file(tool, ranks):
    """Return the file that a tool loads: the ranks, or a copy in the tool's format."""

    def write(path):
        from batchbpe import Tokenizer

        Tokenizer.from_tiktoken(ranks, pattern=SPLITS[ranks.stem]).export(path, "huggingface")

    return str(cached(f"{ranks.stem}.json", ranks, write) if tool == "tokenizers" else ranks)


def import_tool(tool):
    """Import a tool, and what it imports when it encodes a batch for the first time."""
    for module in (tool, "awkward") if tool == "gigatoken" else (tool,):
        importlib.import_module(module)


def encoder(tool, ranks):
    return globals()[tool](ranks)
