"""Vocabularies exported to tiktoken, tokenizers, transformers and minbpe produce the same ids there, and load back."""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from pydoc_data import topics
from typing import Any

import pytest
import regex
import tiktoken
import tokenizers
from helpers import examples, multilingual, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, Model, Tokenizer

END, FIM = "<|endoftext|>", "<|fim|>"
OPENAI = os.environ.get("BATCHBPE_TEST_TIKTOKEN")
TEXT = Path(__file__).read_text(encoding="utf-8")


CORPORA = {
    "plain": lambda _: "\n".join(topics.topics.values()),
    "code": lambda library: "".join(library)[:800_000],
    "multilingual": lambda _: multilingual(400_000),
}
SPECIAL: dict[str, list[str]] = {"plain": [], "special": [END, FIM]}


@pytest.fixture(
    scope="module",
    params=[
        ("plain", "plain", "gpt4"),
        ("code", "plain", "gpt4"),
        ("code", "special", "cl100k"),
        ("code", "special", "o200k"),
        ("multilingual", "plain", "gpt2"),
        ("multilingual", "special", "gpt4"),
    ],
    ids="-".join,
)
def trained(request: pytest.FixtureRequest, library: list[str]) -> tuple[Tokenizer, str]:
    corpus, special, pattern = request.param
    text = CORPORA[corpus](library)
    tokenizer = Tokenizer.train(iter([text]), 3000, pattern=pattern, special_tokens=SPECIAL[special])
    return tokenizer, END.join([text[: len(text) // 2], text[len(text) // 2 :]]) if special == "special" else text


class MinBPE:
    """Reads a model file as minbpe does, and encodes with it."""

    def __init__(self, path: Path, version: str) -> None:
        lines = iter(path.read_text(encoding="utf-8").split("\n")[:-1])
        assert next(lines).strip() == version
        self.pattern = regex.compile(next(lines).strip())
        rows = (next(lines).strip().split() for _ in range(int(next(lines).strip())))
        self.special = {name: int(token) for name, token in rows}
        self.merges = {tuple(map(int, line.split())): 256 + rank for rank, line in enumerate(lines)}
        self.cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Encode a text with all special tokens allowed."""
        split = f"({'|'.join(map(regex.escape, self.special))})" if self.special else "(?!)"
        ids: list[int] = []
        for part in regex.split(split, text):
            if part in self.special:
                ids.append(self.special[part])
            else:
                for chunk in self.pattern.findall(part):
                    if chunk not in self.cache:
                        self.cache[chunk] = self.encode_chunk(list(chunk.encode()))
                    ids += self.cache[chunk]
        return ids

    def encode_chunk(self, ids: list[int]) -> list[int]:
        while True:
            pairs = set(pairwise(ids)) & self.merges.keys()
            if not pairs:
                return ids
            pair = min(pairs, key=self.merges.__getitem__)
            merged: list[int] = []
            for token in ids:
                if merged and (merged[-1], token) == pair:
                    merged[-1] = self.merges[pair]
                else:
                    merged.append(token)
            ids = merged


def loaders(tokenizer: Tokenizer, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield, for each format, its name and a function from text to ids that uses the exported file."""
    tokenizer.export(folder / "mine.tiktoken", "tiktoken")
    rows = [line.split() for line in (folder / "mine.tiktoken").read_bytes().splitlines()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in rows}
    special = dict(tokenizer.special_tokens)
    encoding = tiktoken.Encoding("mine", pat_str=tokenizer.pattern, mergeable_ranks=ranks, special_tokens=special)
    yield "tiktoken", lambda text: encoding.encode(text, allowed_special="all")
    converted = tokenizer.to_tiktoken()
    yield "to_tiktoken", lambda text: converted.encode(text, allowed_special="all")

    tokenizer.export(folder / "tokenizer.json", "huggingface")
    fast = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    yield "tokenizers", lambda text: fast.encode(text, add_special_tokens=False).ids

    from transformers import AutoTokenizer

    tokenizer.export(folder / "folder", "transformers")
    auto = AutoTokenizer.from_pretrained(folder / "folder")
    yield "transformers", lambda text: auto.encode(text, add_special_tokens=False)

    for form, version in (("minbpe", "minbpe v1"), ("batchbpe-v1", "BatchBPE v1")):
        tokenizer.export(folder / f"{form}.model", form)
        reader = MinBPE(folder / f"{form}.model", version)
        yield form, reader.encode


def test_same_ids_of_real_text(trained: tuple[Tokenizer, str], tmp_path: Path) -> None:
    tokenizer, text = trained
    ids = tokenizer.encode(text, "all")
    for tool, encode in loaders(tokenizer, tmp_path):
        assert encode(text) == ids, tool
    for name in ("mine.tiktoken", "tokenizer.json", "folder", "minbpe.model", "batchbpe-v1.model"):
        special = {"special_tokens": tokenizer.special_tokens, "pattern": tokenizer.pattern}
        load: Any = Tokenizer.from_tiktoken if name.endswith("tiktoken") else Tokenizer.from_file
        back = load(tmp_path / name, **special if name.endswith("tiktoken") else {})
        assert (back.merges, back.special_tokens, back.pattern) == (
            tokenizer.merges,
            tokenizer.special_tokens,
            tokenizer.pattern,
        ), name
        assert back.encode(text, "all") == ids


@pytest.fixture(scope="module", params=PATTERNS)
def loaded(request: pytest.FixtureRequest, library: list[str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    sample = "".join(library)[:300_000] + multilingual(100_000)
    tokenizer = Tokenizer.train(iter([sample]), 1000, pattern=request.param, special_tokens=[END, FIM])
    return tokenizer, list(loaders(tokenizer, tmp_path_factory.mktemp("loaded")))


@examples(150)  # for each pattern
@given(text=st.lists(st.one_of(texts, st.sampled_from([END, FIM, END + FIM])), max_size=4).map("".join))
def test_hyp_same_ids_of_any_text(loaded: Any, text: str) -> None:
    tokenizer, tools = loaded
    ids = tokenizer.encode(text, "all")
    for tool, encode in tools:
        assert encode(text) == ids, tool
    assert tokenizer.decode(ids) == text


@pytest.mark.filterwarnings("ignore")
def test_stop_words_in_transformers(library: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer
    from transformers import dynamic_module_utils as dynamic

    monkeypatch.setattr(dynamic, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    text = "".join(library)[:2_000_000]
    trained = Tokenizer.train(iter([text]), 1999, stop_list_size=50, special_tokens=[END])
    twice = {**trained.model.stop_words, trained.vocab[1500]: 1999}  # which tokenizer.json cannot represent
    tokenizer = Tokenizer(replace(trained.model, stop_words=twice))
    text = f"{text[:200_000]}{END} the\n{END}{END}the"
    ids = tokenizer.encode(text, "all")
    tokenizer.export(tmp_path / "first", "transformers")
    first = AutoTokenizer.from_pretrained(tmp_path / "first", trust_remote_code=True)
    first.save_pretrained(tmp_path / "second")
    for auto in (first, AutoTokenizer.from_pretrained(tmp_path / "second", trust_remote_code=True)):
        assert auto.encode(text, add_special_tokens=False) == ids
        assert auto.decode(ids) == text
        assert auto.decode(ids, skip_special_tokens=True) == text.replace(END, "")
        assert (len(auto), auto.eos_token_id) == (2000, tokenizer.eot_token)
        assert auto.convert_tokens_to_ids(auto.convert_ids_to_tokens(ids)) == ids
        assert Tokenizer.from_huggingface(auto).merges == tokenizer.merges
        assert auto(["the", f"a{END}"])["input_ids"] == [tokenizer.encode("the"), tokenizer.encode(f"a{END}", "all")]
    assert Tokenizer.from_file(tmp_path / "first").stop_words == tokenizer.stop_words
    first.add_tokens(["<new>"])
    first.add_special_tokens({"pad_token": "<pad>"})
    assert first.convert_tokens_to_ids(["<new>", "<pad>"]) == [2000, 2001]
    assert len(first) == 2002
    first.save_pretrained(tmp_path / "third")
    for auto in (first, AutoTokenizer.from_pretrained(tmp_path / "third", trust_remote_code=True)):
        assert auto.encode("the<new><pad>", add_special_tokens=False) == [*tokenizer.encode("the"), 2000, 2001]
        assert auto.decode([*tokenizer.encode("the"), 2000, 2001]) == "the<new><pad>"
        assert auto.decode([2001, 2000], skip_special_tokens=True) == "<new>"
        assert auto.convert_tokens_to_string(auto.tokenize("the<new>x")) == "the<new>x"
        assert Tokenizer.from_huggingface(auto).encode("the<new>", "all") == [*tokenizer.encode("the"), 2000]
    assert Tokenizer.from_file(tmp_path / "third").token_to_id("<pad>") == 2001
    gaps = Tokenizer(Model(split="[a-z]+", merges={}, stop_words={b"the": 300}, special_tokens={END: 400}))
    gaps.export(tmp_path / "gaps", "transformers")
    auto = AutoTokenizer.from_pretrained(tmp_path / "gaps", trust_remote_code=True)
    auto.add_tokens([f"<{n}>" for n in range(200)])
    assert (len(auto), auto.convert_tokens_to_ids("<0>"), auto.convert_tokens_to_ids("<199>")) == (601, 401, 600)
    assert auto.encode(f"the{END}<1>", add_special_tokens=False) == [300, 400, 402]
    for name, form in (("a.tiktoken", "tiktoken"), ("a.json", "huggingface")):
        with pytest.raises(ValueError, match=r"tokens \d+ and \d+ are both b'.*allow_inexact=True"):
            tokenizer.export(tmp_path / name, form)  # type: ignore[arg-type]
        assert not (tmp_path / name).exists()
        tokenizer.export(tmp_path / name, form, allow_inexact=True)  # type: ignore[arg-type]
        assert (tmp_path / name).exists()
    with pytest.raises(
        ValueError,
        match=r"minbpe v1 does not support stop words; the model has 51, such as b'.*'; train with stop_list_size=0 or",
    ):
        tokenizer.export(tmp_path / "a.model", "minbpe")


def test_two_tokens_with_the_same_bytes(tmp_path: Path) -> None:
    merges = {(97, 98): 256, (98, 99): 257, (256, 99): 258, (97, 257): 259}
    tokenizer = Tokenizer(Model(split=r"[a-z]+|[^a-z]", merges=merges))
    with pytest.raises(ValueError, match=r"tokens 258 and 259 are both b'abc', .*allow_inexact=True"):
        tokenizer.export(tmp_path / "a.json", "huggingface")
    with pytest.raises(ValueError, match=r"encoding by ranks would differ .* 259, b'abc' = b'a' \+ b'bc'; use format="):
        tokenizer.export(tmp_path / "a.tiktoken", "tiktoken")
    tokenizer.export(tmp_path / "folder", "transformers")
    assert (tmp_path / "folder" / "batchbpe.model").exists()


def test_tokenizers_trained_by_hugging_face(library: list[str], tmp_path: Path) -> None:
    text = "".join(library)[:1_000_000]
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=alphabet, special_tokens=[END], show_progress=False
    )
    theirs.train_from_iterator([text], trainer)
    theirs.save(str(tmp_path / "tokenizer.json"))
    for source in (theirs, tmp_path / "tokenizer.json", str(tmp_path)):
        ours = Tokenizer.from_huggingface(source)
        assert ours.encode(text + END, "all") == theirs.encode(text + END).ids
    assert ours.get_vocab() == theirs.get_vocab()
    assert ours.get_vocab_size() == theirs.get_vocab_size()
    assert [ours.id_to_token(token) for token in range(2000)] == [theirs.id_to_token(token) for token in range(2000)]
    assert [ours.token_to_id(token) for token in ("the", END, "nope nope")] == [
        theirs.token_to_id(token) for token in ("the", END, "nope nope")
    ]
    fields = json.loads(theirs.to_str())
    fields["model"]["merges"] = [" ".join(merge) for merge in fields["model"]["merges"]]
    (tmp_path / "old.json").write_text(json.dumps(fields))
    assert Tokenizer.from_file(tmp_path / "old.json").merges == ours.merges


def isolated(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("name", "steps", "use_regex"),
    [
        ("smollm", [{"type": "Digits", "individual_digits": True}], True),
        ("starcoder", [isolated(r"\p{N}")], True),
        (
            "deepseek",
            [
                isolated(r"\p{N}{1,3}"),
                isolated("[一-龥぀-ゟ゠-ヿ]+"),
                isolated(
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
            ],
            False,
        ),
    ],
)
def test_tokenizer_json_that_splits_in_steps(
    name: str, steps: list[Any], use_regex: bool, library: list[str], tmp_path: Path
) -> None:
    import tokenizers

    text = "".join(library)[:200_000] + multilingual(100_000)
    tokenizer = Tokenizer.train(iter([text]), 1000, pattern=name)
    tokenizer.export(tmp_path / "a.json", "huggingface")
    fields = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
    fields["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [*steps, byte_level]}
    (tmp_path / "b.json").write_text(json.dumps(fields), encoding="utf-8")
    loaded = Tokenizer.from_huggingface(tmp_path / "b.json")
    assert loaded == tokenizer
    assert loaded.encode(text) == tokenizers.Tokenizer.from_file(str(tmp_path / "b.json")).encode(text).ids


def test_tokenizer_json_converted_from_ranks(library: list[str], tmp_path: Path) -> None:
    """As in Llama 3 and OpenAI's encodings: a merge for every two parts of a token, and `ignore_merges`."""
    text = "".join(library)[:500_000]
    ours = Tokenizer.train(iter([text]), 1500, special_tokens=[END])
    ours.export(tmp_path / "a.json", "huggingface")
    fields = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    vocab = fields["model"]["vocab"]
    cuts = [(vocab[name], name[:i], name[i:]) for name in vocab if name != END for i in range(1, len(name))]
    merges = [
        [first, last] for _, first, last in sorted(cuts, key=lambda cut: cut[0]) if first in vocab and last in vocab
    ]
    assert len(merges) > 1.2 * len(ours.merges)
    fields["model"] |= {"merges": merges, "ignore_merges": True}
    fields["pre_tokenizer"]["pretokenizers"][0] |= {"behavior": "Isolated", "invert": False}
    (tmp_path / "b.json").write_text(json.dumps(fields), encoding="utf-8")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "b.json"))
    loaded = Tokenizer.from_file(tmp_path / "b.json")
    assert loaded.merges == ours.merges
    assert loaded.encode(text) == theirs.encode(text).ids


def test_isolated_split_keeps_text_between_matches() -> None:
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\p{L}+|\d"), behavior="isolated")
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, byte_level])
    options = {"initial_alphabet": byte_level.alphabet(), "show_progress": False}
    text = "one, two -- (12) three; four --\n\n\t(34) " * 20
    theirs.train_from_iterator([text], tokenizers.trainers.BpeTrainer(vocab_size=300, **options))
    ours = Tokenizer.from_huggingface(theirs)
    assert ours.encode(text) == theirs.encode(text).ids
    assert ours.decode(ours.encode(text)) == text


def test_custom_pattern_in_hugging_face(tmp_path: Path) -> None:
    pattern = r" ?[\p{L}'’]+(?!\p{N})|(?:\p{L}|[^\s\p{L}])+|\s+"
    tokenizer = Tokenizer.train(iter([TEXT]), 400, pattern=pattern)
    tokenizer.export(tmp_path / "a.json", "huggingface")
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "a.json")).encode(TEXT).ids == tokenizer.encode(TEXT)
    assert Tokenizer.from_file(tmp_path / "a.json").pattern == pattern


def test_special_token_that_is_a_prefix_of_another() -> None:
    tokenizer = Tokenizer.train("the theory", 262, special_tokens=["<a>", "<a>\n"])
    with pytest.raises(ValueError, match=r"'<a>\\n' starts with '<a>', and tiktoken may match either; rename"):
        tokenizer.to_tiktoken()


def test_minbpe_basic_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "basic.model").write_text("minbpe v1\n\n0\n97 98\n256 32\n")
    tokenizer = Tokenizer.from_file(tmp_path / "basic.model")
    assert tokenizer.encode("ab ab\nab") == [257, 256, 10, 256]
    tokenizer.export(tmp_path / "again.model", "minbpe")
    tokenizer.export(tmp_path / "basic.json", "huggingface")
    assert tokenizers.Tokenizer.from_file(str(tmp_path / "basic.json")).encode("ab ab\nab").ids == [257, 256, 10, 256]
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "basic.model").read_bytes()


@pytest.mark.skipif(not OPENAI, reason="BATCHBPE_TEST_TIKTOKEN is not set to a folder with OpenAI's rank files")
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_openai_vocabularies_in_other_tools(name: str, library: list[str], tmp_path: Path) -> None:
    ours = Tokenizer.from_file(Path(OPENAI or "") / f"{name}.tiktoken")
    assert ours.name == name
    text = "".join(library)[:2_000_000] + END + multilingual(200_000)
    ids = ours.encode(text, "all")
    assert ours.to_tiktoken().encode(text, allowed_special="all") == ids
    ours.export(tmp_path / "tokenizer.json", "huggingface")
    fast = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert fast.encode(text, add_special_tokens=False).ids == ids
    assert Tokenizer.from_huggingface(fast).encode(text, "all") == ids
    assert Tokenizer.from_tiktoken(ours.to_tiktoken()).merges == ours.merges
