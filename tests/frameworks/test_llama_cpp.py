"""llama.cpp loads what `export --to gguf` writes, and gives the same ids, on text that its pre-tokenizers could split
differently. Where it does split differently, the export says so."""

import itertools
import os
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import llama_cpp
import numpy as np
import pytest
from gguf_models import tiny_model
from helpers import multilingual
from llama_cpp import Llama

from batchbpe import Model, Tokenizer
from batchbpe.formats import gguf_metadata
from batchbpe.formats.gguf import to_values
from batchbpe.formats.pre_tokenizers import KNOWN
from batchbpe.patterns import Split

END = "<|endoftext|>"
LETTERS = [*"abzABéÉßKǅʰªIsStmDन一龥㐀𠀀々ーぁカ한", "re", "LL", "ve"]
MARKS = ["\u0301", "ी", "्", "\ufe0f"]
NUMBERS = [*"017٣²Ⅷ½〇"]
SPACES = [" ", "\t", "\n", "\r", "\xa0", "\u3000", "\u2028", "\x85", "\x0b", "\x0c", "\x1c"]
OTHERS = [*".,!?'-/_($+|~`…।。’😀\u200d\u0378\uffff\U0010ffff\ue000\u180e\x7f"]
PIECES = [*LETTERS, *MARKS, *NUMBERS, *SPACES, *OTHERS]
# Every pair of pieces is a token: wherever texts are split differently, the ids are different.
PAIRS = Tokenizer.train(
    ["".join(pair) for pair in itertools.product(PIECES, repeat=2)], 12_000, pattern=r"[\s\S]+"
).model
CHANCE = random.Random(1)
NASTY = ["".join(CHANCE.choices(PIECES, k=CHANCE.randint(1, 7))) for _ in range(5000)]
NASTY += ["".join(CHANCE.choices([" ", "\n", "'", "a", "S", "1"], k=9)) for _ in range(2000)]
NASTY += ["'s 'S 're 'RE 'Ve 'lL 'd 'x", "I'LL we'Re don'T", "12345678901 ١٢٣٤٥ 1½²3", "a\r\n\r\n b\n\n\nc  \n ", ""]


@pytest.fixture(autouse=True)
def quiet() -> None:
    @llama_cpp.llama_log_callback
    def ignore(*_: Any) -> None:
        pass

    quiet.callback = ignore  # type: ignore[attr-defined]  # it must not be garbage
    llama_cpp.llama_log_set(ignore, None)


def exported(tokenizer: Tokenizer, folder: Path, **options: Any) -> Llama:
    tokenizer.export(folder / "a.gguf", "gguf", **options)
    return Llama(str(folder / "a.gguf"), vocab_only=True, verbose=False)


def differing(tokenizer: Tokenizer, llama: Llama, texts: list[str], special: bool = False) -> Iterator[str]:
    for text in texts:
        ours = tokenizer.encode(text, "all" if special else (), disallowed_special=())
        if ours != llama.tokenize(text.encode(), add_bos=False, special=special):
            yield text


def piece(llama: Llama, token: int) -> bytes:
    """Return the bytes of a token. `Llama.detokenize` cuts off what is longer than 32 bytes."""
    vocab, buffer = llama._model.vocab, llama_cpp.ctypes.create_string_buffer(4096)
    size = llama_cpp.llama_token_to_piece(vocab, token, buffer, len(buffer), 0, True)
    return buffer.raw[:size]


@pytest.mark.parametrize("pre", [each for each in KNOWN if not each.differs], ids=lambda pre: pre.name)
def test_patterns_that_llama_cpp_splits_the_same(pre: Any, tmp_path: Path) -> None:
    stop_words = {b"abc": 20_000} if pre.ignore_merges else {}
    tokenizer = Tokenizer(replace(PAIRS, split=pre.split, special_tokens={END: 19_999}, stop_words=stop_words))
    llama = exported(tokenizer, tmp_path)
    assert llama.metadata["tokenizer.ggml.pre"] == pre.name
    assert not [*differing(tokenizer, llama, NASTY)]
    assert not [*differing(tokenizer, llama, ["abc", " abc", "xabc abc"])]


@pytest.mark.parametrize("pre", [each for each in KNOWN if each.differs], ids=lambda pre: pre.name)
def test_patterns_that_llama_cpp_splits_differently(pre: Any, tmp_path: Path) -> None:
    """If this fails because there is no difference any more, llama.cpp was corrected."""
    merges = PAIRS
    if pre.name == "gpt-4o":  # chosen only if tokens are not what their bytes merge to
        merges = replace(PAIRS, merges={**PAIRS.merges, (97, PAIRS.token_ids[b"ab"]): 19_000})
    tokenizer = Tokenizer(replace(merges, split=pre.split, special_tokens={END: 19_999}))
    with pytest.warns(UserWarning, match=f"llama.cpp splits {re.escape(pre.differs)} differently"):
        llama = exported(tokenizer, tmp_path, allow_inexact=True)
    assert llama.metadata["tokenizer.ggml.pre"] == pre.name
    found = [*differing(tokenizer, llama, NASTY)]
    assert found
    plain = [text for text in found if text.isascii() and not re.search(r"[A-Z0-9]", text)]
    assert not plain


@pytest.mark.parametrize("pattern", ["cl100k", "cl100k-1digit"])
def test_cl100k_differs_only_at_the_end_of_a_text(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(replace(PAIRS, split=Split.of(pattern), special_tokens={END: 19_999}))
    with pytest.warns(UserWarning, match="splits whitespace with a line break at the end of a text differently"):
        llama = exported(tokenizer, tmp_path, allow_inexact=True)
    found = [*differing(tokenizer, llama, NASTY)]
    assert found and all(re.search(r"[\r\n]\s+\Z", text) for text in found)


@pytest.mark.filterwarnings("ignore:llama.cpp splits words")
@pytest.mark.parametrize("pattern", ["minicpm", "tekken"])
def test_tokens_that_are_not_merged(pattern: str, tmp_path: Path) -> None:
    """llama.cpp looks the chunk up, as the warning says."""
    merges = {(97, 98): 256, (98, 99): 257, (97, 257): 258}
    tokenizer = Tokenizer(Model(Split.of(pattern), merges, special_tokens={END: 259}))
    with pytest.warns(UserWarning, match="llama.cpp encodes the chunk b'abc' as one token, and batchbpe as 2"):
        llama = exported(tokenizer, tmp_path, allow_inexact=True)
    assert [*differing(tokenizer, llama, ["abc", "ab", "bc", "abcd", "xabc"])] == ["abc"]


@pytest.mark.parametrize("pattern", ["gpt4", "gpt2", "qwen2", "qwen3.5", "deepseek", "starcoder", "minicpm", "bloom"])
def test_trained_vocabularies(pattern: str, library: list[str], tmp_path: Path) -> None:
    texts = [*library[:150], multilingual(100_000)]
    special = [END, "<|user|>", "<|assistant|>"]
    tokenizer = Tokenizer.train(texts, 3000, pattern=pattern, special_tokens=special)
    llama = exported(tokenizer, tmp_path)
    pieces = [text[start : start + 3000] for text in texts for start in range(0, len(text), 3000)]
    assert not [*differing(tokenizer, llama, pieces)]
    mixed = [f"{special[n % 3]} {text[:50]}{special[n % 2]}" for n, text in enumerate(pieces[:100])]
    assert not [*differing(tokenizer, llama, mixed, special=True)]
    assert not [*differing(tokenizer, llama, mixed)]
    assert all(piece(llama, token) == value for token, value in tokenizer.vocab.items())
    assert (llama.token_eos(), llama.n_vocab()) == (tokenizer.special_tokens[END], tokenizer.n_vocab)


def test_other_tokens(tmp_path: Path) -> None:
    """Added tokens are found in every text, gaps have no text, and bytes that text never has may be missing."""
    byte_ids = tuple(None if byte == 0xF5 else byte for byte in range(256))
    added = {" " * size: 300 + size for size in range(2, 20)} | {"õ": 299}
    model = Model(
        Split.of("gpt2"),
        {(97, 98): 256, (256, 99): 257},
        special_tokens={END: 400},
        added_tokens=added,
        decode_only={350: b"abcd", 351: b" \xff"},
        byte_ids=byte_ids,
    )
    tokenizer = Tokenizer(model)
    llama = exported(tokenizer, tmp_path)
    texts = [f"abc{' ' * size}abcd õ{END}" for size in range(45)]
    assert not [*differing(tokenizer, llama, texts)]
    assert not [*differing(tokenizer, llama, texts, special=True)]
    assert all(piece(llama, token) == value for token, value in tokenizer.vocab.items())
    assert piece(llama, 380) == b""


BY_NAME: list[dict[str, Any]] = [
    {"special_tokens": {END: 300, "</s>": 256, "<|tool_response>": 257}},
    {"special_tokens": {END: 300, "</s>": 256, "<|plamo:eos|>": 257}, "eos": "<|plamo:eos|>"},
    {"special_tokens": {END: 300, "<|end|>": 256, "<|return|>": 257, "<|call|>": 258}},
    {"special_tokens": {END: 300, "<|end|>": 256, "<|flush|>": 257, "<|calls|>": 258}},
    {"special_tokens": {END: 300, "<|channel|>": 256}},
    {"added_tokens": {"<EOT>": 256, "<PRE>": 257}},
    {"decode_only": {256: b"</s>", 257: b"<|message|>"}},
    {"split": Split.of("llama3"), "stop_words": {b"<|start|>": 256, b"[EOS]": 257}},
]


@pytest.mark.parametrize("fields", BY_NAME)
def test_names_that_change_the_type_of_a_token(fields: dict[str, Any], tmp_path: Path) -> None:
    """What the export warns about happens, and `from_file` does the same as llama.cpp."""
    eos = fields.get("eos", END)
    given = {name: value for name, value in fields.items() if name != "eos"}
    carried = {"tokenizer_config": {"eos_token": eos}}
    tokenizer = Tokenizer(Model(**{"split": Split.of("gpt2"), "merges": {}, "special_tokens": {END: 300}, **given}))
    tokenizer = Tokenizer(replace(tokenizer.model, carried=carried))
    with pytest.warns(UserWarning, match="llama.cpp (finds|never finds|treats)"):
        llama = exported(tokenizer, tmp_path, allow_inexact=True)
    loaded = Tokenizer.from_file(tmp_path / "a.gguf")
    names = [tokenizer.decode([token]) for token in range(256, 300) if token in tokenizer.vocab]
    texts = [*names, *(f"a {name} b{name}" for name in names)]
    modes = (False, True)
    assert any([*differing(tokenizer, llama, texts, special)] for special in modes)
    assert not any([*differing(loaded, llama, texts, special)] for special in modes)


@pytest.mark.parametrize("token_type", [1, 3, 4, 5])
def test_loaded_types(token_type: int, tmp_path: Path) -> None:
    """Types are changed because of names. A byte is encoded as its token whatever its type."""
    merges = {(97, 98): 256, (98, 99): 257}
    values = to_values(Model(Split.of("gpt2"), merges, special_tokens={END: 258}))
    values["tokenizer.ggml.merges"].append("a b")
    names = ["</s>", "<|start|>", "<PRE>", "<|end|>", "other"]
    values["tokenizer.ggml.tokens"] += names
    values["tokenizer.ggml.token_type"] += [token_type] * len(names)
    values["tokenizer.ggml.token_type"][ord("~")] = token_type
    (tmp_path / "a.gguf").write_bytes(gguf_metadata.to_bytes(values))
    loaded, llama = Tokenizer.from_file(tmp_path / "a.gguf"), Llama(str(tmp_path / "a.gguf"), vocab_only=True)
    texts = ["abc~ab", *(f"a {name} b{name}" for name in names)]
    assert not any([*differing(loaded, llama, texts, special)] for special in (False, True))


def test_bos_and_eos(tmp_path: Path) -> None:
    processor = {"type": "RobertaProcessing", "sep": ["</s>", 257], "cls": ["<s>", 256]}
    carried = {"post_processor": {**processor, "trim_offsets": True, "add_prefix_space": False}}
    model = Model(Split.of("llama3"), {}, {b"the": 258}, special_tokens={"<s>": 256, "</s>": 257}, carried=carried)
    assert exported(Tokenizer(model), tmp_path).tokenize(b"the", add_bos=True) == [256, 258, 257]
    without = replace(model, carried={})
    assert exported(Tokenizer(without), tmp_path).tokenize(b"the", add_bos=True) == [258]


MODELS = Path(os.environ.get("BATCHBPE_TEST_MODELS") or Path(__file__).parents[2] / ".cache/models")
PUBLISHED = [*sorted(MODELS.glob("tokenizers/*/tokenizer.json")), *sorted(MODELS.glob("ranks/*"))]
KNOWN_DIFFERENCES = {
    "does not normalize": r"[^\x00-\x7f]",
    "combining marks": r"[^\x00-\x7f]",
    "outside ASCII": r"[^\x00-\x7f]",
    "U+2028 and U+3000": r"[\u2028\u3000\s]",
    "the vocabulary lacks": r"[^\x20-\x7e]",
}
"""What must be in a text with different ids, for each warning."""


@pytest.mark.parametrize("path", PUBLISHED or [None], ids=lambda path: path and path.parent.name)
def test_published_tokenizers(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        pytest.skip(f"there are no published tokenizers in {MODELS}; run make test-models")
    if '"Unigram"' in path.read_text("utf-8", "ignore")[:100_000_000] and path.suffix == ".json":
        with pytest.raises(ValueError, match="only byte-level BPE"):
            Tokenizer.from_file(path)
        return
    tokenizer = Tokenizer.from_file(path if path.suffix == ".model" else path.parent)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        llama = exported(tokenizer, tmp_path, allow_inexact=True)
        messages = [str(each.message) for each in caught]
    allowed = [pattern for message, pattern in KNOWN_DIFFERENCES.items() if any(message in each for each in messages)]
    real = (MODELS / "texts/code.txt").read_text("utf-8", "ignore")[:300_000]
    real += (MODELS / "texts/translations.txt").read_text("utf-8", "ignore")[:300_000]
    texts = NASTY[:2000] + [real[start : start + 2000] for start in range(0, len(real), 2000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about bytes that the vocabulary lacks
        found = [*differing(tokenizer, llama, texts)]
    assert not [text for text in found if not any(re.search(pattern, text) for pattern in allowed)]
    assert len(found) < len(texts) / 2
    assert Tokenizer.from_file(tmp_path / "a.gguf").vocab == tokenizer.vocab


def test_a_vocabulary_in_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script in docs/formats.md replaces the vocabulary of a model. llama.cpp then generates text with it."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs/formats.md"
    script = next(
        block for block in re.findall(r"(?s)```python\n(.*?)```", page.read_text("utf-8")) if "GGUFWriter" in block
    )
    tokenizer = Tokenizer.train(multilingual(50_000), 500, special_tokens=[END])
    tokenizer.export("vocabulary.gguf", "gguf", chat_template="{{ messages }}")
    tiny_model(Path("model.gguf"), 499)
    with pytest.raises(SystemExit, match="the vocabulary has 500 tokens, but the model has only 499 embeddings"):
        exec(compile(script, "formats.md", "exec"), {})
    tiny_model(Path("model.gguf"), 512)  # as if padded to a multiple of 64
    exec(compile(script, "formats.md", "exec"), {})
    llama = Llama("new.gguf", n_ctx=64, verbose=False)
    assert llama.tokenize(b"hello", add_bos=False) == tokenizer.encode("hello")
    assert (llama.n_vocab(), llama.metadata["general.name"]) == (512, "tiny")
    assert llama.metadata["tokenizer.chat_template"] == "{{ messages }}"
    llama.eval(tokenizer.encode("hello"))
    assert 0 <= llama.sample(temp=0) < 512
    before, after = ({t.name: t.data for t in gguf.GGUFReader(name).tensors} for name in ("model.gguf", "new.gguf"))
    assert before.keys() == after.keys() and all(np.array_equal(before[name], after[name]) for name in before)
    assert Tokenizer.from_file("new.gguf") == tokenizer
