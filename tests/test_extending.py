"""Training that extends a vocabulary, and merge trees."""

from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from helpers import texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, BatchTokenizer, ChunkCounts, Model, Tokenizer, policies, train
from batchbpe.formats import tiktoken
from batchbpe.patterns import Split

END, MORE = "<|endoftext|>", "<more>"


def test_extending_equals_longer_training(counts: ChunkCounts) -> None:
    whole = train(counts, 1500, policy=policies.serial)
    base = train(counts, 900, policy=policies.serial)
    assert train(counts, 1500, policy=policies.serial, base=base).merges == whole.merges
    longer = train(counts, 1500, base=base)
    assert list(longer.merges.items())[: len(base.merges)] == list(base.merges.items())
    assert longer.n_vocab == 1500
    assert longer.training["base_vocab_size"] == 900


@given(corpus=st.lists(texts, min_size=1, max_size=4), stop=st.integers(0, 3), overlapping=st.booleans())
def test_hyp_extending(corpus: list[str], stop: int, overlapping: bool) -> None:
    counts = ChunkCounts.count(iter(corpus))
    if not counts:
        return
    options = {"policy": policies.serial, "overlapping": overlapping}
    whole = train(counts, 290, stop_list_size=stop, **options)
    base = train(counts, 256 + stop + 9, stop_list_size=stop, **options)
    further = train(counts, 290, base=base, **options)
    assert (further.merges, further.stop_words) == (whole.merges, whole.stop_words)


def test_extending_any_ids() -> None:
    text = Path(__file__).read_text()
    plain = Tokenizer.train(text, 270, policy=policies.serial)
    # As in OpenAI's encodings, bytes are in another order, and there is a gap before the special tokens.
    ranks = {value: token if token > 255 else 255 - token for token, value in plain.vocab.items()}
    base = Tokenizer(tiktoken.from_ranks(ranks, plain.pattern, {END: 300}))
    further = Tokenizer.train(text, 276, base=base, policy=policies.serial)
    assert sorted(further.merges.values()) == [*range(256, 270), *range(301, 306)]
    assert further.special_tokens == {END: 300}
    values = [further.vocab[token] for token in further.merges.values()]
    assert values[:14] == [*plain.vocab.values()][256:]
    assert len(set(values)) == 19
    assert further.decode(further.encode(text, "all")) == text


def test_special_tokens_keep_their_ids() -> None:
    text = f"the theory of the thing{END} and the other thing{MORE}"
    base = Tokenizer.train(text, 265, special_tokens=[END])
    assert base.special_tokens == {END: 264}
    kept = Tokenizer.train(text, 270, base=base)
    assert kept.special_tokens == {END: 264}
    assert sorted(kept.merges.values()) == [*range(256, 264), *range(265, 270)]
    for names in ([MORE], [END, MORE], [MORE, END], {MORE: 270}, {END: 264, MORE: 270}):
        more = Tokenizer.train(text, 271, base=base, special_tokens=names)
        assert more.special_tokens == {END: 264, MORE: 270}
        assert sorted(more.merges.values()) == sorted(kept.merges.values())
    assert not any(b"|" in value for token, value in kept.vocab.items() if token in kept.merges.values())
    named = Tokenizer.train(text, 270, base=base, special_tokens={END: 264})
    assert named.model.merges == kept.model.merges
    with pytest.raises(ValueError, match=r"special_tokens must not move .* which has the id 264 in base"):
        Tokenizer.train(text, 270, base=base, special_tokens={END: 500})
    placed = Tokenizer.train(text, 270, base=base, special_tokens={MORE: 500})
    assert placed.special_tokens == {END: 264, MORE: 500}
    with pytest.raises(ValueError, match=r"special_tokens must not have the ids .* which new tokens need, got .*266"):
        Tokenizer.train(text, 270, base=base, special_tokens={MORE: 266})


@pytest.mark.parametrize("special_tokens", [[], [MORE], [END, MORE], {MORE: 900}], ids=str)
@pytest.mark.parametrize("phrases", [0, 2])
@pytest.mark.parametrize("base", ["trained", "gpt-2", "gaps", "added", "stop words"])
def test_all_tokens_of_the_base_keep_their_ids(base: str, special_tokens: Any, phrases: int) -> None:
    text = f"the theory of the thing{END} and the other thing of the theory{MORE}" * 3
    model = train(text, 265, special_tokens=[END])
    model = {
        "trained": model,
        "gpt-2": replace(model, byte_ids=tuple(reversed(model.byte_ids)), merges={}),
        "gaps": replace(model, special_tokens={END: 290}),
        "added": replace(model, added_tokens={" of": 300}),
        "stop words": train(text, 266, special_tokens=[END], stop_list_size=3),
    }[base]
    further = train([text], model.vocab_size + 6, base=model, special_tokens=special_tokens, phrases=phrases)
    assert {token: further.vocab[token] for token in model.vocab} == model.vocab
    assert further.special_tokens.items() >= model.special_tokens.items()
    assert (further.byte_ids, further.added_tokens) == (model.byte_ids, model.added_tokens)
    assert min(further.vocab.keys() - model.vocab.keys()) == model.n_vocab
    if MORE in special_tokens:
        assert further.special_tokens[MORE] == max(further.vocab)


SPLITS = [Split.of(name, form) for name, form in zip(PATTERNS, cycle(["none", "NFC"]), strict=False)]


@pytest.mark.parametrize("pattern", SPLITS, ids=str)
def test_every_family(pattern: Split, library: list[str], tmp_path: Path) -> None:
    """Old ids do not move, and text is encoded as before, but for the new merges. What is carried survives."""
    special = ["<s>", "</s>", "<pad>", END]
    model = train(iter(library[:20]), 700, pattern=pattern, special_tokens=special, bos="</s>", chat_template="{{ x }}")
    first = [model.special_tokens[name] for name in special]  # as in Llama 4 and tekken, they have the lowest ids
    moved = Model(
        model.split,
        {(a + 4, b + 4): token + 4 for (a, b), token in model.merges.items()},
        byte_ids=tuple(range(4, 260)),
        special_tokens={name: token - first[0] for name, token in model.special_tokens.items()},
        added_tokens={"<tool>": 900},
        carried={**model.carried, "padding": {"pad_id": 2, "pad_token": "<pad>"}},
    )
    for base in (model, moved):
        Tokenizer(base).export(tmp_path / "base", "transformers")
        names = [MORE, END, "<also>"]
        further = train(iter(library[20:40]), add_tokens=102, base=tmp_path / "base", special_tokens=names)
        assert further.vocab.items() >= base.vocab.items() and further.vocab_size == base.vocab_size + 102
        assert min(further.vocab.keys() - base.vocab.keys()) == base.n_vocab
        assert {**base.special_tokens, MORE: base.n_vocab + 100, "<also>": base.n_vocab + 101} == further.special_tokens
        assert (further.added_tokens, further.flags) == (base.added_tokens, base.flags)
        Tokenizer(further).export(tmp_path / "further", "transformers")
        for name in ("padding", "chat_template", "tokenizer_config"):
            assert Tokenizer.from_file(tmp_path / "further").model.carried.get(name) == further.carried.get(name)
        assert further.carried["chat_template"] == "{{ x }}" and Tokenizer(further).roles == Tokenizer(base).roles
        text = "".join(library[30:32])
        assert old_ids(further, base, Tokenizer(further).encode(text)) == Tokenizer(base).encode(text)


def old_ids(further: Model, base: Model, ids: list[int]) -> list[int]:
    """Replace the ids of new merges with the ids that were merged."""
    parts = {token: pair for pair, token in further.merges.items() if token not in base.vocab}
    while not parts.keys().isdisjoint(ids):
        ids = [part for token in ids for part in parts.get(token, [token])]
    return ids


def test_adding_tokens() -> None:
    text = "the theory of the thing and the other thing"
    base = Tokenizer.train(text, 265, special_tokens=[END])
    assert train(text, add_tokens=4, base=base) == train(text, 269, base=base)
    assert train([text], add_tokens=4, base=base, special_tokens=[MORE], phrases=1).vocab_size == 269
    assert train(text, add_tokens=1, base=base, special_tokens=[MORE]).special_tokens == {END: 264, MORE: 265}
    assert train(text, add_tokens=4, base=base).training["vocab_size"] == 269
    for options, problem in (
        ({"vocab_size": 269, "add_tokens": 4, "base": base}, "add_tokens cannot be combined with vocab_size, got 4"),
        ({"add_tokens": 4}, "add_tokens needs base, got 4; use vocab_size for a new vocabulary"),
        ({"add_tokens": 0, "base": base}, "add_tokens must be at least 1, got 0"),
        (
            {"add_tokens": 1, "base": base, "special_tokens": ["<a>", "<b>"]},
            r"must be at least 2 \(the number of new special tokens\), got 1",
        ),
        ({"add_tokens": 1 << 24, "base": base}, "add_tokens must be at most 2096886, got"),
    ):
        with pytest.raises(ValueError, match=problem):
            train(text, **options)
    with pytest.raises(TypeError, match=r"vocab_size is required: .* or add_tokens, with base"):
        train(text, base=base)
    with pytest.raises(TypeError, match="add_tokens must be an integer, got '4'"):
        train(text, add_tokens="4", base=base)  # type: ignore[arg-type]


def test_extending_with_the_papers_class() -> None:
    tokenizer = BatchTokenizer()
    assert tokenizer.train("aaabdaaabac", 259, base=Tokenizer.train("aaabdaaabac", 257)) == 259
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]


def test_wrong_base() -> None:
    base = Tokenizer.train("the theory of the thing", 260)
    with pytest.raises(ValueError, match=r"vocab_size must be at least 260 \(260 tokens of base"):
        Tokenizer.train("the", 259, base=base)
    with pytest.raises(ValueError, match=r"stop_list_size must be 0 with base, .* got 3"):
        Tokenizer.train("the", 300, base=base, stop_list_size=3)
    with pytest.raises(ValueError, match=r"counted with the pattern gpt2, expected gpt4"):
        train(ChunkCounts.count(["the"], "gpt2"), 300, base=base.model)
    with pytest.raises(FileNotFoundError, match=r"model file not found: base\.model"):
        Tokenizer.train("the", 300, base="base.model")
    with pytest.raises(ValueError, match="special_tokens must not have the ids of other tokens of base"):
        Tokenizer.train("the", 300, base=base, special_tokens={"<s>": 97})
    assert train(ChunkCounts.count("the thing"), 262, base=base) == train("the thing", 262, base=base.model)


def test_merge_tree() -> None:
    tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<a>"])
    tree = tokenizer.merge_tree(258)
    assert [part.value for part in tree.parts] == [b"aa", b"ab"]
    assert str(tokenizer.merge_tree(259)) == "259 '<a>'"
    assert str(tokenizer.merge_tree(200)) == r"200 '\\xc8'"
    with pytest.raises(KeyError, match="token id 300 does not exist; the largest id is 259"):
        tokenizer.merge_tree(300)
    chain = {(97, 97): 256} | {(token, 97): token + 1 for token in range(256, 5000)}
    lines = str(Model(split="a+", merges=chain).merge_tree(5000)).splitlines()
    assert len(lines) == 201
    assert lines[0] == f"5000 {'a' * 60!r}… (4,746 bytes)"
    assert max(len(line) for line in lines) < 400
    assert lines[100].strip("│├─ ") == f"… {2 * (4746 - 100) - 1:,} more tokens"


def test_repr_and_equality_of_deep_trees() -> None:
    chain = {(97, 97): 256} | {(token, 97): token + 1 for token in range(256, 5000)}
    one, two = (Model(split="a+", merges=chain).merge_tree(5000) for _ in range(2))
    assert repr(one) == f"MergeTree(5000, {'a' * 60!r}… (4,746 bytes), 4999, 97)"
    assert one == two and hash(one) == hash(two)
    assert one != two.parts[0] and one != 5000


def test_large_tree_is_truncated() -> None:
    """The tree has 33 million nodes but only 25 different tokens."""
    doubling = {(97, 97): 256} | {(token, token): token + 1 for token in range(256, 279)}
    lines = str(Model(split="a+", merges=doubling).merge_tree(279)).splitlines()
    assert len(lines) == 10_001
    assert lines[-1] == f"… {2**25 - 1 - 10_000:,} more tokens"
