"""Hidden tokens: merges that are only steps to other tokens."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import END, TEXT, examples, reference_of, run
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import Model, Tokenizer, reference, train
from batchbpe.analysis.auditing import audit
from batchbpe.analysis.evaluation import evaluate
from batchbpe.errors import DataError, UserError
from batchbpe.formats import FORMATS
from batchbpe.model import UnknownTokenError
from batchbpe.patterns import PATTERNS
from batchbpe.reference import phrases as reference_phrases
from batchbpe.transformers import load as load_for_transformers
from batchbpe.viewer import api
from batchbpe.viewer.workspace import Workspace

MERGES = {(97, 98): 256, (256, 99): 257, (257, 257): 300, (100, 100): 258}
"""ab, abc, abcabc, dd"""
MODEL = Model(split=r"\w+|\s+", merges=MERGES, stop_words={b"ab": 259}, special_tokens={"<s>": 260}, hidden={256, 300})


def test_hidden_tokens_are_not_in_the_vocabulary() -> None:
    assert MODEL.hidden == {256, 300}
    assert MODEL.vocab_size == len(MODEL.vocab) == 256 + 2 + 2
    assert MODEL.hidden.isdisjoint(MODEL.vocab)
    assert MODEL.hidden.isdisjoint(MODEL.token_ids.values())
    assert MODEL.vocab_with_hidden == {**MODEL.vocab, 256: b"ab", 300: b"abcabc"}
    assert dict(MODEL.visible_merges) == {(256, 99): 257, (100, 100): 258}
    assert (MODEL.n_vocab, MODEL.next_id) == (261, 301)
    assert repr(MODEL).startswith("Model(tokens=260, merges=4, stop_words=1, special_tokens=1, hidden=2, ")


def test_hidden_tokens_are_part_of_the_merge_tree() -> None:
    tree = MODEL.merge_tree(257)
    assert [part.token for part in tree.parts] == [256, 99]
    assert MODEL.merge_tree(300).value == b"abcabc"


def test_hidden_tokens_are_part_of_the_identity() -> None:
    shown = Model(split=MODEL.split, merges=MERGES, stop_words=MODEL.stop_words, special_tokens=MODEL.special_tokens)
    assert shown != MODEL
    assert shown.tokens_id != MODEL.tokens_id
    assert shown.next_id == shown.n_vocab == 301
    assert Model(split=r"\w+", merges=MERGES, hidden=frozenset()) == Model(split=r"\w+", merges=MERGES)
    for same in (pickle.loads(pickle.dumps(MODEL)), copy.deepcopy(MODEL)):
        assert same == MODEL
        assert same.hidden == MODEL.hidden


@pytest.mark.parametrize("hidden", [[256, 256], (256,), {256: "a"}, range(256, 257), iter([256])])
def test_any_collection_is_frozen(hidden: Any) -> None:
    assert Model(split=r"\w+", merges=MERGES, hidden=hidden).hidden == frozenset({256})


@pytest.mark.parametrize(
    ("hidden", "error"),
    [
        (5, "hidden must be a collection of ids, got 5"),
        ("256", "hidden must be a collection of ids, got '256'"),
        ([[256]], r"hidden must contain only integers, got \[256\]"),
        ([True], "hidden must contain only integers, got True"),
        ([256.0], "hidden must contain only integers, got 256.0"),
        ([97], "hidden must contain only ids that merges make, got 97"),
        ([-1], "hidden must contain only ids that merges make, got -1"),
        ([500], "hidden must contain only ids that merges make, got 500"),
        ([259], "hidden must contain only ids that merges make, got 259"),
        ([260], "hidden must contain only ids that merges make, got 260"),
        ([261], "hidden must contain only ids that merges make, got 261"),
        ([262], "hidden must contain only ids that merges make, got 262"),
        ([258], "hidden must not contain the id of 'dd', which is a special or added token, got 258"),
        ([257], r"hidden must not contain a token of phrase \(257, 32\), got 257"),
    ],
)
def test_errors_for_other_ids(hidden: Any, error: str) -> None:
    with pytest.raises(UserError, match=f"^{error}$"):
        Model(
            split=r"\w+|\s+",
            merges=MERGES,
            stop_words={b"the": 259},
            special_tokens={"<s>": 260},
            added_tokens={"dd": 258},
            phrases={(257, 32): 262},
            decode_only={261: b"x"},
            hidden=hidden,
        )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Merges of few letters, in an order that training would not make, with shuffled ids. Some are hidden."""
    tokens = [*b"abcd", 0xC3, 0xA9]
    merges: dict[tuple[int, int], int] = {}
    ids = draw(st.permutations(range(256, 286)))
    for token in ids[: draw(st.integers(0, 30))]:
        pair = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if pair not in merges:
            merges[pair] = token
            tokens.append(token)
    hidden = draw(st.sets(st.sampled_from([*merges.values()]))) if merges else set()
    byte_ids = [None if byte == ord("!") else byte for byte in range(256)]
    stop_words = {
        word.encode(): 300 + n for n, word in enumerate(draw(st.sets(st.text("abé", min_size=1), max_size=2)))
    }
    return Model(
        split=draw(st.sampled_from([r"\w+|\s+|[^\w\s]", PATTERNS["gpt4"]])),
        merges=merges,
        stop_words=stop_words,
        special_tokens={"<s>": 310},
        added_tokens={"ddd": 311},
        byte_ids=byte_ids,
        hidden=hidden,
    )


words = st.lists(st.sampled_from(["a", "b", "ab", "abab", "cd", "é", "dd", " ", "\n", "!", "<s>"]), max_size=60).map(
    "".join
)


def expected_ids(model: Model, text: str) -> list[int]:
    merges, stop_words = reference_of(model)
    return reference.encode(
        text,
        model.split,
        merges,
        stop_words,
        model.found_tokens,
        flags={name: model.flags_of(name) for name in model.found_tokens},
        byte_ids=model.byte_ids,
        hidden=model.hidden,
    )


@pytest.mark.filterwarnings("ignore:the vocabulary lacks")
@given(model=models(), text=words, threads=st.sampled_from([1, 3]))
def test_hyp_encode(model: Model, text: str, threads: int) -> None:
    tokenizer = Tokenizer(model)
    expected = expected_ids(model, text)
    assert model.hidden.isdisjoint(expected)
    for _ in range(2):  # the second time, chunks are cached
        assert tokenizer.encode(text, "all", threads=threads) == expected
    assert tokenizer.encode_batch([text, "", text], "all", threads=threads) == [expected, [], expected]
    assert tokenizer.encode_to_numpy(text, "all", threads=threads).tolist() == expected
    assert tokenizer.encode_batch_to_numpy([text, text], "all")[0].tolist() == expected * 2
    kept = text.replace("!", "")
    assert tokenizer.decode(expected) == kept
    plain = text.replace("<s>", "").replace("ddd", "")
    assert tokenizer.encode_bytes(plain.encode() + b"\xff")[-1] == 0xFF
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(plain.encode())).decode() == plain.replace("!", "")
    assert {*model.vocab} == {*range(256)} - {ord("!")} | {*model.visible_merges.values()} | {
        *model.stop_words.values(),
        *model.found_tokens.values(),
    }
    assert model.vocab_size == len(model.vocab)
    assert model.n_vocab == max(model.vocab) + 1


@pytest.mark.filterwarnings("ignore:the vocabulary lacks")
@given(model=models(), text=words)
def test_hyp_places_in_the_text(model: Model, text: str) -> None:
    tokenizer = Tokenizer(model)
    expected = expected_ids(model, text)
    ids, starts, ends = tokenizer.core_encoder.encode_with_spans(text, "all")
    assert ids.tolist() == expected
    for token, start, end in zip(expected, starts.tolist(), ends.tolist(), strict=True):
        assert text.encode()[start:end].replace(b"!", b"") == model.vocab[token]
    ids, offsets, words = tokenizer.core_encoder.encode_with_words(text, "all")
    assert [*ids] == expected
    assert len(offsets) == len(words) == len(expected)


@given(model=models(), text=words)
@examples(30)
def test_hyp_files(tmp_path_factory: pytest.TempPathFactory, model: Model, text: str) -> None:
    path = tmp_path_factory.mktemp("model") / "a.model"
    Tokenizer(model).export(path, "batchbpe")
    loaded = Tokenizer.from_file(path)
    assert loaded.model == pickle.loads(pickle.dumps(model)) == model
    assert loaded.model.hidden == model.hidden
    assert ('"version": 5' in path.read_text()) == bool(model.hidden)


@given(model=models(), text=words, data=st.data())
def test_hyp_phrases(model: Model, text: str, data: st.DataObject) -> None:
    """Only chunks that are single tokens after hidden ones were replaced are parts of phrases."""
    pattern = r"\w+|\s+|[^\w\s]"
    merges, stop_words = reference_of(model)
    tokens = [*b"abcd", *model.visible_merges.values(), *model.stop_words.values()]
    parts = st.lists(st.sampled_from([32, *tokens]), min_size=2, max_size=3).map(tuple)
    found = data.draw(st.sets(parts, max_size=5))
    phrases = {phrase: 400 + n for n, phrase in enumerate(sorted(found))}
    tokenizer = Tokenizer(Model(pattern, merges, model.stop_words, phrases=phrases, hidden=model.hidden))
    chunks = reference_phrases.split_into_tokens(text, pattern, merges, stop_words, hidden=model.hidden)
    expected = reference_phrases.encode_phrases(chunks, phrases)
    assert tokenizer.encode(text) == expected
    assert tokenizer.decode(expected) == text


def hidden_tokenizer(size: int = 600, fraction: int = 10, **options: Any) -> Tokenizer:
    """Train, and hide every nth merge."""
    model = train(TEXT, size, special_tokens=[END], **options)
    return Tokenizer(Model(**fields_of(model) | {"hidden": [*model.merges.values()][::fraction]}))


def fields_of(model: Model) -> dict[str, Any]:
    names = ("split", "merges", "stop_words", "special_tokens", "phrases", "training")
    return {name: getattr(model, name) for name in names}


def above(tokenizer: Tokenizer) -> Tokenizer:
    """Give hidden tokens the largest ids."""
    model = tokenizer.model
    visible = [token for token in model.vocab if token > 255]
    new = {token: place for place, token in enumerate([*visible, *sorted(model.hidden)], start=256)}
    merges = {(new.get(a, a), new.get(b, b)): new[token] for (a, b), token in model.merges.items()}
    special = {name: new[token] for name, token in model.special_tokens.items()}
    return Tokenizer(Model(model.split, merges, {}, special, hidden=[new[token] for token in model.hidden]))


def test_hidden_ids_do_not_decode() -> None:
    tokenizer = above(hidden_tokenizer())
    assert tokenizer.n_vocab == tokenizer.vocab_size < tokenizer.model.next_id
    token = min(tokenizer.model.hidden)
    with pytest.raises(UnknownTokenError, match=f"token id {token} does not exist; the largest id is {token - 1}"):
        tokenizer.decode([token])
    with pytest.raises(UnknownTokenError):
        tokenizer.decode_single_token_bytes(token)
    assert tokenizer.encode(TEXT) == expected_ids(tokenizer.model, TEXT)


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("batchbpe", "transformers")])
@pytest.mark.parametrize("allow_inexact", [False, True])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_exports_refuse(tmp_path: Path, format: Any, allow_inexact: bool, at_the_end: bool) -> None:
    tokenizer = above(hidden_tokenizer()) if at_the_end else hidden_tokenizer()
    remedy = 'use format="batchbpe", or format="transformers" without allow_inexact'
    with pytest.raises(DataError, match=f" does not support hidden tokens; the model has 35, such as .*; {remedy}"):
        tokenizer.export(tmp_path / "a", format, allow_inexact=allow_inexact)
    assert not [*tmp_path.iterdir()]


def test_other_exports_refuse(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Hugging Face does not support hidden tokens"):
        hidden_tokenizer().export(tmp_path / "a", "transformers", allow_inexact=True)
    with pytest.raises(DataError, match="tiktoken does not support hidden tokens"):
        hidden_tokenizer().to_tiktoken()


@pytest.mark.parametrize("at_the_end", [False, True])
def test_transformers(tmp_path: Path, at_the_end: bool) -> None:
    tokenizer = above(hidden_tokenizer()) if at_the_end else hidden_tokenizer()
    tokenizer.export(tmp_path / "folder", "transformers")
    loaded = load_for_transformers(tmp_path / "folder")
    assert len(loaded) == tokenizer.n_vocab
    for text in (TEXT, f"to be{END} or", "語 é\n\n  to"):
        found = loaded(text, return_offsets_mapping=True)
        assert found["input_ids"] == tokenizer.encode(text, "all")
        assert loaded.decode(found["input_ids"]) == text
        for token, (start, end) in zip(found["input_ids"], found["offset_mapping"], strict=True):
            assert tokenizer.vocab[token] in text[start:end].encode()
        assert found["offset_mapping"][-1][1] == len(text)
    assert Tokenizer.from_huggingface(loaded).model == tokenizer.model
    loaded.add_tokens(["question"])
    assert loaded.tokenizer.encode("question") == [tokenizer.n_vocab]
    assert loaded("to be")["input_ids"] == tokenizer.encode("to be")
    loaded.save_pretrained(tmp_path / "again")
    assert load_for_transformers(tmp_path / "again")(TEXT)["input_ids"] == loaded(TEXT)["input_ids"]


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ('"hidden": 5', 'field "hidden": must be an array, got 5'),
        ('"hidden": {"256": 1}', 'field "hidden": must be an array'),
        ('"hidden": ["256"]', "field \"hidden\": expected an id, got '256'"),
        ('"hidden": [true]', 'field "hidden": expected an id, got True'),
        ('"hidden": [[256]]', 'field "hidden": expected an id'),
        ('"hidden": [256, 256]', 'field "hidden": id 256 occurs twice'),
        ('"hidden": [97]', 'field "hidden": must contain only ids that merges make, got 97'),
        ('"hidden": [99999999999999999999999]', 'field "hidden": must contain only ids that merges make'),
        ('"other": []', 'field "hidden" is missing'),
    ],
)
def test_damaged_files(tmp_path: Path, damage: str, error: str) -> None:
    path = tmp_path / "a.model"
    Tokenizer(MODEL).export(path, "batchbpe")
    text = path.read_text()
    path.write_text(re.sub(r'"hidden": \[.*?\]', damage, text))
    with pytest.raises(UserError) as caught:
        Tokenizer.from_file(path)
    assert error in str(caught.value)
    assert "a.model" in str(caught.value)
    path.write_text(text.replace('"version": 5', '"version": 4'))
    with pytest.raises(DataError, match="version must be at least 5 in a file with hidden, got 4"):
        Tokenizer.from_file(path)


@pytest.mark.parametrize("at_the_end", [False, True])
@pytest.mark.parametrize("policy", ["continue_search", "serial"])
def test_continued_training(at_the_end: bool, policy: Any) -> None:
    base = (above(hidden_tokenizer()) if at_the_end else hidden_tokenizer()).model
    extended = train(TEXT, add_tokens=80, base=base, special_tokens=["<new>"], policy=policy)
    assert extended.vocab_size == base.vocab_size + 80
    assert extended.hidden == base.hidden
    assert [*extended.merges.items()][: len(base.merges)] == [*base.merges.items()]
    assert extended.vocab.items() >= base.vocab.items()
    new = [*extended.merges.values()][len(base.merges) :]
    assert new == [*range(base.next_id, base.next_id + 79)]
    assert extended.special_tokens["<new>"] == extended.n_vocab - 1
    assert Tokenizer(extended).encode(TEXT) == expected_ids(extended, TEXT)
    # Training continues on chunks as they are merged, with hidden tokens.
    merges = dict(base.merges)
    ids = [
        (reference.encode(chunk, r"(?s).+", merges, {}), count)
        for chunk, count in reference.count_chunks([TEXT], base.split).items()
    ]
    stats = reference.get_stats(ids)
    assert [*extended.merges][len(base.merges)] == min(stats, key=lambda pair: (-stats[pair], pair))


def test_special_tokens_do_not_get_hidden_ids() -> None:
    base = above(hidden_tokenizer()).model
    token = max(base.hidden)
    with pytest.raises(UserError, match="must not have the ids of other tokens of base"):
        train(TEXT, add_tokens=5, base=base, special_tokens={"<new>": token})


def test_phrases_after_hidden_tokens() -> None:
    base = above(hidden_tokenizer()).model
    model = train(TEXT, add_tokens=20, base=base, phrases=5)
    assert min(model.phrases.values()) > max(base.hidden)
    assert Tokenizer(model).decode(Tokenizer(model).encode(TEXT)) == TEXT


@pytest.mark.parametrize("at_the_end", [False, True])
def test_analysis(tmp_path: Path, at_the_end: bool) -> None:
    tokenizer = above(hidden_tokenizer()) if at_the_end else hidden_tokenizer()
    plain = Tokenizer(train(TEXT, 600, special_tokens=[END]))
    (result,) = evaluate({"hidden": tokenizer}, [TEXT])
    assert result.tokens == len(tokenizer.encode(TEXT))
    found = audit(tokenizer, frequencies=result.frequencies)
    assert tokenizer.model.hidden.isdisjoint([*found.unreachable, *(found.unused or [])])
    for one, other in ((tokenizer, plain), (plain, tokenizer)):
        assert {*one.id_map(other).old_ids.tolist()} <= {-1, *other.vocab}
    assert tokenizer.view("to be, or not")._repr_html_()
    assert tokenizer.compare("to be, or not", plain)._repr_html_()
    tokenizer.save(tmp_path / "a")
    token = min(tokenizer.model.hidden)
    assert not re.search(rf" {token}$", (tmp_path / "a.vocab").read_text(), re.MULTILINE)
    assert re.search(r"^ *hidden +35$", run(["inspect", str(tmp_path / "a.model")]).output, re.MULTILINE)
    assert run(["inspect", str(tmp_path / "a.model"), "--id", str(token)]).exit_code == 0
    assert run(["verify", str(tmp_path / "a.model")]).exit_code == 0


@pytest.mark.parametrize("at_the_end", [False, True])
def test_viewer(at_the_end: bool) -> None:
    tokenizer = above(hidden_tokenizer()) if at_the_end else hidden_tokenizer()
    model = tokenizer.model
    space = Workspace({"mine": tokenizer})
    token = next(token for pair, token in model.visible_merges.items() if model.hidden.intersection(pair))
    answer = api.token(space, {"id": str(token)})
    hidden = [part for part in answer["parts"].values() if part["id"] in model.hidden]
    assert {part["kind"] for part in hidden} == {"hidden"}
    assert api.token(space, {"id": str(hidden[0]["id"])})["token"]["count"] is None
    answer = api.vocabulary(space, {"rows": "1000"})
    assert answer["total"] == tokenizer.vocab_size
    assert model.hidden.isdisjoint(row["id"] for row in answer["rows"])
    for merges in (0, 50, len(model.merges)):
        assert space.replay("to be, or not to be", 0, merges).bytes == b"to be, or not to be"


def test_deep_chains() -> None:
    """Every token is made from the one before it, and all but the last are hidden."""
    merges = {(98, 97): 256} | {(token, 97): token + 1 for token in range(256, 3000)}
    tokenizer = Tokenizer(Model("(?s).+", merges, hidden=range(256, 3000)))
    chunk = "b" + "a" * (3000 - 255)
    assert tokenizer.encode(chunk) == [3000]
    assert tokenizer.encode(chunk[:-1]) == [*chunk[:-1].encode()]
    assert tokenizer.encode(chunk + chunk[:-1]) == [3000, *chunk[:-1].encode()]
