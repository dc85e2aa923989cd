"""Models with phrases in tiktoken, tokenizers and transformers: the same ids, and loading gives the same model."""

import itertools
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import tiktoken
import tokenizers
import transformers
from helpers import multilingual, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from batchbpe import PATTERNS, Model, RunCounts, Tokenizer, train, train_phrases
from batchbpe.formats import Format
from batchbpe.formats.huggingface import to_json
from batchbpe.formats.phrase_pattern import pattern_with_phrases, split_pattern

CASES = "iPhone McDonald USA's it's IT'S I'LL don't DON'T 語A 語Ab ǅx ʰA eF"
END = "<|endoftext|>"


NOT_EXACT = {
    "command-a": "phrases cannot be exported with the pattern command-a: it has a look-ahead",
    "bloom": "cannot be found exactly: where its whitespace ends depends on what follows",
}
"""The named patterns that are not regular, or that keep punctuation and whitespace in one chunk."""


@pytest.mark.parametrize("name", NOT_EXACT)
def test_patterns_with_phrases_that_cannot_be_exported(name: str, library: list[str]) -> None:
    with pytest.raises(ValueError, match=NOT_EXACT[name]):
        trained(name, r"\s*[^\s]+", library).to_tiktoken()


@pytest.fixture(scope="module", params=[name for name in PATTERNS if name not in NOT_EXACT])
def tokenizer(request: pytest.FixtureRequest, library: list[str]) -> Tokenizer:
    """A tokenizer with phrases of all chunks that are not whitespace: words, numbers and symbols."""
    return trained(request.param, r"\s*[^\s]+", library)


@cache
def trained_with(name: str, kind: str, data: tuple[str, ...]) -> Tokenizer:
    options = {"pattern": name, "phrases": 700, "phrase_chunks": kind, "special_tokens": [END]}
    return Tokenizer.train(list(data), 2500, **options)


def trained(name: str, kind: str, library: list[str]) -> Tokenizer:
    cases = f"{CASES} {CASES.replace(' ', '')} " * 20
    return trained_with(name, kind, (*library[:40], multilingual(30_000), cases))


def fragments(tokenizer: Tokenizer, n: int, seed: int = 1) -> Iterator[str]:
    """Texts that are put together from pieces of phrases."""
    chance = random.Random(seed)
    phrases = [tokenizer.vocab[token].decode() for token in tokenizer.phrases.values()]
    between = ["", "", " ", "'", "s", "S", "ll", "A", "b", "語", "9", "99", "\n", "\r", ".", "/", "\u0301", "ſ", "  "]
    for _ in range(n):
        parts = []
        for _ in range(chance.randint(1, 8)):
            phrase = chance.choice(phrases)
            start = chance.choice([0, 0, chance.randrange(len(phrase))])
            parts += [
                phrase[start : chance.choice([None, None, chance.randrange(len(phrase)) + 1])],
                chance.choice(between),
            ]
        yield "".join(parts)


def test_tiktoken(tokenizer: Tokenizer, library: list[str], tmp_path: Path) -> None:
    encoding = tokenizer.to_tiktoken()
    for text in [*library[40:44], multilingual(20_000, seed=2), CASES, *fragments(tokenizer, 1000)]:
        assert encoding.encode(text) == tokenizer.encode(text)
    assert Tokenizer.from_tiktoken(encoding) == tokenizer
    path = tmp_path / "mine.tiktoken"
    tokenizer.export(path, "tiktoken")
    assert Tokenizer.from_file(path) == Tokenizer.from_tiktoken(path, pattern=tokenizer.pattern) == tokenizer
    plain = Tokenizer(Model(tokenizer.pattern, tokenizer.merges))
    plain.export(path, "tiktoken")
    assert Tokenizer.from_tiktoken(path, pattern=tokenizer.pattern) == plain


@pytest.mark.parametrize(
    ("name", "kind"), [("gpt2", "text"), ("gpt4", "letters"), ("cl100k", "text"), ("o200k", "text")]
)
def test_huggingface(name: str, kind: str, library: list[str], tmp_path: Path) -> None:
    tokenizer = trained(name, kind, library)
    path = tmp_path / "tokenizer.json"
    tokenizer.export(path, "huggingface")
    loaded = tokenizers.Tokenizer.from_file(str(path))
    for text in [*library[40:42], multilingual(20_000, seed=2), CASES, *fragments(tokenizer, 300, seed=3)]:
        assert loaded.encode(text).ids == tokenizer.encode(text)
    assert Tokenizer.from_huggingface(path) == tokenizer
    tokenizer.export(tmp_path / "folder", "transformers")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "folder")
    assert auto.encode(CASES) == tokenizer.encode(CASES)
    assert Tokenizer.from_file(tmp_path / "folder") == tokenizer


@given(text=st.lists(st.one_of(texts, st.sampled_from(CASES.split())), max_size=5).map(" ".join))
@settings(max_examples=30)
def test_hyp_tiktoken(tokenizer: Tokenizer, text: str) -> None:
    encoding = cached_encoding(tokenizer)
    assert encoding.encode_ordinary(text) == tokenizer.encode_ordinary(text)


_encodings: dict[Tokenizer, tiktoken.Encoding] = {}


def cached_encoding(tokenizer: Tokenizer) -> tiktoken.Encoding:
    if tokenizer not in _encodings:
        _encodings[tokenizer] = tokenizer.to_tiktoken()
    return _encodings[tokenizer]


def test_native_file(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "mine")
    assert Tokenizer.from_file(tmp_path / "mine.model") == tokenizer
    assert '"version": 2' in (tmp_path / "mine.model").read_text()
    Tokenizer(Model(tokenizer.pattern, {})).save(tmp_path / "plain")
    assert '"version": 1' in (tmp_path / "plain.model").read_text()


@pytest.mark.parametrize("format", ["minbpe", "batchbpe-v1"])
def test_formats_without_phrases(tokenizer: Tokenizer, format: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not support phrases; the model has 700"):
        tokenizer.export(tmp_path / "mine", format)


def test_a_pattern_that_is_not_regular_is_refused() -> None:
    model = Model(r"(?<=a) ?\p{L}|.", {(32, 97): 256}, phrases={(97, 256): 257})
    with pytest.raises(ValueError, match=r"phrases cannot be exported with the pattern .*: it has a look-behind; use"):
        pattern_with_phrases(model)


def test_a_phrase_that_is_not_a_sequence_of_chunks_is_refused() -> None:
    model = Model(PATTERNS["gpt4"], {}, phrases={(97, 98): 257})
    with pytest.raises(ValueError, match="phrase 257, b'ab', is not split into its chunks"):
        pattern_with_phrases(model)


def test_a_phrase_that_ends_in_white_space_is_refused() -> None:
    model = Model(PATTERNS["gpt4"], {}, phrases={(97, 32): 257})
    with pytest.raises(ValueError, match="phrase 257, b'a ', cannot be found exactly: where its whitespace ends"):
        Tokenizer(model).to_tiktoken()


IN_CHUNKS = [
    ("o200k", "❤️", ".", "Great?!❤️."),
    ("o200k", "\r", "/", "?\r/"),
    ("o200k", "l", "L", "we'lL"),
    ("o200k", "r", "E", "we'rE"),
    ("o200k", "they", "'", "they're"),
    ("o200k", "語", "A", "語Ab"),
    ("gpt2", "'", "v", "we've"),
    ("starcoder", "'", "v", "we've"),
]


@pytest.mark.parametrize(("name", "first", "last", "text"), IN_CHUNKS)
def test_phrases_whose_text_can_be_inside_a_chunk(name: str, first: str, last: str, text: str) -> None:
    """tiktoken would use them there. Training leaves them out, and exporting refuses them."""
    model = train([first + last] * 9, 280, pattern=name)
    ids = [Tokenizer(model).encode(chunk) for chunk in (first, last)]
    parts = tuple(itertools.chain(*ids))
    runs = RunCounts.count([first + last] * 9, model, phrase_chunks="[^\n]+")
    assert [run for run, _ in runs] == [parts] and len(parts) == 2
    assert not train_phrases(model, runs, 1).phrases
    tokenizer = Tokenizer(Model(model.pattern, model.merges, phrases={parts: 300}))
    with pytest.raises(ValueError, match=r"phrase 300, .*, can be inside a chunk, where tiktoken would use it too"):
        tokenizer.to_tiktoken()
    loaded = tokenizers.Tokenizer.from_str(json.dumps(to_json(tokenizer.model)))
    assert loaded.encode(text).ids == tokenizer.encode(text)


@pytest.mark.parametrize("name", ["gpt2", "gpt4", "o200k"])
def test_former_patterns_are_recognized(name: str) -> None:
    """Earlier versions wrote look-aheads that were derived by hand."""
    former = {
        "gpt2": r"(?: a(?:'(?![^\s\p{L}\p{N}]|[sdmt]|ll|ve|re)| b(?: b(?!\p{L})|(?!\p{L}))))",
        "gpt4": r"(?: a(?: b(?: b(?!\p{L})|(?!\p{L}))|\.(?![^\s\p{N}]|[\r\n])))",
        "o200k": r"(?: b (?:B's|b(?![\p{Ll}\p{Lm}\p{Lo}\p{M}]|'(?i:[sdmt]|ll|ve|re))))",
    }
    texts = {"gpt2": (" a'", " a b b", " a b"), "gpt4": (" a b b", " a b", " a."), "o200k": (" b B's", " b b")}
    assert split_pattern(f"{former[name]}|{PATTERNS[name]}") == (PATTERNS[name], texts[name])


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:'s|'t)|[^\s]\p{L}+|.",  # contractions
        r"(?: a b(?!x))|" + PATTERNS["gpt4"],
        r"(?: a b| a b c)|" + PATTERNS["gpt4"],
        r"(?:ab|abc)|\p{L}",  # the longest is not first
        r"(?:ab(?!c)d)|\p{L}",
        r"(?:ab)+|\p{L}",
        r"(?:ab|",
        r"(?:ab(?!",
        r"(?:ab)|(",
        "(?:" * 10_000,
    ],
)
def test_other_patterns_have_no_phrases(pattern: str) -> None:
    assert split_pattern(pattern) == (pattern, ())


def test_phrases_that_are_nested_deeply() -> None:
    """Engines limit the depth of groups, so deeper ones are written out."""
    merges: dict[tuple[int, int], int] = {}
    for n in range(100):
        merges[256 + n - 1 if n else 32, 97 + n % 26] = 256 + n
    phrases = {(120, 256 + n): 400 + n for n in range(100)} | {(120, *[256] * n): 600 + n for n in range(2, 60)}
    tokenizer = Tokenizer(Model(PATTERNS["gpt4"], merges, phrases=phrases))
    encoding = tokenizer.to_tiktoken()
    loaded = tokenizers.Tokenizer.from_str(json.dumps(to_json(tokenizer.model)))
    assert Tokenizer.from_tiktoken(encoding) == tokenizer
    for token in phrases.values():
        text = tokenizer.decode([token])
        assert encoding.encode(text) == loaded.encode(text).ids == tokenizer.encode(text) == [token]
        assert encoding.encode(text + "z") == tokenizer.encode(text + "z")


@pytest.mark.parametrize("last", ["'", "'l", "'r", "'v", "'L"])
def test_beginnings_of_contractions(last: str) -> None:
    """In o200k they belong to the word before them if the rest follows."""
    merges = {(39, ord(letter)): 256 + place for place, letter in enumerate("lrvL")}
    token = {"'": 39} | {f"'{letter}": 256 + place for place, letter in enumerate("lrvL")}
    tokenizer = Tokenizer(Model(PATTERNS["o200k"], merges, phrases={(97, token[last]): 300, (49, token[last]): 301}))
    with pytest.raises(ValueError, match="can be inside a chunk, where tiktoken would use it too"):
        tokenizer.to_tiktoken()
    fields = tokenizers.Tokenizer.from_str(json.dumps(to_json(tokenizer.model)))
    for word, following in itertools.product("aA1", ["", "l", "L", "e", "E", "x", "X", "s", "ll", "1", " "]):
        text = word + last + following
        assert fields.encode(text).ids == tokenizer.encode(text), text


@pytest.mark.parametrize("format", ["tiktoken", "huggingface"])
def test_inexact_exports_keep_other_phrases(format: Format, library: list[str], tmp_path: Path) -> None:
    options = {"pattern": "gpt4", "phrases": 200}
    exact = Tokenizer.train(library[:40], 2000, **options)
    path = tmp_path / "exported"
    exact.export(path, format, allow_inexact=True)
    load = Tokenizer.from_tiktoken if format == "tiktoken" else Tokenizer.from_huggingface
    assert load(path) == exact
    with_stop_words = Tokenizer.train(library[:40], 2000, stop_list_size=30, **options)
    with pytest.warns(UserWarning, match=r"does not contain 30 stop words and \d+ phrases of the model"):
        with_stop_words.export(path, format, allow_inexact=True)
    stop_words = {*with_stop_words.stop_words.values()}
    kept = {parts: token for parts, token in with_stop_words.phrases.items() if stop_words.isdisjoint(parts)}
    assert 0 < len(kept) < 200 and load(path).phrases == kept


def test_a_rank_file_with_another_pattern(library: list[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.tiktoken"
    trained("gpt2", "letters", library).export(path, "tiktoken")
    with pytest.raises(ValueError, match=r"json has phrases for the pattern gpt2, not gpt4; leave out pattern"):
        Tokenizer.from_tiktoken(path, pattern="gpt4")
    companion = tmp_path / "mine.tiktoken.json"
    fields = json.loads(companion.read_bytes())
    companion.write_text(json.dumps(fields | {"pat_str": fields["pat_str"][:-3]}), encoding="utf-8")
    with pytest.raises(ValueError, match='"pat_str" is damaged: it contains no phrases'):
        Tokenizer.from_tiktoken(path)
