"""Texts in token files, and readers of each format, written from its specification."""

import gzip
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
from helpers import multilingual

from batchbpe import Model, Tokenizer
from batchbpe.choices import TokenFormat
from batchbpe.data.corpus import sources
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions

BOS, EOS = "<s>", "</s>"
FORMAT_NAMES = get_args(TokenFormat)
IN_SHARDS = [name for name in FORMAT_NAMES if name != "nanogpt"]
TEXTS = ["", *(multilingual(40 * seed, seed) for seed in range(30)), "", "", multilingual(3000, 99), "last", ""]
MERGES = Tokenizer.train(iter(TEXTS), 500).model


def with_ids_up_to(n_vocab: int) -> Tokenizer:
    """Return a tokenizer with n_vocab ids. The last one ends documents."""
    return Tokenizer(Model(MERGES.split, MERGES.merges, special_tokens={BOS: n_vocab - 2, EOS: n_vocab - 1}))


TOKENIZER = with_ids_up_to(502)


def expected(texts: list[str], tokenizer: Tokenizer = TOKENIZER) -> list[list[int]]:
    bos, eos = (tokenizer.special_tokens[name] for name in (BOS, EOS))
    return [[bos, *ids, eos] for ids in tokenizer.encode_ordinary_batch(texts)]


def cut(ids: np.ndarray[Any, Any], offsets: Any) -> list[list[int]]:
    assert not len(offsets) or (offsets[0], offsets[-1]) == (0, len(ids))
    return [ids[start:end].tolist() for start, end in pairwise(offsets)]


def read_megatron(path: Path, _: Any) -> list[list[int]]:
    """As in Megatron's IndexedDataset."""
    index = path.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, documents) == (b"MMIDIDX\0\0", 1, sequences + 1)
    dtype = np.dtype({8: "<u2", 4: "<i4"}[code])
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    pointers = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    ends = np.frombuffer(index, "<i8", documents, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * documents
    assert ends.tolist() == list(range(documents))
    offsets = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
    assert pointers.tolist() == [dtype.itemsize * offset for offset in offsets[:-1]]
    return cut(np.fromfile(path, dtype), offsets)


def read_datatrove(path: Path, dtype: Any) -> list[list[int]]:
    ids = np.fromfile(path, dtype)
    name, count, _ = (path.parent / f"{path.name}.metadata").read_text().split("\n")
    assert (name, count) == (f"batchbpe|{np.dtype(dtype).itemsize}", str(len(ids)))
    return cut(ids, [0, *np.fromfile(path.parent / f"{path.name}.index", "<u8").tolist()])


def read_olmo(path: Path, dtype: Any) -> list[list[int]]:
    with gzip.open(path.with_suffix(".csv.gz"), "rt") as lines:
        spans = [tuple(map(int, line.split(","))) for line in lines]
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    return cut(np.fromfile(path, dtype), [0, *(end for _, end in spans)])


def read_llm_c(path: Path, dtype: Any) -> list[int]:
    header, ids = np.fromfile(path, "<i4", 256), np.fromfile(path, dtype, offset=1024)
    magic = {"<u2": [20240520, 1], "<u4": [20240801, 7]}[dtype]
    assert header.tolist() == [*magic, len(ids), *[0] * 253]
    return ids.tolist()


DOCUMENTS: dict[str, Any] = {
    "megatron": read_megatron,
    "datatrove": read_datatrove,
    "olmo": read_olmo,
    "parquet": lambda path, _: pq.read_table(path)["ids"].to_pylist(),
}
"""Readers of formats that store where documents end."""
TOKENS: dict[str, Any] = {
    "bin": lambda path, dtype: np.fromfile(path, dtype).tolist(),
    "nanogpt": lambda path, dtype: np.fromfile(path, dtype).tolist(),
    "npy": lambda path, _: np.load(path).tolist(),
    "llm.c": read_llm_c,
}


def options(form: Any, **others: Any) -> EncodeOptions:
    others = {"append_eos": True, "prepend_bos": True, "validation": 0.3 if form == "nanogpt" else None} | others
    return EncodeOptions(form, **others)


def encode(folder: Path, form: str, texts: Any = TEXTS, tokenizer: Tokenizer = TOKENIZER, **others: Any) -> list[Path]:
    """Encode texts, and return the token files."""
    report = encode_files(tokenizer, sources(iter(texts)), folder, options(form, **others))
    return [folder / name for name in report.files]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "shards.json"
    }


def is_validation(text: str, fraction: float) -> bool:
    return zlib.crc32(text.encode()) < fraction * 2**32
