"""`verify`: exports are equal in every engine, and each kind of damage is found and explained."""

import base64
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from helpers import END, TEXT, run

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.analysis.display import quoted_token
from batchbpe.choices import EngineName
from batchbpe.errors import ArgumentError, DataError
from batchbpe.patterns import Split
from batchbpe.verification import Verification, engines, verify
from batchbpe.verification.compare import shortened
from batchbpe.verification.texts import PIECE, pieces

NUMBERS = " ".join(str(n) for n in range(0, 5000, 7)) + " café naïve é" * 9
TOKENIZER = Tokenizer.train(f"{TEXT} {NUMBERS}" * 2, 700, special_tokens=[END, "<|pad|>"])
NOT_RUN = "not run: the folder or its config.json has code that batchbpe did not write"
NFC = Tokenizer.train(f"{TEXT} {NUMBERS}", 600, normalization="NFC", pattern="qwen2")


LAST = max(token for token in TOKENIZER.merges.values() if TOKENIZER.vocab[token].isascii())


def remove_merge(fields: Any) -> None:
    fields["model"]["merges"].pop([*TOKENIZER.merges.values()].index(LAST))


def results(verification: Verification) -> dict[str, str]:
    return {result.engine: result.status for result in verification.results}


def only_difference(verification: Verification) -> tuple[str, str, str]:
    (result,) = verification.differences
    assert not verification.ok and result.difference is not None
    return result.engine, result.difference.kind, result.difference.cause


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    TOKENIZER.export(tmp_path / "folder", "transformers")
    return tmp_path / "folder"


def change(path: Path, edit: Callable[[Any], object]) -> None:
    fields = json.loads(path.read_text("utf-8"))
    edit(fields)
    path.write_text(json.dumps(fields), "utf-8")


@pytest.mark.parametrize("tokenizer", [TOKENIZER, NFC], ids=["plain", "NFC"])
def test_exports_are_equal(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.export(tmp_path / "mine.model", "batchbpe")
    tokenizer.export(tmp_path / "folder", "transformers")
    tokenizer.export(tmp_path / "tokenizer.json", "huggingface")
    paths = [tmp_path / "mine.model", tmp_path / "folder", tmp_path / "tokenizer.json"]
    if tokenizer is TOKENIZER:
        for format in ("tiktoken", "minbpe", "batchbpe-v1"):
            tokenizer.export(tmp_path / f"{format}.bin", format)
            paths.append(tmp_path / f"{format}.bin")
    found = verify(
        paths,
        texts=["Some text. " * 20_000, NUMBERS],
        against={"batchbpe", "tokenizers", "transformers"} | ({"tiktoken"} if tokenizer is TOKENIZER else set()),
    )
    assert found.ok and {result.status for result in found.results} == {"equal"}, found
    compared = [(result.engine, Path(result.file).name) for result in found.results]
    assert compared.count(("transformers", "folder")) == 2, "without and with the code in the folder"
    assert {("tokenizers", "folder"), ("tokenizers", "tokenizer.json"), ("test file", "tokenizer.test.json")} <= {
        *compared
    }
    assert ("batchbpe", "mine.model") not in compared, "it is the reference"
    assert all(result.texts > 700 and result.tokens for result in found.results if result.engine != "test file")
    assert found.vocab_size == tokenizer.vocab_size and not found.notes
    assert "give the ids of batchbpe for all " in found.conclusion


def test_a_folder_with_its_own_class(tmp_path: Path) -> None:
    stop_words = Tokenizer.train(TEXT, 600, stop_list_size=20)
    stop_words.export(tmp_path / "folder", "transformers")
    found = verify(tmp_path / "folder")
    assert [each.status for each in found.results if "True" in each.detail] == ["equal"]


def test_other_code_is_not_run(folder: Path) -> None:
    (folder / "tokenization_fast.py").write_text("raise SystemExit('run')")
    found = verify(folder, against=["transformers"])
    assert [each.status for each in found.results] == ["equal", "equal", "cannot load"]
    assert found.results[-1].reason == NOT_RUN and not found.ok


@pytest.mark.parametrize(
    "name, fields",
    [
        ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": [None, "other--code.Code"]}}),
        ("tokenizer_config.json", {"auto_map": [None, "other--code.Code"]}),
        ("config.json", {"auto_map": {"AutoConfig": "other--code.Code"}}),
        ("config.json", {"configuration_files": ["config.1.0.0.json"]}),
    ],
)
@pytest.mark.parametrize("is_inside", [True, False])
def test_code_elsewhere_is_not_run(name: str, fields: Any, is_inside: bool, folder: Path, tmp_path: Path) -> None:
    """The name of a class can contain a folder or a repository, and a config.json can name one."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "code.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')")
    fields = json.loads(json.dumps(fields).replace("other--", f"{tmp_path / 'other'}--"))
    (folder / "config.1.0.0.json").write_text(json.dumps({"auto_map": {"AutoConfig": f"{tmp_path / 'other'}--code.C"}}))
    config = folder / "config.json" if is_inside else tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "new", "vocab_size": 700}))
    change(folder / name if is_inside or name != "config.json" else config, lambda content: content.update(fields))
    found = verify(folder, against=["transformers"], config=None if is_inside else config)
    assert not (tmp_path / "was_run").exists()
    assert found.results[-1].reason == NOT_RUN and not found.ok


def test_a_changed_pattern(folder: Path) -> None:
    def edit(fields: Any) -> None:
        split = fields["pre_tokenizer"]["pretokenizers"][0]
        split["pattern"] = {"Regex": split["pattern"]["Regex"].replace(r"\p{N}{1,3}", r"\p{N}")}

    change(folder / "tokenizer.json", edit)
    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    engine, kind, cause = only_difference(verify([folder.parent / "mine.model", folder], against=["tokenizers"]))
    assert (engine, kind) == ("tokenizers", "pattern")
    assert re.fullmatch(r"tokenizers cuts the chunk '\d+'\. It splits text like the pattern .*\.", cause)
    assert "qwen2" in cause or "cl100k-1digit" in cause


def test_a_pattern_that_splits_less(tmp_path: Path) -> None:
    """A token of the engine crosses one of our chunks."""
    merges = dict(TOKENIZER.merges) | {(ord("a"), ord(",")): 900}
    Tokenizer(Model(PATTERNS["gpt2"], merges)).export(tmp_path / "one.model", "batchbpe")
    Tokenizer(Model(r"[^\n]+|\n", merges)).export(tmp_path / "other.json", "huggingface")
    found = verify([tmp_path / "one.model", tmp_path / "other.json"], against=["tokenizers"])
    result = found.differences[-1]  # the first is that of the test file
    assert (
        result.difference
        and result.difference.kind == "pattern"
        and "crosses the end of the chunk" in result.difference.cause
    )


def test_a_dropped_normalizer(tmp_path: Path) -> None:
    NFC.export(tmp_path / "folder", "transformers")
    NFC.export(tmp_path / "mine.model", "batchbpe")
    change(tmp_path / "folder" / "tokenizer.json", lambda fields: fields.update(normalizer=None))
    found = verify([tmp_path / "mine.model", tmp_path / "folder"], against=["tokenizers"])
    assert only_difference(found) == ("tokenizers", "normalization", "tokenizers does not normalize text to NFC.")
    assert found.differences[0].difference and found.differences[0].difference.text in ("e\u0301", "A\u030a")


def test_an_added_normalizer(folder: Path) -> None:
    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    change(folder / "tokenizer.json", lambda fields: fields.update(normalizer={"type": "Lowercase"}))
    found = verify([folder.parent / "mine.model", folder], against=["tokenizers"])
    cause = "tokenizers converts text to lower case, and batchbpe does not."
    assert only_difference(found) == ("tokenizers", "normalization", cause)


def test_a_removed_merge(folder: Path) -> None:
    """Each token is a text, so a single merge is missed."""
    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    change(folder / "tokenizer.json", remove_merge)
    found = verify([folder.parent / "mine.model", folder], against=["tokenizers"])
    engine, kind, cause = only_difference(found)
    assert (engine, kind) == ("tokenizers", "merges") and cause.startswith("The merges of the chunk '")
    difference = found.differences[0].difference
    assert difference and len(difference.ours) == 1 and len(difference.theirs) == 2
    assert difference.ours[0].id == LAST


def test_a_removed_special_token(folder: Path) -> None:
    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    change(folder / "tokenizer.json", lambda fields: fields["added_tokens"].pop(0))
    found = verify([folder.parent / "mine.model", folder], against=["tokenizers"])
    engine, kind, cause = only_difference(found)
    assert (engine, kind) == ("tokenizers", "special token")
    assert cause.startswith(f"The special token '{END}' has the id 698, which ")


def test_moved_ids(folder: Path) -> None:
    def swap(fields: Any) -> None:
        vocab = fields["model"]["vocab"]
        vocab["a"], vocab["b"] = vocab["b"], vocab["a"]

    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    change(folder / "tokenizer.json", swap)
    engine, kind, cause = only_difference(verify([folder.parent / "mine.model", folder], against=["tokenizers"]))
    assert (engine, kind, cause) == (
        "tokenizers",
        "ids",
        "The token 'a' has the id 97 in batchbpe and 98 in tokenizers.",
    )


def test_a_missing_token(tmp_path: Path) -> None:
    TOKENIZER.export(tmp_path / "mine.model", "batchbpe")
    TOKENIZER.export(tmp_path / "mine.tiktoken", "tiktoken")
    lines = (tmp_path / "mine.tiktoken").read_text().splitlines()
    token = base64.b64decode(lines[-1].split()[0])
    (tmp_path / "mine.tiktoken").write_text("\n".join(lines[:-1]) + "\n")
    found = verify([tmp_path / "mine.model", tmp_path / "mine.tiktoken"], against=["tiktoken"])
    engine, kind, cause = only_difference(found)
    assert (engine, kind) == ("tiktoken", "missing token")
    assert cause == f"tiktoken has no token with the id {len(lines) - 1}, {quoted_token(token)}."


def test_a_class_that_transformers_replaces(folder: Path, tmp_path: Path) -> None:
    """Next to a config.json of this type, and without `auto_map`, transformers has another pattern."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "qwen2", "vocab_size": 700}))
    assert verify(folder, config=config, against=["transformers"]).ok
    change(folder / "tokenizer_config.json", lambda fields: fields.pop("auto_map"))
    (folder / "tokenization_fast.py").unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert verify(folder, against=["transformers"]).ok, "without a config.json"
    engine, kind, cause = only_difference(verify(folder, config=config, against=["transformers"]))
    assert (engine, kind) == ("transformers", "pattern") and "qwen2" in cause and "cuts the chunk" in cause
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    shutil.copy(config, folder)
    assert not verify(folder, against=["transformers"]).ok


def test_decoding(folder: Path) -> None:
    TOKENIZER.export(folder.parent / "mine.model", "batchbpe")
    change(folder / "tokenizer.json", lambda fields: fields.update(decoder=None))
    found = verify([folder.parent / "mine.model", folder], against=["tokenizers"])
    engine, kind, cause = only_difference(found)
    assert (engine, kind) == ("tokenizers", "decoding") and cause.startswith(
        "The ids are equal, but tokenizers decodes"
    )
    assert "decoded differently" in found.differences[0].summary


def test_an_engine_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(export: engines.Export) -> engines.Loaded:
        def encode(texts: list[str]) -> list[list[int]]:
            if any("7" in text for text in texts):
                raise BaseException("panicked at 7")
            return TOKENIZER.encode_batch(texts, "all")

        return engines.Loaded(encode, TOKENIZER.decode, TOKENIZER.vocab.get, TOKENIZER.vocab_size)

    failing = engines.Engine("tokenizers", "tokenizers", "", lambda _: True, load)
    monkeypatch.setattr("batchbpe.verification.ENGINES", (failing,))
    found = verify(folder)
    assert only_difference(found) == ("tokenizers", "error", "tokenizers raises an error: panicked at 7")
    assert found.differences[0].difference and found.differences[0].difference.text == "7"


def test_a_test_file(folder: Path, tmp_path: Path) -> None:
    golden = folder / "tokenizer.test.json"
    assert results(verify(folder, against=["tokenizers"]))["test file"] == "equal"
    TOKENIZER.save(tmp_path / "mine")
    assert results(verify([tmp_path / "mine.model", golden]))["test file"] == "equal"
    golden.write_text(golden.read_text().replace('{"text":"a","ids":[97]}', '{"text":"a","ids":[98]}'))
    engine, kind, cause = only_difference(verify([tmp_path / "mine.model", golden]))
    assert (engine, kind) == ("test file", "test file") and "of this model, but its ids differ" in cause
    NFC.save(tmp_path / "other")
    _, _, cause = only_difference(verify([tmp_path / "other.model", golden]))
    assert "is not the one that was exported" in cause
    golden.write_text("{")
    found = verify([tmp_path / "mine.model", golden])
    assert found.failed and "invalid JSON" in found.failed[0].reason and not found.ok


def test_engines_that_are_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines.Engine, "version", property(lambda self: "1" if self.name == "batchbpe" else None))
    found = verify(folder)
    assert results(found)["tokenizers"] == "not installed" and found.ok
    assert found.conclusion.startswith("Nothing was compared with another engine")
    assert verify(folder, against=iter([])) == found, "an empty iterator is true"
    message = r"^against must be an engine that is installed, got 'tokenizers'; run pip install tokenizers$"
    with pytest.raises(ArgumentError, match=message):
        verify(folder, against=["tokenizers"])


@pytest.mark.parametrize(
    "config, problem, note",
    [
        ({"vocab_size": 700}, "", ""),
        ({"text_config": {"vocab_size": 700}}, "", ""),
        ({"vocab_size": 600}, "vocab_size is 600, but the largest id is 699; resize the embeddings", ""),
        ({"text_config": {"vocab_size": 600}}, "text_config.vocab_size is 600, but", ""),
        ({"vocab_size": 768}, "", "vocab_size is 768, so 68 rows of the embeddings are not used"),
        (
            {"vocab_size": 700, "eos_token_id": 3},
            "",
            rf"eos_token_id is 3 ('\x03'), but the eos token of the tokenizer is 698 ('{END}')",
        ),
        ({"vocab_size": 700, "eos_token_id": [3, 698], "pad_token_id": 699}, "", ""),
        (
            {"vocab_size": 700, "pad_token_id": 1000},
            "",
            "pad_token_id is 1000, which is not the id of a token; correct it",
        ),
        ({"vocab_size": 700, "eos_token_id": [698, 700]}, "eos_token_id is 700, which is not the id of a token", ""),
        ({"vocab_size": 700, "bos_token_id": {"a": 1}}, "bos_token_id is {'a': 1}, which is not the id of a token", ""),
    ],
)
def test_configurations(config: Any, problem: str, note: str, folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    found = verify(folder, against=["tokenizers"])
    assert found.ok == (not problem)
    assert [problem in each for each in found.problems] == [True] * bool(problem)
    assert [note in each for each in found.notes] == [True] * bool(note), found.notes


@pytest.mark.parametrize(
    "content, message",
    [
        ("{}", "config.json: there is no vocab_size; pass the config.json of the model"),
        ("[]", "there is no vocab_size"),
        ("{", "not a valid config.json: invalid JSON"),
        ('{"vocab_size": "700"}', "field \"vocab_size\": must be an integer, got '700'"),
    ],
)
def test_unusable_configurations(content: str, message: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(DataError, match=re.escape(message)):
        verify(folder, config=tmp_path / "config.json", against=["tokenizers"])


def test_bad_input(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a tokenizer")
    with pytest.raises(FileNotFoundError, match="model file not found"):
        verify(tmp_path / "nowhere.model")
    with pytest.raises(FileNotFoundError, match="model file not found"):
        verify([folder, tmp_path / "nowhere.model"])
    for paths in ([tmp_path / "notes.txt"], [folder, tmp_path / "notes.txt"]):
        with pytest.raises(DataError, match=r"notes.txt: not a model file in any of the formats"):
            verify(paths)
    with pytest.raises(ArgumentError, match=r"against must be one of batchbpe, tokenizers, .*, got 'nothing'"):
        verify(folder, against=["nothing"])
    with pytest.raises(ArgumentError, match=r"must be an engine that reads one of the files, got 'tiktoken'; it reads"):
        verify(folder, against=["tiktoken"])
    with pytest.raises(ArgumentError, match="paths must contain at least one path"):
        verify([])
    with pytest.raises(ArgumentError, match="paths must contain each path once"):
        verify([folder, folder])
    with pytest.raises(ArgumentError, match="paths must start with a tokenizer"):
        verify(folder / "tokenizer.test.json")
    with pytest.raises(FileNotFoundError):
        verify(folder, data=tmp_path / "nowhere.txt")
    with pytest.raises(TypeError, match="unexpected keyword"):
        verify(folder, nothing=3)  # type: ignore[call-arg]


def test_a_file_that_one_engine_cannot_load(folder: Path, tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "mine")
    (folder / "tokenizer.json").write_text('{"model": {"type": "BPE"}}')
    found = verify([tmp_path / "mine.model", folder], against=["tokenizers", "batchbpe"])
    assert results(found) | {"test file": ""} == {
        "tokenizers": "cannot load",
        "batchbpe": "cannot load",
        "test file": "",
    }
    assert not found.ok and found.problems == [f"{folder}: no engine could load it"]


def test_rank_files_use_the_pattern_of_the_reference(tmp_path: Path) -> None:
    TOKENIZER.export(tmp_path / "mine.tiktoken", "tiktoken")
    TOKENIZER.save(tmp_path / "mine")
    assert results(verify([tmp_path / "mine.model", tmp_path / "mine.tiktoken"]))["tiktoken"] == "equal"
    assert verify(tmp_path / "mine.tiktoken", against=["tiktoken"]).ok, "with those of its test file"
    assert verify(tmp_path / "mine.tiktoken", against=["tiktoken"], pattern="gpt4").ok
    (tmp_path / "mine.tiktoken.test.json").unlink()
    with pytest.raises(DataError, match="rank files do not store their pattern"):
        verify(tmp_path / "mine.tiktoken")
    plain = Tokenizer.train(TEXT, 400)
    plain.export(tmp_path / "plain.tiktoken", "tiktoken")
    assert verify(tmp_path / "plain.tiktoken", pattern="gpt4", against=["tiktoken"]).ok
    phrases = Tokenizer(Model(Split.of("gpt4"), {(32, 98): 256}, phrases={(97, 256): 257}))
    phrases.export(tmp_path / "phrases.tiktoken", "tiktoken")
    assert verify(tmp_path / "phrases.tiktoken", against=["tiktoken"], texts=["a b a b"]).ok


def test_texts() -> None:
    assert shortened("to be or not to be", lambda text: text.count("o") > 1) == "oo"
    text = "word\n" * 30_000 + "x" * 2 * PIECE
    assert "".join(pieces(text)) == text and max(map(len, pieces(text))) <= PIECE
    assert all(piece.endswith("\n") or "\n" not in piece[-PIECE // 2 :] for piece in pieces(text))


def test_data_is_compared(folder: Path, tmp_path: Path) -> None:
    """A difference that only the data has is found."""
    TOKENIZER.export(tmp_path / "mine.model", "batchbpe")

    def edit(fields: Any) -> None:
        replace = {"type": "Replace", "pattern": {"String": "zebra zebra"}, "content": "horse"}
        fields.update(normalizer=replace)

    change(folder / "tokenizer.json", edit)
    paths = [tmp_path / "mine.model", folder]
    assert verify(paths, against=["tokenizers"]).ok
    (tmp_path / "data.txt").write_text("line\n" * 50_000 + "a zebra zebra ran\n" + "line\n" * 10)
    found = verify(paths, against=["tokenizers"], data=tmp_path / "data.txt")
    assert found.differences[0].different == 1 and found.differences[0].difference
    assert found.differences[0].difference.text == "zebra zebra"
    assert verify(paths, against=["tokenizers"], data=tmp_path / "data.txt", limit_bytes=1000).ok
    with pytest.raises(DataError, match="chunk counts, which have no documents to encode; pass the texts as a list"):
        verify(paths, against=["tokenizers"], data={"a": 3})


def test_the_command(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run("verify folder --against tokenizers --against transformers")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert re.match(r"engine +version +file +texts +tokens +result", lines[0]) and lines[1].endswith("reference")
    assert "tokenizers, transformers give the ids of batchbpe" in lines[-1]
    TOKENIZER.save("mine")
    change(folder / "tokenizer.json", remove_merge)
    found = run("verify mine.model folder --against tokenizers")
    assert found.exit_code == 1
    assert re.search(
        r"\d+ of [\d,]+ texts differs?; the first, shortened:\n  text +'.*'\n  reference +'.*' \d+\n", found.stdout
    )
    assert "\n  cause       merges: The merges of the chunk " in found.stdout
    found = run("verify mine.model folder --against tokenizers --json")
    fields = json.loads(found.stdout)
    assert found.exit_code == 1 and not fields["ok"]
    assert [each["status"] for each in fields["results"]] == ["equal", "different"]
    assert fields["results"][1]["difference"]["kind"] == "merges" and fields["results"][1]["different"] >= 1


def test_printed_differences(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test file and a second file of batchbpe have separate rows, and only some texts are shortened."""
    monkeypatch.chdir(tmp_path)
    TOKENIZER.save("mine")
    golden = folder / "tokenizer.test.json"
    golden.write_text(golden.read_text().replace('{"text":"a","ids":[97]}', '{"text":"a","ids":[98]}'))
    cause = "test file: One of them has been changed: the test file is of this model, but its ids differ."
    rows = {"text": "'a'", "reference": "'a' 97", "test file": "'b' 98", "cause": cause}
    header, printed = _printed(run("verify mine.model folder/tokenizer.test.json").stdout)
    assert re.fullmatch(r"test file, folder/tokenizer.test.json: 1 of \d+ texts differs; the shortest:", header)
    assert printed == rows
    golden.unlink()
    change(folder / "tokenizer.json", remove_merge)
    header, rows = _printed(run("verify mine.model folder --against batchbpe").stdout)
    assert header.startswith("batchbpe ") and header.endswith("differ; the first, shortened:")
    assert [*rows] == ["text", "reference", "batchbpe", "cause"] and rows["reference"].count("|") == 0
    TOKENIZER.export("folder", "transformers")
    golden.unlink()
    change(folder / "tokenizer.json", lambda fields: fields.update(decoder=None))
    header, rows = _printed(run("verify mine.model folder --against tokenizers").stdout)
    assert header.endswith("are decoded differently; the shortest:") and [*rows] == ["text", "tokens", "cause"]
    assert rows["cause"].startswith("decoding: The ids are equal, but")


def _printed(output: str) -> tuple[str, dict[str, str]]:
    """Return the header and the rows of the first difference."""
    header, *rows = output.split("\n\n")[1].splitlines()
    parts = (re.match(r"  (\w+(?: \w+)*) {2,}(.*)", row) for row in rows)
    return header, {part[1]: part[2] for part in parts if part}


@pytest.mark.parametrize(
    "command, code, message",
    [
        ("verify", 2, "Missing argument"),
        ("verify nowhere.model", 1, "model file not found: nowhere.model"),
        ("verify folder --against nothing", 2, "must be one of 'batchbpe', 'tokenizers'"),
        ("verify folder --against tiktoken", 2, "must be an engine that reads one of the files, got 'tiktoken'"),
        ("verify folder --limit-bytes 10", 2, "options for reading documents need --data"),
        ("verify folder --config nowhere.json", 1, "nowhere.json"),
        ("verify folder --data nowhere.txt", 1, "nowhere.txt"),
    ],
)
def test_command_errors(command: str, code: int, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    found = run(command)
    assert found.exit_code == code and message in found.stderr


def test_the_command_knows_the_engines() -> None:
    assert get_args(EngineName) == tuple(dict.fromkeys(engine.name for engine in engines.ENGINES))


def test_a_changed_tokenizer_is_noticed(folder: Path) -> None:
    """Even if the texts of the test file have the same ids."""
    assert not verify(folder, against=["tokenizers"]).notes
    path = folder / "tokenizer.test.json"
    path.write_text(re.sub(r'("model": ")\w', r"\g<1>x", path.read_text()))
    (note,) = verify(folder, against=["tokenizers"]).notes
    assert "tokenizer.test.json: the tokenizer is not the one that was exported (x" in note


def test_configurations_are_checked_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.json").write_text("{")
    found = verify(folder, against=["tokenizers"])
    assert not found.ok and "config.json: not a valid config.json" in found.problems[0]
    assert "do not fit together" in found.conclusion
    monkeypatch.setattr("batchbpe.verification._compare", lambda *_: pytest.fail("compared"))
    with pytest.raises(DataError, match=r"not a valid config\.json"):
        verify(folder, config=folder / "config.json", against=["tokenizers"])


def test_invalid_utf8_in_the_data(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a line\n" * 1_000_000 + b"\xff")
    with pytest.raises(DataError, match=r"a.txt: invalid UTF-8 at byte 7000000 of the text; errors=\"replace\""):
        verify(folder, files=tmp_path / "a.txt", against=["tokenizers"])
    assert verify(folder, files=tmp_path / "a.txt", against=["tokenizers"], errors="replace", limit_bytes=9999).ok
