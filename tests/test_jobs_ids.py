"""Reading token files. Malformed and incomplete ones raise errors that name them."""

import gzip
import os
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers import run
from token_files import FORMAT_NAMES, TEXTS, TOKENIZER, encode, with_ids_up_to

from batchbpe import Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions
from batchbpe.jobs.ids import decoded, read_ids

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
    with pytest.raises(ValueError, match=r"a\.bin: expected uint16 .*, got a file of 1 byte; encode again, or"):
        list(read_ids(tmp_path / "a.bin", Tokenizer.train("aab", 257)))


def test_folders_that_cannot_be_decoded(tmp_path: Path) -> None:
    def problem(folder: Path) -> str:
        with pytest.raises((ValueError, OSError)) as error:
            list(read_ids(folder, TOKENIZER))
        return str(error.value).replace(str(tmp_path), "")

    (tmp_path / "none").mkdir()
    assert problem(tmp_path / "none").startswith("/none: the folder contains no token files (.bin, .ds, .npy, .parq")
    encode(tmp_path / "mixed", "bin")
    np.save(tmp_path / "mixed" / "x.npy", np.arange(3))
    assert problem(tmp_path / "mixed") == (
        "/mixed: the folder mixes formats: shard_000000.bin is bin, x.npy is npy; pass the files of one format"
    )
    for form, name in (("megatron", "shard_000000.idx"), ("olmo", "shard_000000.csv.gz"), ("bin", "shard_000000.bin")):
        folder = tmp_path / form
        encode(folder, form)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-1])
        size = len(data)
        again = f"expected {size}; encode into {form} again"
        assert problem(folder) == f"/{form}/{name}: the file is damaged: it has {size - 1} bytes, {again}".replace(
            f"into {form}", f"into /{form}"
        )
        (folder / name).unlink()
        assert problem(folder) == f"/{form}/{name}: the file is missing; encode into /{form} again"
    encode(tmp_path / "foreign", "megatron", shard_tokens=300)
    (tmp_path / "foreign" / "shards.json").unlink()
    (tmp_path / "foreign" / "shard_000001.bin").unlink()
    assert problem(tmp_path / "foreign").startswith(
        "/foreign: shard_000001.bin is missing, but shard_000001.idx exists"
    )


@pytest.mark.parametrize("form", ["megatron", "datatrove", "olmo", "llm.c", "parquet", "npy"])
def test_truncated_files_without_a_record(form: str, tmp_path: Path) -> None:
    """Every file of every format, cut at any place: an error that names the file."""
    (path,) = encode(tmp_path / "out", form)
    (tmp_path / "out" / "shards.json").unlink()
    for name in (each.name for each in (tmp_path / "out").iterdir() if not each.name.endswith(".metadata")):
        data = (tmp_path / "out" / name).read_bytes()
        for size in (len(data) - 2, len(data) // 2, 40, 10):
            (tmp_path / "out" / name).write_bytes(data[:size])
            with pytest.raises(ValueError, match=r"/out/shard_000000\.|/out: "):
                list(read_ids(path, TOKENIZER))
        (tmp_path / "out" / name).write_bytes(data)
    list(read_ids(path, TOKENIZER))


@pytest.mark.filterwarnings("ignore:.* was encoded with another model")
def test_the_vocabulary_of_another_model(tmp_path: Path) -> None:
    """An index tells that the ids have another type."""
    large = with_ids_up_to(70_000)
    for form in ("datatrove", "olmo"):
        encode(tmp_path / form, form)
        with pytest.raises(ValueError, match=r"damaged, or its vocabulary has another size: .* expected .* uint32"):
            list(read_ids(tmp_path / form, large))
    for form in ("megatron", "llm.c", "npy", "parquet"):
        encode(tmp_path / form, form, append_eos=False, prepend_bos=False)
        assert b"".join(decoded(large, read_ids(tmp_path / form, large))) == "".join(TEXTS).encode()


def test_numpy_is_asked_for_its_header(tmp_path: Path) -> None:
    np.arange(5, dtype="<u2").tofile(tmp_path / "raw.npy")
    with pytest.raises(ValueError, match=r"not a \.npy file, or damaged; for OLMo's raw ids, keep the \.csv\.gz file"):
        list(read_ids(tmp_path / "raw.npy", TOKENIZER))


@pytest.mark.parametrize("form", [form for form in FORMAT_NAMES if form not in ("bin", "nanogpt")])
def test_damaged_files(form: str, tmp_path: Path) -> None:
    """A changed byte, or several, in any file of a shard: some ids, or an error that names the file."""
    (path,) = encode(tmp_path / "out", form, TEXTS[:9])
    (tmp_path / "out" / "shards.json").unlink()
    refused = 0
    for each in [*(tmp_path / "out").iterdir()]:
        data = each.read_bytes()
        single = [
            data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :] for at in range(0, len(data), len(data) // 99 + 1)
        ]
        for mutant in [*single, *mutants(data, 200, seed=5)]:
            each.write_bytes(mutant)
            try:
                list(read_ids(path, TOKENIZER))
            except ValueError as error:
                assert str(tmp_path / "out") in str(error)
                refused += 1
        each.write_bytes(data)
    assert refused > 50


def test_a_long_line_in_an_index(tmp_path: Path) -> None:
    """A small gzip file may contain a line of gigabytes."""
    (path,) = encode(tmp_path / "out", "olmo")
    (tmp_path / "out" / "shards.json").unlink()
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(bytes(1 << 26), 1))
    tracemalloc.start()
    with pytest.raises(ValueError, match="not an index of OLMo"):
        list(read_ids(path, TOKENIZER))
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_incomplete_folders_of_spark(tmp_path: Path) -> None:
    """Spark writes a part into _temporary first, and _SUCCESS last."""
    for part in ("train", "validation"):
        (path,) = encode(tmp_path / part, "parquet")
        (tmp_path / "out" / part).mkdir(parents=True)
        path.rename(tmp_path / "out" / part / "part-00000.parquet")
        (tmp_path / "out" / part / "_SUCCESS").touch()
    with pytest.raises(ValueError, match="/out: the folder is not complete: Spark has not finished"):
        list(read_ids(tmp_path / "out", TOKENIZER))
    assert list(read_ids(tmp_path / "out" / "train", TOKENIZER))
    (tmp_path / "out" / "_SUCCESS").touch()
    assert list(read_ids(tmp_path / "out", TOKENIZER))
    (tmp_path / "out" / "validation" / "_temporary").mkdir()
    with pytest.raises(ValueError, match="/out: the folder is not complete: Spark has not finished"):
        list(read_ids(tmp_path / "out", TOKENIZER))


def test_only_parts_belong_to_the_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encode(tmp_path / "out", "bin")
    record = (tmp_path / "out" / "shards.json").read_text()
    for name in ("train", "other"):
        (tmp_path / name).mkdir()
        os.link(tmp_path / "out" / "shard_000000.bin", tmp_path / name / "a.bin")
    (tmp_path / "shards.json").write_text(record.replace("true", "false"))
    for name in (".", str(tmp_path / "other")):
        monkeypatch.chdir(tmp_path / "other")
        assert list(read_ids(Path(name), TOKENIZER))
    for name in (".", str(tmp_path / "train")):
        monkeypatch.chdir(tmp_path / "train")
        with pytest.raises(ValueError, match=r"[/\\]shards\.json"):
            list(read_ids(Path(name), TOKENIZER))


@pytest.mark.parametrize("output", ["tokens/shard_000000.bin", "tokens/a.txt", "tokens/shard_000000.idx", "mine.model"])
def test_decoding_does_not_replace_its_inputs(output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    TOKENIZER.save("mine")
    encode_files(TOKENIZER, sources(iter(["to be"])), Path("tokens"), EncodeOptions("megatron"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    inputs = ["tokens"] if output.startswith("tokens/a") else ["tokens", "tokens/shard_000000.bin"]
    for path in inputs:
        refused = run(["decode", "mine.model", path, "-o", output])
        assert refused.exit_code == 2 and "must not be the model or the input" in refused.stderr
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_decoding_with_another_model(tmp_path: Path) -> None:
    encode_files(TOKENIZER, sources(iter(["to be"])), tmp_path / "out", EncodeOptions())
    assert [*read_ids(tmp_path / "out", TOKENIZER)]
    other = Tokenizer.train("to be or not to be", 258)
    with pytest.warns(UserWarning, match="out was encoded with another model"):
        list(read_ids(tmp_path / "out", other))


def test_memory_of_long_tokens(tmp_path: Path) -> None:
    """A megabyte of ids of a token with 4,096 bytes is not decoded at once."""
    tokenizer = Tokenizer.train("a" * 4096, 268, pattern="[a]+")
    longest = max(tokenizer.vocab, key=lambda token: len(tokenizer.vocab[token]))
    parts = decoded(tokenizer, [("", np.full(1 << 19, longest, np.uint32))])
    assert len(next(parts)) <= 1 << 28
