"""Token files, read by the packages that they are written for."""

from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchbpe import Model, Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions

pytestmark = pytest.mark.filterwarnings("ignore")  # of these packages, about each other
BOS, EOS = "<s>", "</s>"
TEXTS = ["", *(f"{number} one line of text, {'again and ' * number}" for number in range(40)), "", "a b " * 3000, "end"]
MERGES = Tokenizer.train(iter(TEXTS), 300).model
SIZES = [302, 65_499, 65_500, 65_536, 65_537, 70_000]


def tokenizer_with(n_vocab: int) -> Tokenizer:
    return Tokenizer(Model(MERGES.split, MERGES.merges, special_tokens={BOS: n_vocab - 2, EOS: n_vocab - 1}))


def expected(tokenizer: Tokenizer, texts: list[str] = TEXTS) -> list[list[int]]:
    bos, eos = (tokenizer.special_tokens[name] for name in (BOS, EOS))
    return [[bos, *ids, eos] for ids in tokenizer.encode_ordinary_batch(texts)]


def encode(tokenizer: Tokenizer, folder: Path, form: Any, **others: Any) -> list[Path]:
    options = EncodeOptions(form, append_eos=True, prepend_bos=True, **others)
    return [folder / name for name in encode_files(tokenizer, sources(iter(TEXTS)), folder, options).files]


@pytest.mark.parametrize("n_vocab", SIZES)
@pytest.mark.parametrize("mmap", [True, False])
def test_megatron(n_vocab: int, mmap: bool, tmp_path: Path) -> None:
    from megatron.core.datasets.indexed_dataset import DType, IndexedDataset

    tokenizer = tokenizer_with(n_vocab)
    documents = []
    for path in encode(tokenizer, tmp_path / "out", "megatron", shard_tokens=2000):
        dataset = IndexedDataset(str(path.with_suffix("")), mmap=mmap)
        assert dataset.index.dtype == DType.optimal_dtype(n_vocab)
        assert dataset.document_indices.tolist() == list(range(len(dataset) + 1))
        documents += [dataset[number].tolist() for number in range(len(dataset))]
    assert documents == expected(tokenizer)


def test_megatron_writes_the_same_files(tmp_path: Path) -> None:
    import torch
    from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder

    for n_vocab in SIZES:
        tokenizer = tokenizer_with(n_vocab)
        (path,) = encode(tokenizer, tmp_path / str(n_vocab), "megatron")
        builder = IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=DType.optimal_dtype(n_vocab))
        for ids in expected(tokenizer):
            builder.add_document(torch.tensor(ids), [len(ids)])
        builder.finalize(str(tmp_path / "theirs.idx"))
        for suffix in (".bin", ".idx"):
            assert path.with_suffix(suffix).read_bytes() == (tmp_path / f"theirs{suffix}").read_bytes()


@pytest.mark.parametrize("n_vocab", SIZES)
def test_datatrove(n_vocab: int, tmp_path: Path) -> None:
    from datatrove.utils.dataset import DatatroveFolderDataset

    tokenizer = tokenizer_with(n_vocab)
    size = 2 if n_vocab <= 65_536 else 4
    encode(tokenizer, tmp_path / "out", "datatrove", shard_tokens=2000, split_documents=True)
    dataset = DatatroveFolderDataset(
        str(tmp_path / "out"), seq_len=15, filename_pattern="*.ds", token_size=size, return_positions=True
    )
    windows = [dataset[number] for number in range(len(dataset))]
    tokens = [*chain.from_iterable(expected(tokenizer))]
    found = [*chain.from_iterable(window["input_ids"].tolist() for window in windows)]
    assert found == tokens[: len(found)] and len(tokens) - len(found) < 16 * len(dataset.files)
    # The position in the window, or since the last document began in it.
    starts = {0, *np.cumsum([len(ids) for ids in expected(tokenizer)]).tolist()}
    for number, window in enumerate(windows[: 2000 // 16]):
        position = -1
        for at, found_position in enumerate(window["positions"].tolist()):
            position = 0 if at + 16 * number in starts else position + 1
            assert found_position == position


def test_datatrove_merges_them(tmp_path: Path) -> None:
    """Which needs the token size that the metadata tells."""
    from datatrove.pipeline.tokens import DocumentTokenizerMerger

    tokenizer = tokenizer_with(70_000)
    encode(tokenizer, tmp_path / "out", "datatrove", shard_tokens=2000)
    DocumentTokenizerMerger(str(tmp_path / "out"), str(tmp_path / "merged"), "all", shuffle=False).run()
    (merged,) = (tmp_path / "merged").glob("*.ds")
    ends = np.fromfile(f"{merged}.index", "<u8").tolist()
    ids = np.fromfile(merged, "<u4")
    assert [ids[start:end].tolist() for start, end in pairwise([0, *ends])] == expected(tokenizer)


@pytest.mark.parametrize("n_vocab", SIZES)
def test_olmo(n_vocab: int, tmp_path: Path) -> None:
    from olmo_core.data.utils import iter_document_indices, load_array_slice

    tokenizer = tokenizer_with(n_vocab)
    dtype = np.uint16 if n_vocab <= 65_536 else np.uint32
    eos = tokenizer.special_tokens[EOS]
    documents = []
    for path in encode(tokenizer, tmp_path / "out", "olmo", shard_tokens=2000):
        spans = [*iter_document_indices(path, use_array_if_local=False, dtype=dtype)]
        assert spans == [*iter_document_indices(path, eos_token_id=eos, dtype=dtype)]
        documents += [load_array_slice(path, start, end, dtype).tolist() for start, end in spans]
    assert documents == expected(tokenizer)


def test_olmo_dataset(tmp_path: Path) -> None:
    from olmo_core.data import NumpyFSLDataset

    tokenizer = tokenizer_with(302)
    paths = encode(tokenizer, tmp_path / "out", "olmo")
    dataset = NumpyFSLDataset(
        *paths, sequence_length=32, pad_token_id=0, eos_token_id=301, vocab_size=302, dtype=np.uint16
    )
    dataset.prepare()
    tokens = [*chain.from_iterable(expected(tokenizer))]
    found = [*chain.from_iterable(dataset[number]["input_ids"].tolist() for number in range(len(dataset)))]
    assert found == tokens[: len(tokens) // 32 * 32]


def test_nanogpt(tmp_path: Path) -> None:
    """As its train.py does."""
    import torch

    tokenizer = tokenizer_with(65_536)
    encode(tokenizer, tmp_path / "out", "nanogpt", validation=0.3)
    found = {}
    for split in ("train", "val"):
        data = np.memmap(tmp_path / "out" / f"{split}.bin", dtype=np.uint16, mode="r")
        found[split] = torch.from_numpy(data[: len(data)].astype(np.int64)).tolist()
    assert sorted(found["train"] + found["val"]) == sorted(chain.from_iterable(expected(tokenizer)))
