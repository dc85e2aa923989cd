"""The n-gram model, compared with its formulas in plain Python, and what `ngram_bits` makes of texts and tokenizers."""

import json
import re
import warnings
from collections import Counter, defaultdict
from functools import cache
from math import log2
from pathlib import Path

import numpy as np
import pytest
from helpers import run

from batchbpe import PATTERNS, ChunkCounts, Model, Tokenizer
from batchbpe._core import predict_tokens
from batchbpe.analysis import evaluate, ngram_bits
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError

SOURCES = [Path(module.__file__).read_text(encoding="utf-8") for module in (json, re)]
PARAGRAPHS = [paragraph for source in SOURCES for paragraph in source.split("\n\n")]
TRAINING, HELDOUT = PARAGRAPHS[::2][:60], PARAGRAPHS[1::2][:20]
TOKENIZER = Tokenizer.train(TRAINING, 350, special_tokens=["<eot>"])

BEGIN, END = -1, -2


class Reference:
    """Interpolated modified Kneser–Ney as docs/ngram.md defines it. Documents are lists of ids."""

    def __init__(self, documents, choices, order):
        found = Counter()
        for document in documents:
            tokens = (BEGIN, *document, END)
            for end in range(2, len(tokens) + 1):
                found.update(tokens[start:end] for start in range(max(0, end - order), end))
        before = defaultdict(set)
        for ngram in found:
            before[ngram[1:]].add(ngram[0])
        self.choices, self.order = choices, order
        self.next = defaultdict(dict)
        self.counts = [Counter() for _ in range(order)]
        for ngram, count in found.items():
            is_raw = len(ngram) == order or ngram[0] == BEGIN
            self.next[ngram[:-1]][ngram[-1]] = count if is_raw else len(before[ngram])
            self.counts[len(ngram) - 1][self.next[ngram[:-1]][ngram[-1]]] += 1
        self.discounts = list(map(self.estimated, self.counts))

    @staticmethod
    def estimated(counts):
        if 0 not in [counts[i] for i in (1, 2, 3, 4)]:
            y = counts[1] / (counts[1] + 2 * counts[2])
            found = [i - (i + 1) * y * counts[i + 1] / counts[i] for i in (1, 2, 3)]
            if min(found) > 0:
                return found
        return [0.5, 1, 1.5]

    @cache  # noqa: B019
    def probability(self, context, token):
        shorter = self.probability(context[1:], token) if context else 1 / self.choices
        if context not in self.next:
            return shorter
        following, discounts = self.next[context], self.discounts[len(context)]
        subtracted = {each: discounts[min(count, 3) - 1] for each, count in following.items()}
        own = following.get(token, 0) - subtracted.get(token, 0)
        return (own + sum(subtracted.values()) * shorter) / sum(following.values())

    def bits(self, document):
        tokens = (BEGIN, *document, END)
        contexts = (tokens[max(0, at + 1 - self.order) : at] for at in range(1, len(tokens)))
        return [-log2(self.probability(*each)) for each in zip(contexts, tokens[1:], strict=True)]


def marked(documents, mark):
    return np.array([mark, *(token for document in documents for token in (*document, mark))], np.uint32)


@pytest.mark.parametrize("order", [1, 2, 3, 5, 8])
def test_bits_are_those_of_the_formulas(order):
    result = ngram_bits(TOKENIZER, TRAINING, HELDOUT, order=order)
    reference = Reference(map(TOKENIZER.encode, TRAINING), 350, order)  # all but <eot>, and the end
    bits = [sum(reference.bits(TOKENIZER.encode(text))) for text in HELDOUT]
    assert result.bits == pytest.approx(bits, rel=1e-11)
    assert result.bytes.tolist() == [len(text.encode()) for text in HELDOUT]
    assert result.bits_per_byte == pytest.approx(sum(bits) / sum(result.bytes), rel=1e-11)
    assert result.tokens == sum(len(TOKENIZER.encode(text)) + 1 for text in HELDOUT)
    assert result.training_tokens == sum(len(TOKENIZER.encode(text)) + 1 for text in TRAINING)
    assert result.ngrams == tuple(counts.total() for counts in reference.counts)
    assert np.array(result.discounts) == pytest.approx(np.array(reference.discounts))


def test_bits_are_those_of_kenlm():
    """Bits of the first documents, and of all, by KenLM 0.3.0 for the ids of these documents, written as words:

    lmplz -o ORDER --vocab_pad 257 --discount_fallback --text train.txt --arpa model
    query -v word model < heldout.txt

    KenLM counts the last n-grams of all by how often they occur, instead of by the tokens before them. So the last
    training document is a token that occurs nowhere else, for which both are 1.
    """
    lines = [line for line in (Path(__file__).parents[1] / "LICENSE").read_text(encoding="utf-8").splitlines() if line]
    tokenizer = Tokenizer(Model(split=PATTERNS["gpt4"], merges={}))
    for order, first, whole in [
        (2, [240.89301, 349.66077, 375.93759], 2414.187),
        (3, [228.96085, 323.18653, 349.97635], 2255.442),
        (5, [225.25904, 321.50573, 348.40644], 2220.826),
    ]:
        bits = ngram_bits(tokenizer, [*lines[::2], "\0"], lines[1::2], order=order).bits
        assert bits[:3] == pytest.approx(first, rel=1e-7)
        assert bits.sum() == pytest.approx(whole, rel=1e-6)


def test_discounts_are_estimated_or_have_a_fallback():
    """Otherwise the comparison with the formulas would not cover both."""
    assert (0.5, 1, 1.5) not in ngram_bits(TOKENIZER, TRAINING, HELDOUT, order=3).discounts
    assert ngram_bits(TOKENIZER, ["to be"], ["be"], order=2).discounts == ((0.5, 1, 1.5),) * 2


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("context", ["", "def ", "the", "import re", "qqqq", "é"])
def test_probabilities_sum_to_one(order, context):
    training, context = [*map(TOKENIZER.encode, TRAINING)], TOKENIZER.encode(context)
    mark = 350  # 349, the special token, does not occur, and is not one of the choices
    heldout = [[*context, token] for token in range(349)] + [context]
    bits, _, _ = predict_tokens(marked(training, mark), marked(heldout, mark), mark, 350, order, None)
    places = np.cumsum([len(document) + 1 for document in heldout]) - 2
    places[-1] += 1  # the mark itself
    assert np.exp2(-bits[places]).sum() == pytest.approx(1, abs=1e-9)


def test_results_do_not_depend_on_threads():
    one, two = (ngram_bits(TOKENIZER, TRAINING, HELDOUT, threads=threads) for threads in (1, 2))
    assert (one.bits == two.bits).all() and one.ngrams == two.ngrams


def test_text_that_was_seen_is_easy_to_predict():
    known, new = (ngram_bits(TOKENIZER, SOURCES[0], text).bits_per_byte for text in SOURCES)
    assert known < 0.7 < 2 < new < 8


def test_sampling_applies_to_the_training_text(tmp_path):
    files = [tmp_path / "train.txt", tmp_path / "heldout.txt"]
    for file, text in zip(files, SOURCES, strict=True):
        file.write_text(text, encoding="utf-8")
    whole = ngram_bits(TOKENIZER, *files)
    part = ngram_bits(TOKENIZER, *files, limit_bytes=1000)
    assert part.bytes.tolist() == whole.bytes.tolist() == [len(SOURCES[1].encode())]
    assert part.training_tokens == len(TOKENIZER.encode(SOURCES[0][:1000])) + 1 < whole.training_tokens
    by_line = ngram_bits(TOKENIZER, *files, document="line")
    assert len(by_line.bits) == len([line for line in SOURCES[1].splitlines() if line])


def test_documents_without_text_are_left_out():
    some, all_of_them = (ngram_bits(TOKENIZER, ["to be", *empty], ["be", *empty]) for empty in ([], ["", ""]))
    assert some.bits.tolist() == all_of_them.bits.tolist() and some.training_tokens == all_of_them.training_tokens


class Plain:
    """A tokenizer that is not ours."""

    vocab_size = 349

    def encode(self, text):
        return TOKENIZER.encode_ordinary(text)

    def decode(self, ids):
        return TOKENIZER.decode(ids)


def test_objects_that_encode_and_decode_are_tokenizers(tmp_path):
    TOKENIZER.save(tmp_path / "mine")
    expected = ngram_bits(TOKENIZER, TRAINING, HELDOUT).bits
    for tokenizer in (Plain(), TOKENIZER.model, tmp_path / "mine.model"):
        assert ngram_bits(tokenizer, TRAINING, HELDOUT).bits == pytest.approx(expected, rel=1e-12)


def test_special_tokens_in_text_are_ordinary_text():
    result = ngram_bits(TOKENIZER, ["a<eot>b"], ["<eot>"])
    assert result.tokens == len(TOKENIZER.encode_ordinary("<eot>")) + 1 > 2


def test_surrogate_pairs_are_characters():
    assert ngram_bits(TOKENIZER, ["a"], ["\ud83d\ude00"]).bytes.tolist() == [4]
    with pytest.raises(DataError, match="lone surrogate"):
        ngram_bits(TOKENIZER, ["a"], ["\ud83d"])
    assert ngram_bits(TOKENIZER, ["a"], ["\ud83d"], errors="replace").bytes.tolist() == [3]


class Lower(Plain):
    def encode(self, text):
        return TOKENIZER.encode(text.lower())


class Small(Plain):
    vocab_size = 3


class Unknown(Plain):
    vocab_size = None


class EncodesOnly:
    vocab_size = 300

    def encode(self, text):
        return TOKENIZER.encode(text)


@pytest.mark.filterwarnings("ignore:the pattern does not match")
@pytest.mark.parametrize(
    ("tokenizer", "error", "message"),
    [
        (Lower(), DataError, "held-out text: Lower does not restore the document 'To be'; use a tokenizer"),
        (Tokenizer(Model(split="[a-z]+", merges={})), DataError, "does not restore the document 'To be'"),
        (Small(), DataError, "the tokenizer has 3 tokens, but 7 different ids occur in the text"),
        (Unknown(), ArgumentTypeError, "tokenizer must have an attribute vocab_size or n_vocab"),
        (EncodesOnly(), ArgumentTypeError, r"tokenizer must have a method decode\(ids\)"),
        (3, ArgumentTypeError, "tokenizers must contain objects with a method encode"),
    ],
)
def test_unsuitable_tokenizers_are_errors(tokenizer, error, message):
    with pytest.raises(error, match=message):
        ngram_bits(tokenizer, ["To be or not"], ["To be"])


@pytest.mark.parametrize(
    ("train", "heldout", "options", "error", "message"),
    [
        ("", "to be", {}, DataError, "training text: no text found in ''"),
        ("to be", [""], {}, DataError, "held-out text: no text found in"),
        ("to be", "to be", {"order": 0}, ArgumentError, "order must be at least 1, got 0"),
        ("to be", "to be", {"order": 101}, ArgumentError, "order must be at most 100, got 101"),
        ("to be", "to be", {"order": 2.5}, ArgumentTypeError, "order must be an integer"),
        ("to be", "to be", {"threads": 0}, ArgumentError, "threads must be at least 1"),
        (ChunkCounts.count("to be"), "to be", {}, DataError, "training text: chunk counts have no documents to encode"),
        ("to be", ChunkCounts.count("to be"), {}, DataError, "held-out text: chunk counts have no documents to encode"),
        ("to be", {"en": "to be"}, {}, DataError, "held-out text: a dict is read as chunk counts.* texts as a list"),
        (3, "to be", {}, ArgumentTypeError, "training text: data must be text, .* got 3"),
        ("to be", 3, {}, ArgumentTypeError, "held-out text: data must be text, .* got 3"),
        ("to be", Path("absent.txt"), {}, FileNotFoundError, "absent.txt"),
        ("to be", "to be", {"lines": True}, TypeError, "unexpected keyword argument 'lines'"),
    ],
)
def test_unsuitable_text_and_options_are_errors(train, heldout, options, error, message):
    with pytest.raises(error, match=message):
        ngram_bits(TOKENIZER, train, heldout, **options)


def test_invalid_utf8_and_large_files_are_errors(tmp_path):
    file = tmp_path / "heldout.txt"
    file.write_bytes(b"to be\xff")
    with pytest.raises(DataError, match=r"held-out text, .*heldout\.txt: invalid UTF-8 at byte 5 of the text"):
        ngram_bits(TOKENIZER, "to be", file)
    assert ngram_bits(TOKENIZER, "to be", file, errors="replace").bytes.tolist() == [8]
    with pytest.raises(DataError, match="more than max_document_bytes=3"):
        ngram_bits(TOKENIZER, "to be", file, max_document_bytes=3)


def test_evaluate_compares_models_of_the_same_text(tmp_path):
    other = Tokenizer.train(TRAINING, 300)
    training, heldout = ((tmp_path / name) for name in ("train.jsonl", "heldout.jsonl"))
    for file, texts in ((training, TRAINING), (heldout, HELDOUT)):
        file.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    options = {"ngram_train": training, "ngram_order": 3, "text_column": "body"}
    result = evaluate({"one": TOKENIZER, "other": other}, heldout, **options)
    expected = [ngram_bits(each, TRAINING, HELDOUT, order=3).bits_per_byte for each in (TOKENIZER, other)]
    assert [each.bits_per_byte for each in result.ngrams.values()] == expected
    assert pytest.importorskip("pandas") and result.to_pandas()["bits_per_byte"].tolist() == expected
    assert result.plot("bits_per_byte").axes[0].get_xlabel() == "bits per byte"
    assert f"bits_per_byte={expected[0]:.4f}" in repr(result.ngrams["one"])
    change = 100 * (expected[1] / expected[0] - 1)
    last = [line.split() for line in str(result).splitlines()[-3:]]
    assert last[0] == ["3-gram", "model", "one", "other"]
    assert last[1] == ["bits", "per", "byte", f"{expected[0]:.4f}", f"{expected[1]:.4f}"]
    assert last[2] == ["change,", "%", "0.0000", f"{change:.4f}"]
    part = evaluate(TOKENIZER, heldout, **options, limit_bytes=100).ngrams["batchbpe"]
    assert part.training_tokens == result.ngrams["one"].training_tokens and 100 <= part.bytes.sum() < 5000

    for tokenizer, name in ((TOKENIZER, "one"), (other, "other")):
        tokenizer.save(tmp_path / name)
    models = f"{tmp_path / 'one.model'} {tmp_path / 'other.model'}"
    command = f"evaluate {models} --data {heldout} --ngram-train {training} --ngram-order 3 --text-column body --json"
    found = json.loads(run(command).stdout)
    assert [each["ngram"] for each in found] == [{"order": 3, "bits_per_byte": bits} for bits in expected]


def test_a_file_that_is_not_held_out_is_noticed(tmp_path):
    file, other, link = (tmp_path / name for name in ("train.txt", "other.txt", "link.txt"))
    file.write_text("to be or not to be")
    other.write_text("to be")
    link.symlink_to(file)
    with pytest.warns(UserWarning, match=r"train\.txt is both training and held-out text"):
        result = ngram_bits(TOKENIZER, [file, other], link)
    assert result.seen == (str(file.resolve()),)
    assert "meaningless" in result.to_markdown()
    assert ngram_bits(TOKENIZER, file, other).seen == ()
    TOKENIZER.save(tmp_path / "mine")
    command = f"evaluate {tmp_path / 'mine.model'} --data {file} --ngram-train {tmp_path}/../{tmp_path.name}/train.txt"
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        printed, as_json = run(command), run(f"{command} --json")
    assert "not held out, so bits per byte are meaningless" in printed.stdout
    assert "train.txt is both training and held-out text" in printed.stderr.replace("\n", " ")
    assert json.loads(as_json.stdout)[0]["ngram"]["seen"] == [str(file.resolve())]


def test_text_that_can_be_read_only_once_or_has_groups_is_an_error():
    two = {"one": TOKENIZER, "two": TOKENIZER}
    assert list(evaluate(TOKENIZER, ["to be"], ngram_train=iter(["to be"])).ngrams) == ["batchbpe"]
    once = evaluate(two, ["to be"], ngram_train=iter(["to be"])).ngrams  # is read once for both
    assert once["two"].bits == ngram_bits(TOKENIZER, ["to be"], ["to be"]).bits
    with pytest.raises(ArgumentError, match="needs data that can be read more than once, not a list_it"):
        evaluate(two, iter(["to be"]), ngram_train=["to be"])
    with pytest.raises(ArgumentError, match=r"cannot be combined with groups.*; evaluate the text of each group"):
        evaluate(two, {"en": "to be"}, ngram_train="to be")
    with pytest.raises(ArgumentError, match="ngram_order must be at most 100, got 101"):
        evaluate(two, "to be", ngram_train="to be", ngram_order=101)
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        evaluate(two, iter(["to be"]), ngram_train=Path("absent.txt"))
    for options, problem in {
        "--data - --ngram-train a.txt": "--ngram-train needs --data that can be read twice",
        "--data a.txt --ngram-train b.txt --by-file": "evaluate the file of each group separately",
        "--data a.txt --ngram-order 3": "--ngram-order needs --ngram-train",
    }.items():
        refused = run(f"evaluate mine.model {options}")
        assert refused.exit_code == 2 and problem in refused.stderr
