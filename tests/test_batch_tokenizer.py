"""The paper's two classes hold a tokenizer and replace it in one step or not at all."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from batchbpe import PATTERNS, BatchTokenizer, ChunkCounts, QuickTokenizer, Tokenizer, train
from batchbpe.policies import Candidates

TEXT = "the theory of the thing, and the other things; then there is another theory. " * 9


@pytest.fixture
def trained() -> BatchTokenizer:
    tokenizer = BatchTokenizer(stop_list_size=2)
    tokenizer.register_special_tokens({"<|end|>": 299})
    tokenizer.train(TEXT, 300)
    return tokenizer


def test_example_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(TEXT)
    tokenizer = BatchTokenizer(stop_list_size=5, freq_cutoff=2)
    tokenizer.train([tmp_path / "corpus.txt", TEXT], vocab_size=290)
    ids = tokenizer.encode("theory in the inaccessible")
    assert tokenizer.decode(ids) == "theory in the inaccessible"
    tokenizer.save(tmp_path / "mine")
    assert Tokenizer.from_file(tmp_path / "mine.model").encode("theory in the inaccessible") == ids


def test_equals_the_functions() -> None:
    text = TEXT + "aaaaab aaaaac aaaaad aaaaae aaaaaf " * 5
    counts = ChunkCounts.count(text)
    found = []
    for kind, overlapping in ((BatchTokenizer, False), (QuickTokenizer, True)):
        tokenizer = kind(stop_list_size=3, freq_cutoff=2)
        tokenizer.train(text, 290, cap_divisor=3, max_batch_size=4)
        options: dict[str, Any] = {"cap_divisor": 3, "max_batch_size": 4, "overlapping": overlapping}
        assert tokenizer.model == train(counts, 290, stop_list_size=3, freq_cutoff=2, **options)
        found.append(tokenizer.merges)
    assert found[0] != found[1]


def test_attributes(trained: BatchTokenizer) -> None:
    assert trained.pattern == PATTERNS["gpt4"]
    assert list(trained.stop_words.values()) == [256, 257]
    assert set(trained.stop_words) == set(list(ChunkCounts.count(TEXT))[:2])
    assert trained.special_tokens == {"<|end|>": 299}
    assert trained.vocab[299] == b"<|end|>"
    assert min(trained.merges.values()) == 258
    assert trained.n_vocab == 300
    assert repr(trained) == "BatchTokenizer(n_vocab=300)"


@pytest.mark.parametrize("kind", [BatchTokenizer, QuickTokenizer])
def test_from_file(kind: type[BatchTokenizer], trained: BatchTokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "a")
    for loaded in (kind.from_file(tmp_path / "a.model"), kind.from_huggingface(_exported(trained, tmp_path))):
        assert type(loaded) is kind
        assert loaded.model == trained.model
        assert loaded.encode(TEXT) == trained.encode(TEXT)
        assert loaded.train(TEXT, 280) == 280
        assert loaded.pattern == trained.pattern
    plain = Tokenizer.train(TEXT, 280)
    assert type(kind.from_tiktoken(plain.to_tiktoken())) is kind
    assert kind.from_tiktoken(plain.to_tiktoken()).tokenizer == plain


def _exported(tokenizer: BatchTokenizer, folder: Path) -> Path:
    tokenizer.export(folder / "folder", "transformers")
    return folder / "folder"


def test_holds_a_tokenizer(trained: BatchTokenizer) -> None:
    held = trained.tokenizer
    assert type(held) is Tokenizer
    assert not isinstance(trained, Tokenizer)
    for name in (name for name in dir(Tokenizer) if not name.startswith("_")):
        assert getattr(BatchTokenizer, name).__doc__, name
        assert name == "eot_token" or hasattr(trained, name), name
    for encode in ("encode", "encode_to_numpy", "encode_batch", "encode_batch_to_numpy", "decode", "export"):
        assert inspect.signature(getattr(trained, encode)) == inspect.signature(getattr(held, encode))
    assert trained.token_to_id("<|end|>") == trained.max_token_value == 299
    assert trained.encode_ordinary_batch(["the"]) == [held.encode("the")]
    assert trained.decode_with_offsets(held.encode("the")) == held.decode_with_offsets(held.encode("the"))
    assert len(trained) == trained.vocab_size == len(held)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        _ = trained.absent
    trained.register_special_tokens({})
    assert trained.tokenizer is not held
    assert held.special_tokens == {"<|end|>": 299}


def test_unnamed_special_tokens_are_ordinary_text() -> None:
    """In contrast to `Tokenizer`, which raises an error as tiktoken does."""
    tokenizer = BatchTokenizer()
    tokenizer.register_special_tokens({"<a>": 256, "<b>": 257})
    expected = [256, *b"<b>"]
    assert tokenizer.encode("<a><b>", {"<a>"}) == tokenizer.encode_to_numpy("<a><b>", {"<a>"}).tolist() == expected
    assert tokenizer.encode_batch(["<a><b>"], {"<a>"}) == [expected]
    assert tokenizer.encode_batch_to_numpy(["<a><b>"], {"<a>"})[0].tolist() == expected
    for encode in (tokenizer.encode, tokenizer.encode_to_numpy):
        with pytest.raises(ValueError, match="special token"):
            encode("<a><b>")
        with pytest.raises(ValueError, match="special token"):
            encode("<a><b>", {"<a>"}, "all")
    with pytest.raises(ValueError, match="special token"):
        tokenizer.tokenizer.encode("<a><b>", {"<a>"})


def test_base_may_be_a_batch_tokenizer(trained: BatchTokenizer) -> None:
    longer = Tokenizer.train(TEXT, 310, base=trained)  # type: ignore[arg-type]
    other = BatchTokenizer()
    other.train(TEXT, 310, base=trained)  # type: ignore[arg-type]
    assert [*longer.merges][: len(trained.merges)] == [*trained.merges]
    assert other.merges == longer.merges


def test_options_of_train(tmp_path: Path) -> None:
    """`train` takes those of `Tokenizer.train` that are not set elsewhere."""
    found: list[int] = []
    tokenizer = BatchTokenizer(store_dict=tmp_path / "counts.csv")
    options: dict[str, Any] = {"phrases": 3, "policy": "serial", "sample": 0.5, "seed": 1}
    tokenizer.train([TEXT] * 9, 290, **options, on_counts=lambda counts: found.append(counts.total))
    assert tokenizer.tokenizer == Tokenizer.train([TEXT] * 9, 290, **options)
    assert len(tokenizer.phrases) == 3
    assert found == [ChunkCounts.load(tmp_path / "counts.csv").total]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"pattern": "gpt2"}, "'pattern'; pass pattern to the constructor"),
        ({"stop_list_size": 3}, "'stop_list_size'; pass stop_list_size to the constructor"),
        ({"freq_cutoff": 3}, "'freq_cutoff'; pass freq_cutoff to the constructor"),
        ({"threads": 1}, "'threads'; pass multiprocess to the constructor"),
        ({"special_tokens": ["<e>"]}, "'special_tokens'; call register_special_tokens first"),
        ({"overlapping": True}, "'overlapping'; use QuickTokenizer"),
        ({"absent": 3}, "'absent'$"),
    ],
)
def test_options_that_train_does_not_have(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(TypeError, match=rf"train\(\) got an unexpected keyword argument {problem}"):
        BatchTokenizer().train(TEXT, 290, **options)


def test_untrained_encodes_to_bytes() -> None:
    assert BatchTokenizer().encode("é") == [0xC3, 0xA9]
    assert BatchTokenizer(pattern="gpt2").pattern == PATTERNS["gpt2"]
    assert BatchTokenizer(pattern=r"\w+").pattern == r"\w+"


def test_pattern_of_counts_is_used() -> None:
    tokenizer = BatchTokenizer()
    tokenizer.train(ChunkCounts.count(TEXT, "o200k"), 270)
    assert tokenizer.pattern == PATTERNS["o200k"]
    with pytest.raises(ValueError, match="counted with the pattern o200k, expected gpt2"):
        BatchTokenizer(pattern="gpt2").train(ChunkCounts.count(TEXT, "o200k"), 270)


def test_failed_training_changes_nothing(trained: BatchTokenizer) -> None:
    model, ids = trained.model, trained.encode(TEXT)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    def bad(found: Candidates) -> Candidates:
        return found[[0, 0]]

    wrong: list[tuple[type[BaseException], dict[str, Any]]] = [
        (KeyboardInterrupt, {"on_batch": interrupted}),
        (KeyboardInterrupt, {"progress": interrupted}),
        (ValueError, {"policy": bad}),
        (ValueError, {"vocab_size": 100}),
        (ValueError, {"data": ""}),
        (FileNotFoundError, {"data": "absent.txt"}),
    ]
    for error, options in wrong:
        with pytest.raises(error):
            trained.train(**{"data": TEXT[::-1], "vocab_size": 300, **options})
        assert trained.model is model
        assert trained.encode(TEXT) == ids


def test_failed_registration_and_load_change_nothing(trained: BatchTokenizer, tmp_path: Path) -> None:
    model = trained.model
    (tmp_path / "bad.model").write_text("{}")
    with pytest.raises(ValueError, match=r"bad\.model"):
        trained.load(tmp_path / "bad.model")
    with pytest.raises(FileNotFoundError, match=r"absent\.model"):
        trained.load(tmp_path / "absent.model")
    for special, problem in (
        ({"<x>": 97}, r"id 97 of special token '<x>' is already used by b'a'; choose another"),
        ({"<x>": 256}, r"id 256 of special token '<x>' is already used"),
        ({"<x>": 400, "<y>": 400}, r"special_tokens must have different ids, got"),
        ({"<x>": -1}, r"id of special token '<x>' must be an integer from 0 to \d+, got -1"),
    ):
        with pytest.raises(ValueError, match=problem):
            trained.register_special_tokens(special)
    assert trained.model is model
    assert trained.encode("<|end|>", "all") == [299]


def test_register_special_tokens(trained: BatchTokenizer) -> None:
    merges = trained.merges
    trained.register_special_tokens({"<a>": 299, "<a><b>": 310})
    assert trained.merges == merges
    assert trained.encode("<a><b><a>", "all") == [310, 299]
    assert trained.encode("<|end|>") == trained.encode_ordinary("<|end|>")
    assert trained.n_vocab == 311


def test_load_restores_everything(trained: BatchTokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "a")
    other = BatchTokenizer(pattern="gpt2")
    other.register_special_tokens({"<old>": 256})
    other.load(tmp_path / "a.model")
    assert other.model == trained.model
    assert other.encode(TEXT + "<|end|>", "all") == trained.encode(TEXT + "<|end|>", "all")
    other.train(TEXT, 300)
    assert other.pattern == trained.pattern


def test_load_restores_stop_words(trained: BatchTokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path / "a")
    other = BatchTokenizer()
    other.load(tmp_path / "a.model")
    assert other.stop_words == trained.stop_words


@pytest.mark.parametrize("name", ["x", "x.model", "x.y", "v1.0"])
def test_names_of_saved_files(name: str, trained: BatchTokenizer, tmp_path: Path) -> None:
    trained.save(str(tmp_path / name))
    stem = name.removesuffix(".model")
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{stem}.model", f"{stem}.vocab"]
    assert Tokenizer.from_file(tmp_path / f"{stem}.model").model == trained.model
    lines = (tmp_path / f"{stem}.vocab").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(trained.vocab)
    assert lines[-1] == "[<|end|>] 299"
    assert all(line.endswith(f" {token}") for line, token in zip(lines, trained.vocab, strict=True))


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
def test_store_dict(name: str, tmp_path: Path) -> None:
    tokenizer = BatchTokenizer(store_dict=tmp_path / name)
    tokenizer.train(TEXT, 270)
    assert ChunkCounts.load(tmp_path / name) == ChunkCounts.count(TEXT)
    again = BatchTokenizer()
    again.train(tmp_path / name, 270)
    assert again.merges == tokenizer.merges


def test_store_dict_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    BatchTokenizer(store_dict=True).train(TEXT, 270)
    (file,) = tmp_path.iterdir()
    assert file.name.endswith("-dataset-dict.csv")
    assert ChunkCounts.load(file) == ChunkCounts.count(TEXT)


def test_verbose(capfd: pytest.CaptureFixture[str]) -> None:
    sizes: list[int] = []
    tokenizer = BatchTokenizer()
    tokenizer.train(TEXT, 280, on_batch=lambda batch: sizes.append(batch.size))
    tokenizer.encode(TEXT)
    assert capfd.readouterr() == ("", "")
    tokenizer.train(TEXT, 280, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == len(sizes)
    assert lines[0].startswith(f"batch 1: merged {sizes[0]} of ")
    assert " 0 merges remaining" in lines[-1]


def test_threads_do_not_change_merges(library: list[str]) -> None:
    merges = []
    for multiprocess in (False, True):
        tokenizer = BatchTokenizer(multiprocess=multiprocess)
        tokenizer.train(iter(library[:100]), 600)
        merges.append(tokenizer.merges)
    assert merges[0] == merges[1]


def test_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    tokenizer = BatchTokenizer()
    tokenizer.train(datasets.Dataset.from_dict({"body": [TEXT]}), 280, text_column="body")
    other = BatchTokenizer()
    other.train(datasets.IterableDataset.from_generator(lambda: iter([{"text": TEXT}])), 280)
    assert tokenizer.merges == other.merges == Tokenizer.train(TEXT, 280).merges
