"""Each metric on a case computed by hand or by another program."""

import json
import re
from math import log
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from batchbpe import BatchTokenizer, ChunkCounts, Tokenizer, analysis
from batchbpe.analysis import EvaluationTable, audit, evaluate, gini, inspect_counts, parity, renyi_entropy
from batchbpe.analysis.counted_text import CountedText
from batchbpe.analysis.evaluator import encodes_chunks, evaluate_text
from batchbpe.analysis.inspection import training_log
from batchbpe.cli import app
from batchbpe.data.documents import Counts
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError

# One merge: " a" is token 256.
ONE = Tokenizer.train([" a a a a a"], 257)
BYTES = Tokenizer.train([" a a a a a"], 256)


def audited(*data, **options):
    return evaluate({"one": ONE}, *data, audit=True, **options).audits["one"]


@pytest.fixture
def result():
    """`a a a b` is a, " a", " a", " " and b."""
    return evaluate({"one": ONE, "bytes": BYTES}, "a a a b")


def test_lengths(result):
    one, plain = result
    assert (one.tokens, plain.tokens, one.bytes, one.characters, one.words) == (5, 7, 7, 7, 4)
    assert (one.bytes_per_token, one.characters_per_token, one.tokens_per_word) == (7 / 5, 7 / 5, 5 / 4)
    assert one.normalized_length(plain) == 5 / 7
    assert one.change(plain) == pytest.approx(100 * (5 - 7) / 7)


def test_words_of_one_token(result):
    assert [it.single_token_word_rate for it in result] == [3 / 4, 0]


def test_use_of_the_vocabulary(result):
    one, _ = result
    assert one.frequencies[[97, 256, 32, 98]].tolist() == [1, 2, 1, 1] and one.frequencies.sum() == 5
    assert one.vocabulary_used == 4
    assert one.average_rank == pytest.approx((2 * 1 + 2 + 3 + 4) / 5)
    assert one.shannon_efficiency == pytest.approx((0.4 * log(2.5) + 0.6 * log(5)) / log(257))
    assert one.renyi_efficiency == pytest.approx(log(0.4**2.5 + 3 * 0.2**2.5) / -1.5 / log(257))


@pytest.mark.parametrize(
    ("counts", "score"), [([3, 2, 1, 1], 0.8031528501359657), ([3, 3, 2, 2, 1], 0.9105681923824472)]
)
def test_entropy_equals_that_of_tokenization_scorer(counts, score):
    # The two examples in its README, which use its default order of 3 and the tokens that occur in the text.
    assert renyi_entropy(np.array(counts) / sum(counts), 3) / log(len(counts)) == pytest.approx(score)


def test_characters_are_not_bytes():
    (it,) = evaluate({"bytes": BYTES}, "é ☃")
    assert (it.bytes, it.characters, it.words, it.tokens) == (6, 3, 2, 6)


def test_frequencies_equal_those_of_the_encoded_text():
    text = Path(json.__file__).read_text(encoding="utf-8") + "né ☃"
    tokenizers = {
        "stop words": Tokenizer.train(text, 600, stop_list_size=20),
        "another pattern": Tokenizer.train(text, 500, pattern="gpt2"),
        "own pattern": Tokenizer.train(text, 400, pattern=r"(?s)[a-z]+|."),
    }
    for it in evaluate(tokenizers, text):
        ids = tokenizers[it.name].encode_to_numpy(text, "none")
        assert it.frequencies.tolist() == np.bincount(ids, minlength=tokenizers[it.name].n_vocab).tolist(), it.name
        assert (it.bytes, it.characters, it.words) == (len(text.encode()), len(text), len(text.split()))


def test_text_dropped_by_a_pattern_is_part_of_the_text():
    letters = Tokenizer.train("tobe", 256, pattern="[a-z]+")
    with pytest.warns(UserWarning, match="does not match 1 byte"):
        (it,) = evaluate({"letters": letters}, "to be")
    assert (it.tokens, it.bytes) == (4, 5)


def test_counts_instead_of_a_text():
    counts = ChunkCounts.count("a a a b")
    it = evaluate_text("one", ONE, CountedText.from_counts(counts))
    assert (it.tokens, it.bytes, it.characters) == (5, 7, 7)
    assert it.words is it.tokens_per_word is it.single_token_word_rate is None
    with pytest.raises(ValueError, match="for chunk counts, which contain no words"):
        it.cost("word")
    other = Tokenizer.train("a", 256, pattern="gpt2")
    with pytest.raises(ValueError, match="not counted with the pattern of other"):
        evaluate_text("other", other, CountedText.from_counts(counts))
    with pytest.raises(DataError, match="cannot be encoded by a tokenizer with the pattern gpt2"):
        CountedText(["gpt2"]).add(Counts(counts))


def test_public_names():
    for name in analysis.__all__:
        assert getattr(analysis, name).__class__ is not ModuleType, name
    assert set(analysis.__all__) <= set(dir(analysis))
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        analysis.absent  # noqa: B018


class Lower(Tokenizer):
    """A tokenizer that overrides `encode`."""

    def encode(self, text, *args, **options):
        return super().encode(text.lower(), *args, **options)


class Same(Tokenizer):
    """A tokenizer that overrides `encode` with the same result."""

    def encode(self, text, *args, **options):
        return super().encode(text, *args, **options)


def test_an_overridden_encode_is_called():
    text = Path(json.__file__).read_text(encoding="utf-8") + "né ☃"
    model = Tokenizer.train(text, 600, stop_list_size=20).model
    quick = BatchTokenizer()
    quick.tokenizer = Tokenizer(model)
    assert encodes_chunks(quick.tokenizer) and not encodes_chunks(Same(model))
    results = evaluate({"core": Tokenizer(model), "held": quick, "same": Same(model), "lower": Lower(model)}, text)
    core, held, same, lower = results
    for other in (held, same):
        assert other.metrics(other) == core.metrics(core)
        assert other.frequencies.tolist()[:600] == core.frequencies.tolist()
    assert lower.frequencies[ord("N")] == 0 and lower.tokens == len(Tokenizer(model).encode(text.lower()))
    patched = Tokenizer(model)
    patched.encode = lambda text: [1, 2]
    assert evaluate({"patched": patched}, ["to be", "or not"])[0].tokens == 4


def test_any_object_that_encodes():
    split = SimpleNamespace(encode=lambda text: [len(word) for word in text.split()])
    results = evaluate({"tiktoken": BYTES.to_tiktoken(), "split": split, "ours": BYTES}, ["é ☃", "to be"])
    assert [each.tokens for each in results] == [11, 4, 11]
    assert [each.vocab_size for each in results] == [256, 2, 256]
    assert results[1].single_token_word_rate == 1 and {each.characters for each in results} == {8}
    assert evaluate({"split": split}, "é ☃")[0].characters == 3
    assert evaluate({"split": split}, ["a\ud800b"], errors="replace")[0].tokens == 1
    for wrong in ("ab", [-1], [1 << 40], [[1]], None, [1.5]):
        with pytest.raises(ArgumentTypeError, match="must return a list of ids"):
            evaluate({"wrong": SimpleNamespace(encode=lambda text, ids=wrong: ids)}, "to be")
    with pytest.raises(DataError, match="cannot be encoded by 'split', which encodes documents"):
        evaluate({"split": split}, ChunkCounts.count("to be"))
    with pytest.raises(ArgumentTypeError, match="must contain objects with a method encode"):
        evaluate({"number": 7}, "to be")
    with pytest.raises(ArgumentTypeError, match="tokenizers must be a tokenizer, its path, or a list or dict of these"):
        evaluate(7, "to be")
    with pytest.raises(ArgumentError, match="at least one tokenizer"):
        evaluate({}, "to be")
    with pytest.raises(ArgumentError, match='errors must be "strict" or "replace", got \'ignore\''):
        evaluate({"bytes": BYTES}, "to be", errors="ignore")


def test_any_data(tmp_path):
    text = "a a a b"
    (tmp_path / "a.txt").write_text(text)
    pq.write_table(pa.table({"body": [text]}), tmp_path / "a.parquet")
    ChunkCounts.count(text).save(tmp_path / "counts.csv")
    counts = ChunkCounts.count(text)
    same = Same(ONE.model)
    for data in (text, [text], iter([text]), tmp_path / "a.txt", str(tmp_path / "*.txt"), pa.array([text])):
        data = list(data) if not isinstance(data, str | list | Path | pa.Array) else data
        assert [each.tokens for each in evaluate({"one": ONE, "same": same}, data)] == [5, 5], data
    assert evaluate({"one": ONE}, tmp_path / "a.parquet", text_column="body")[0].tokens == 5
    for data in (counts, dict(counts), tmp_path / "counts.csv", [counts], [{"a": 1, " a": 2}, {" b": 1}]):
        (it,) = evaluate({"one": ONE}, data)
        assert (it.tokens, it.words) == (5, None), data
    (it,) = evaluate({"one": ONE}, [counts, text])
    assert (it.tokens, it.words) == (10, None)
    assert audited(tmp_path / "a.txt") == audited(text)
    assert inspect_counts(tmp_path / "a.txt") == inspect_counts(counts) == inspect_counts([text])


def test_groups_of_any_data():
    texts = {"en": "a a a", "de": ["b b", "b"], "xx": ""}
    result = evaluate({"one": ONE, "bytes": BYTES}, texts).groups
    assert (result.reference_group, result.empty_groups, result.unit) == ("en", ["xx"], "character")
    assert result.tokenizers["one"].costs == {"de": 1, "en": 3 / 5}
    assert result.tokenizers["one"].parity == {"de": pytest.approx(5 / 3), "en": 1}
    assert result.tokenizers["bytes"].gini == 0
    assert result.metrics("bytes")["en"]["change"] == pytest.approx(100 * 2 / 3)
    table = pa.table({"text": ["a a a", "b b", "b"], "language": ["en", "de", "de"]})
    datasets = pytest.importorskip("datasets")
    for data in (table, table.to_batches()[0], datasets.Dataset(table)):
        assert evaluate({"one": ONE}, data, group_column="language").groups.metrics("one") == (
            evaluate({"one": ONE}, texts).groups.metrics("one")
        )
    with pytest.raises(
        DataError, match=r"no column 'script' among \['language', 'text'\]; choose one with group_column"
    ):
        evaluate({"one": ONE}, table, group_column="script")
    assert evaluate({"one": ONE}, "a a").groups is None
    with pytest.raises(ArgumentError, match="per must be one of 'text', 'byte', 'character', 'word', got 'line'"):
        evaluate({"one": ONE}, texts, per="line")
    with pytest.raises(ArgumentError, match="per must be 'text', 'byte' or 'character' for chunk counts"):
        evaluate({"one": ONE}, {"en": ChunkCounts.count("a a")}, per="word")


def test_tokenizers_of_any_kind(tmp_path):
    ONE.save(tmp_path / "one")
    path = tmp_path / "one.model"
    tiktoken, paper = BYTES.to_tiktoken(), BatchTokenizer()
    paper.tokenizer = BYTES
    tokenizers = pytest.importorskip("tokenizers")
    BYTES.export(tmp_path / "tokenizer.json", "huggingface")
    huggingface = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for given, names in (
        (ONE, ["batchbpe"]),
        (ONE.model, ["Model"]),
        (path, ["one.model"]),
        (str(path), ["one.model"]),
        ([path, tmp_path / "." / "one.model", str(path)], [str(path), f"{path} 2", f"{path} 3"]),
        ((each for each in (ONE, Same(ONE.model))), ["batchbpe", "batchbpe 2"]),
        ({"a": str(path), "b": ONE.model}, ["a", "b"]),
    ):
        result = evaluate(given, "a a a b")
        assert [each.name for each in result] == list(result.tokenizers) == names
        assert {each.tokens for each in result} == {5}
    result = evaluate([tiktoken, huggingface, paper], "a a a b")
    assert {each.tokens for each in result} == {7} and next(iter(result.tokenizers)) == tiktoken.name
    with pytest.raises(FileNotFoundError, match=r"model file not found: absent\.model"):
        evaluate("absent.model", "a a")
    with pytest.raises(ArgumentTypeError, match="must contain objects with a method encode"):
        evaluate([ONE, 7], "a a")
    for empty in ([], {}):
        with pytest.raises(ArgumentError, match="tokenizers must contain at least one tokenizer"):
            evaluate(empty, "a a")


def test_the_result_is_a_sequence(result):
    assert isinstance(result, EvaluationTable) and len(result) == 2
    assert result[0] is result["one"] is result[-2] and result[1:] == [result["bytes"]]
    assert [each.name for each in result] == ["one", "bytes"] and result.groups is None and result.audits == {}
    with pytest.raises(KeyError, match="no tokenizer 'two' among one, bytes"):
        result["two"]


def test_the_result_as_a_table(result):
    rows = [re.split(r"\s{2,}", line) for line in str(result).splitlines()]
    assert rows[0] == ["", "one", "bytes"] and "dropped" not in str(result)
    assert rows[1:4] == [
        ["vocabulary size", "257", "256"],
        ["tokens", "5", "7"],
        ["change in length, %", "0.0000", "40.0000"],
    ]
    assert repr(result) == str(result)
    page = result._repr_html_()
    assert "<th>" in page and "<td class=number>40.0000" in page
    escaped = evaluate({"<b>": ONE}, {"<i>": ["a"]})._repr_html_()
    assert "&lt;b&gt;" in escaped and "&lt;i&gt;" in escaped and "<b>" not in escaped and "<i>" not in escaped
    hostile = str(evaluate({"\x1b[31m": ONE, 7: ONE}, {"a\nb\ud800": ["a"]}))
    assert "\x1b" not in hostile and "\ud800" not in hostile and "a\ufffdb\ufffd" in hostile
    frame = pytest.importorskip("pandas") and result.to_pandas()
    assert frame.index.tolist() == ["one", "bytes"] and frame.loc["bytes", "change"] == 40
    counts = evaluate(ONE, ChunkCounts.count("a a")).to_pandas()
    assert counts["tokens_per_word"].dtype == float and counts["tokens_per_word"].isna().all()


def test_groups_and_audit_in_one_call():
    texts = {"en": "a a a", "de": ["b b", "b"], "zh": "生 存", "xx": ""}
    result = evaluate({"one": ONE, "bytes": BYTES}, texts, audit=True, parity="de")
    whole = evaluate({"one": ONE, "bytes": BYTES}, ["a a a", "b b", "b", "生 存"])
    for each, other in zip(result, whole, strict=True):
        assert each.metrics(each) == other.metrics(other)
        assert each.frequencies.tolist() == other.frequencies.tolist()
    assert result.audits["one"] == audit(ONE, frequencies=whole[0].frequencies) and list(result.audits) == [
        "one",
        "bytes",
    ]
    tables = [[re.split(r"\s{2,}", line) for line in table.splitlines()] for table in str(result).split("\n\n")]
    assert [table[0][0] for table in tables] == [
        "tokens per character", "parity (de = 1)", "tokens", "all groups", "audit of one", "audit of bytes"
    ]  # fmt: skip
    assert tables[0] == [  # cheapest first
        ["tokens per character", "one", "bytes"],
        ["en", "0.6000", "1.0000"],
        ["de", "1.0000", "1.0000"],
        ["zh", "2.3333", "2.3333"],
        ["Gini coefficient", "0.2938", "0.2051"],
    ]
    assert tables[1][1] == ["en", "0.6000", "1.0000"]
    frame = pytest.importorskip("pandas") and result.to_pandas()
    assert frame["tokens"].unstack("tokenizer").loc[["en", "de"]].to_numpy().tolist() == [[5, 3], [4, 4]]
    by_text = evaluate(ONE, texts, per="text")
    assert str(by_text).startswith("tokens            batchbpe\n") and "\nen                       3\n" in str(by_text)
    other = SimpleNamespace(encode=lambda text: [1])
    assert list(evaluate({"a": other, "one": ONE}, "a a", audit=True).audits) == ["one"]
    for options, problem in (
        ({"per": "word"}, "per needs groups, got 'word'; use a dict of groups, group_column or by_file"),
        ({"parity": "en"}, "parity needs groups, got 'en'"),
        ({"audit": True}, "audit needs a Tokenizer, since other objects have no known vocabulary, got True"),
    ):
        with pytest.raises(ArgumentError, match=problem):
            evaluate(other, "a a", **options)


def test_a_part_of_the_groups_encodes_other_tokens():
    """Frequencies of an encoder without a known vocabulary end at the highest id of each group."""
    lengths = SimpleNamespace(encode=lambda text: [len(word) for word in text.split()])
    (it,) = evaluate(lengths, {"a": "to be", "b": ["question"]})
    assert (it.tokens, it.vocab_size, np.flatnonzero(it.frequencies).tolist()) == (3, 2, [2, 8])
    (it,) = evaluate(ONE, {"a": "a a", "b": ChunkCounts.count("a a")})
    assert (it.tokens, it.words, it.single_token_words) == (4, None, None)


def test_figures(result):
    pytest.importorskip("matplotlib")
    (panel,) = result.plot().axes
    assert [bar.get_width() for bar in panel.patches] == [7 / 5, 1] and panel.get_xlabel() == "bytes per token"
    assert [label.get_text() for label in panel.get_yticklabels()] == ["one", "bytes"]
    grouped = evaluate({"one": ONE, "bytes": BYTES}, {"en": "a a a", "de": ["b b"], "xx": ""})
    (panel,) = grouped.plot().axes
    assert [line.get_xdata().tolist() for line in panel.lines] == [[3 / 5, 1], [1, 1]]
    assert panel.get_xlabel() == "tokens per character"
    assert grouped.plot("parity").axes[0].get_xlabel() == "parity (en = 1)"
    with pytest.raises(ArgumentError, match=r"metric must be one of vocab_size, tokens, .*, got 'size'"):
        result.plot("size")


def test_nothing_to_evaluate(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    for data in ("", [], ChunkCounts.count("")):
        with pytest.raises(DataError, match=r"no text found in .*; pass data that is not empty"):
            evaluate({"one": ONE}, data)
    with pytest.raises(DataError, match=r"no text found in .*empty\.txt; pass"):
        evaluate({"one": ONE}, files=tmp_path / "empty.txt")
    with pytest.raises(DataError, match=r"no text found in .*; raise sample or pass more data"):
        evaluate({"one": ONE}, ["a"], sample=1e-9)
    for groups in ({}, {"en": ""}):
        with pytest.raises(DataError, match=f"no text found in {groups}"):
            evaluate({"one": ONE}, texts=groups)


def test_texts_and_files(tmp_path):
    """Without the keywords, each string here would be interpreted as the other kind."""
    path = tmp_path / "a.txt"
    path.write_text("a a a b")
    tokenizers, name, other = {"one": ONE}, str(path), tmp_path / "other"
    other.write_text("b")
    assert evaluate(tokenizers, texts=name)[0].bytes == len(name)
    assert evaluate(tokenizers, files=[name, str(other)])[0].bytes == 8
    assert 256 not in audited(files=name).unused and 256 in audited(texts=name).unused
    assert inspect_counts(texts=name) != inspect_counts(files=iter([name])) == inspect_counts("a a a b")
    groups = evaluate(tokenizers, texts={"a": name, "b": ["b", "b"]}).groups
    assert {group: it.bytes for group, it in groups.tokenizers["one"].evaluations.items()} == {"a": len(name), "b": 2}
    for files, options in (({"a": name, "other": [other]}, {}), ([name, str(other)], {"by_file": True})):
        groups = evaluate(tokenizers, files=files, **options).groups
        assert {group: it.bytes for group, it in groups.tokenizers["one"].evaluations.items()} == {"a": 7, "other": 1}
    for wrong in ({"texts": {"a": "b"}}, {"files": {"a": name}}):
        with pytest.raises(ArgumentError, match="by_file must be omitted if the data is a dict of groups, got True"):
            evaluate(tokenizers, by_file=True, **wrong)
    for both in ({"data": {"a": "b"}, "texts": {"a": "b"}}, {"texts": {"a": "b"}, "files": {"a": name}}, {}):
        with pytest.raises(TypeError, match="pass exactly one of data, texts and files"):
            evaluate(tokenizers, **both)


def test_a_part_of_the_data(tmp_path):
    documents = [f"document {i}" for i in range(100)]
    (some,) = evaluate({"one": ONE}, documents, sample=0.5, seed=1)
    counted = ChunkCounts.count(documents, sample=0.5, seed=1)
    assert some.bytes == sum(len(chunk) * count for chunk, count in counted.items()) < len("".join(documents))
    assert evaluate({"one": ONE}, documents, limit_bytes=20)[0].bytes == 20
    texts = {"en": ["a a", "a a", "a"], "de": ["b b", "b b", "b b"]}
    for name, each in texts.items():
        (tmp_path / f"{name}.txt").write_text("".join(each))
    for groups in (
        evaluate({"one": ONE}, texts, limit_bytes=6).groups,
        evaluate({"one": ONE}, tmp_path, by_file=True, limit_bytes=6).groups,
    ):
        assert {group: it.bytes for group, it in groups.tokenizers["one"].evaluations.items()} == {"de": 6, "en": 6}
    assert evaluate({"one": ONE}, {"en": documents}, sample=0.5, seed=1).groups.metrics("one")["en"]["tokens"] == (
        some.tokens
    )
    table = pa.table({"text": ["a"], "language": ["en"]})
    for name, value in {"sample": 0.5, "limit_bytes": 3}.items():
        with pytest.raises(ArgumentError, match=f"{name} must be omitted with group_column, got {value}"):
            evaluate({"one": ONE}, table, group_column="language", **{name: value})


def test_groups():
    assert parity({"en": 0.2, "de": 0.3}) == {"en": 1.0, "de": pytest.approx(1.5)}
    assert parity({"en": 0.2, "de": 0.4}, "de") == {"en": 0.5, "de": 1.0}
    # Half of the mean difference over the mean, over all ordered pairs: (1 + 2 + 1) * 2 / 9 / 2 / 2.
    assert gini([1, 2, 3]) == pytest.approx(4 * 2 / 9 / 2 / 2)
    assert gini([5]) == gini([]) == gini([0, 0]) == 0


def test_audit():
    # "abab" merges ab, then abab; the stop word "ab" has the bytes of the first.
    tokenizer = Tokenizer.train(["abab" * 3, " ab", "ab", "ab", "ab", "ab", "é" * 4, "ô" * 2], 262, stop_list_size=1)
    assert tokenizer.stop_words == {"ab": 256}
    found = audit(tokenizer)
    names = {tokenizer.vocab[token]: token for token in tokenizer.merges.values()}
    assert found.duplicates == [256, names[b"ab"]]
    assert names[b"ab"] in found.unreachable and 256 not in found.unreachable
    assert found.unused is found.scaffolds is None
    assert found.longest[0] == max(tokenizer.vocab, key=lambda token: len(tokenizer.vocab[token]))
    frequencies = np.bincount(tokenizer.encode("abab"), minlength=tokenizer.n_vocab)
    used = audit(tokenizer, frequencies=frequencies)
    assert used == evaluate({"it": tokenizer}, ["abab"], audit=True).audits["it"]
    assert names[b"abab"] not in used.unused
    assert set(used.scaffolds) == {ord("a"), ord("b"), names[b"ab"]}


def test_audit_finds_parts_of_characters():
    snow = Tokenizer.train(["☃", "☄", "☂"], 257)
    partial = audit(snow).partial_utf8
    assert [snow.vocab[token] for token in partial] == [b"\xe2\x98"]


@pytest.fixture
def models(tmp_path):
    ONE.save(tmp_path / "one")
    BYTES.save(tmp_path / "bytes")
    return [str(tmp_path / "one.model"), str(tmp_path / "bytes.model")]


def run(*args, code=0):
    done = CliRunner().invoke(app, list(args))
    assert done.exit_code == code, done.output
    return done


def failed(*args):
    done = CliRunner().invoke(app, list(args))
    assert done.exit_code in (1, 2), done.output
    return done.stderr


def test_command(models, tmp_path):
    (tmp_path / "a.txt").write_text("a a a b")
    args = ["evaluate", *models, "--data", str(tmp_path / "a.txt"), "--audit"]
    shown = run(*args).stdout
    assert "tokens per word (fertility)" in shown and "audit of" in shown
    one, plain = json.loads(run(*args, "--json").stdout)
    assert (one["groups"]["all"]["tokens"], plain["groups"]["all"]["change"]) == (5, 40.0)
    assert 256 not in one["audit"]["unused"]


def test_groups_without_text(models, tmp_path):
    """They have no cost, so they have no parity."""
    for name, text in {"en": "a a a", "de": "b b b", "xx": "", "yy": "  "}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    args = ["evaluate", models[0], "--by-file", "--data", str(tmp_path / "*.txt"), "--per", "word"]
    done = run(*args, "--json")
    assert "group xx is omitted: it contains no text" in done.stderr
    (it,) = json.loads(done.stdout)
    assert {group: each["parity"] for group, each in it["groups"].items()} == {"en": 1, "de": 5 / 3, "yy": None}
    assert it["gini"] == pytest.approx(gini([3, 5]))
    assert "must be a group that contains text (de, en, yy), got 'xx'" in failed(*args, "--parity", "xx")
    assert "this one has no words or no tokens, got 'yy'" in failed(*args, "--parity", "yy")


def test_text_dropped_by_a_pattern_is_reported():
    letters = Tokenizer.train("a", 256, pattern=r"\w+")
    with pytest.warns(UserWarning, match="does not match 5 bytes"):
        plain, lossy = evaluate({"bytes": BYTES, "letters": letters}, "a, a - b")
    assert (plain.dropped, lossy.dropped) == (0, 5)
    assert (plain.bytes_per_token, lossy.bytes_per_token) == (1, 8 / 3)  # of the same text


@pytest.mark.filterwarnings("default")
def test_a_group_that_the_pattern_drops(tmp_path):
    Tokenizer.train("a", 256, pattern=r"\w+").save(tmp_path / "letters")
    for name, text in {"en": "a, a", "xx": "--"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    model, data = str(tmp_path / "letters.model"), ["--data", str(tmp_path / "*.txt")]
    done = run("evaluate", model, *data, "--by-file")
    cost, parities, tokens, dropped, _ = (table.splitlines() for table in done.stdout.split("\n\n"))
    assert cost[0].split() == ["tokens", "per", "character", "letters.model"]
    assert [row.split() for row in cost[1:3]] == [["en", "0.5000"], ["xx", "–"]]
    assert parities[0].split() == ["parity", "(en", "=", "1)", "letters.model"] and parities[2].split() == ["xx", "–"]
    assert tokens[2].split() == ["xx", "0"]
    assert dropped[0].split() == ["bytes", "dropped", "letters.model"] and dropped[2].split() == ["xx", "2"]
    assert "does not match 2 bytes" in done.stderr
    BYTES.save(tmp_path / "bytes")
    both = run("evaluate", str(tmp_path / "bytes.model"), model, *data, "--by-file", "--json").stdout
    plain, lossy = json.loads(both)
    assert plain["groups"]["xx"]["parity"] == 1  # as cheap as the other group, which comes first
    assert lossy["groups"]["xx"]["parity"] is None and lossy["groups"]["en"]["parity"] is not None
    both = run("evaluate", str(tmp_path / "bytes.model"), model, *data, "--by-file", "--json", "--parity", "xx").stdout
    assert [each["groups"]["en"]["parity"] for each in json.loads(both)] == [1, None]
    assert "already has a pattern" in run("evaluate", model, *data, "--pattern", "gpt2", code=2).stderr


def test_wrong_groups(models, tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"text": 7, "language": "en"}\n')
    args = ["evaluate", models[0], "--group-column", "language", "--data"]
    assert (
        "line 1: field 'text' must be of type string, got int"
        in run(*args, str(tmp_path / "docs.jsonl"), code=1).stderr
    )
    assert "standard input has no group column; use" in run(*args, "-", "--jsonl-field", "text", code=1).stderr


def test_groups_in_markdown(models, tmp_path):
    for name, text in {"de": "Sein oder Nichtsein", "en": "to be"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    given = ["evaluate", models[0], "--by-file", "--data", str(tmp_path), "--markdown"]
    lines = run(*given).stdout.splitlines()
    assert lines[0].startswith("| tokens per character | ") and lines[1] == "|---|---:|"
    assert [line.split()[1] for line in lines[2:5]] == ["de", "en", "Gini"]
    assert "--markdown cannot be combined with --json" in run(*given, "--json", code=2).stderr


def test_groups_of_tables_and_jsonl_with_different_columns(models, tmp_path):
    pq.write_table(pa.table({"body": ["a a"], "content": ["b b b"], "language": ["en"]}), tmp_path / "docs.parquet")
    (tmp_path / "docs.jsonl").write_text('{"body": "b b b", "content": "a a", "language": "de"}\n')
    columns = ["--text-column", "body", "--jsonl-field", "content", "--group-column", "language"]
    (it,) = json.loads(run("evaluate", models[0], "--json", *columns, "--data", str(tmp_path)).stdout)
    assert {group: each["tokens_per_character"] for group, each in it["groups"].items()} == {"de": 2 / 3, "en": 2 / 3}


def test_command_on_a_part(models, tmp_path):
    """A text is read again for each pattern, and the same part is used."""
    (tmp_path / "a.txt").write_text("a a a b")
    Tokenizer.train("a a", 257, pattern="o200k").save(tmp_path / "other")
    args = ["--data", str(tmp_path / "a.txt"), "--limit-bytes", "5", "--json"]
    found = json.loads(run("evaluate", *models, str(tmp_path / "other.model"), *args).stdout)
    assert [each["groups"]["all"]["tokens"] for each in found] == [3, 5, 3]
    assert {each["groups"]["all"]["bytes_per_token"] * each["groups"]["all"]["tokens"] for each in found} == {5}


def test_command_by_group(models, tmp_path):
    rows = {"text": ["a a", "b b b", None, "a"], "language": ["en", "de", "de", "en"]}
    pq.write_table(pa.table(rows), tmp_path / "docs.parquet")
    with pa.ipc.new_stream(tmp_path / "docs.arrow", pa.table(rows).schema) as stream:
        stream.write_table(pa.table(rows))
    (tmp_path / "docs.jsonl").write_text('{"text": "a a", "language": "en"}\n{"text": "b b b", "language": "de"}\n')
    args = ["evaluate", models[0], "--group-column", "language", "--json", "--data"]
    (it,) = json.loads(run(*args, str(tmp_path / "docs.parquet")).stdout)
    # "a a" and "a" are 3 tokens of 4 characters, "b b b" 5 of 5.
    assert it["groups"]["en"]["tokens_per_character"] == 3 / 4
    assert it["groups"]["de"]["parity"] == pytest.approx(4 / 3)
    assert it["gini"] == pytest.approx(gini([3 / 4, 1]))
    assert json.loads(run(*args, str(tmp_path / "docs.arrow")).stdout) == [it]
    (it,) = json.loads(run(*args, str(tmp_path / "docs.jsonl"), "--parity", "de", "--per", "text").stdout)
    assert it["groups"]["en"]["parity"] == 2 / 5
    for name, text in {"en": "a a a", "de": "b b b"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    shown = run("evaluate", models[0], "--by-file", "--data", str(tmp_path / "*.txt")).stdout
    assert "Gini coefficient" in shown and "en" in shown
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "en.txt").write_text("a")
    given = ["--data", str(tmp_path / "*.txt"), "--data", str(tmp_path / "more" / "en.txt")]
    (it,) = json.loads(run("evaluate", models[0], "--by-file", "--json", *given).stdout)
    assert list(it["groups"]) == [str(tmp_path / "en.txt"), str(tmp_path / "more" / "en.txt"), "de"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--group-column", "script"], "no column 'script' among"),
        (["--group-column", "language", "--parity", "fr"], "must be one of the groups (de, en), got 'fr'"),
        (["--parity", "en"], "--parity needs --group-column or --by-file"),
        (["--by-file", "--limit-bytes", "9"], "--limit-bytes has no effect on groups, which are read completely"),
        (["--group-column", "language", "--by-file"], "--group-column cannot be combined with --by-file"),
        (["--group-column", "language", "--sample", "0.5"], "--sample cannot be combined with --group-column"),
    ],
)
def test_command_errors(models, tmp_path, args, problem):
    pq.write_table(pa.table({"text": ["a", "b"], "language": ["en", "de"]}), tmp_path / "docs.parquet")
    assert problem in failed("evaluate", models[0], "--data", str(tmp_path / "docs.parquet"), *args)


def test_command_without_data(models, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    assert "no text found" in run("evaluate", models[0], "--data", str(tmp_path / "empty.txt"), code=1).stderr


@pytest.mark.parametrize(
    "batches",
    [None, [], {}, {"size": [1]}, {"size": 1, "searched": 1, "last_count": 1}]
    + [{"size": [1], "searched": [1], "last_count": last} for last in ([], ["1"], [-1], [True], {0: 1})],
)
def test_a_model_file_may_contain_any_log(batches):
    assert training_log({"batches": batches}) is None
