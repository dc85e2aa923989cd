"""Files of ids that are malformed raise errors that name them."""

import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from batchbpe import Tokenizer
from batchbpe.jobs.ids import read_ids

sys.path.insert(0, str(Path(__file__).parent / "fuzz"))
from mutants import mutants


def test_malformed_npy(tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "a.npy", Tokenizer.train("aab", 257)
    np.save(path, np.arange(50, dtype=np.uint16))
    data = path.read_bytes()
    npz = tmp_path / "b.npy"
    with zipfile.ZipFile(npz, "w") as archive:
        archive.writestr("a.npy", data)
    with pytest.raises(ValueError, match=r"b\.npy: an \.npz archive instead"):
        list(read_ids(npz, tokenizer))
    broken = [
        data.replace(b"}", b" "),
        data.replace(b"(50,)", b"(9**9)"),
        data.replace(b"(50,), }      ", b"(99999999999999999999,)"[:14]),
        data.replace(b"(50,)", b"(-5,)"),
    ]
    refused = 0
    for mutant in [*broken, *mutants(data[:128], 300, seed=4)]:
        path.write_bytes(mutant)
        try:
            list(read_ids(path, tokenizer))
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 100


def test_half_an_id(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"a\.bin: expected uint16 values of 2 bytes, got a file of 1 byte$"):
        list(read_ids(tmp_path / "a.bin", Tokenizer.train("aab", 257)))
