"""Irregular vocabularies, as published ones are, give the ids of Hugging Face and of the reference.

Several merges make one token, merges use tokens that later merges make, no merge reaches some tokens, bytes are
missing, ids have gaps, and added tokens have any flags. The alphabet is tiny, so that this happens in short texts.
"""

import json
from collections import Counter
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
import tokenizers
from helpers import FUZZ_FACTOR, examples
from hypothesis import event, given, target
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from batchbpe import PATTERNS, Tokenizer, reference
from batchbpe.formats.byte_level import from_byte_level, to_byte_level
from batchbpe.formats.huggingface import to_json
from batchbpe.model import Model

SYLLABLES = ("a", "b", "c", " ", "é")
BYTES = sorted(set("".join(SYLLABLES).encode()))
ADDED = ("<s>", "<t>", "<s><t>", " ab", "ba ", "  ", "cé", "ce\u0301", "s>", "cab")
FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
WHOLE = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
LLAMA = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PRE_TOKENIZERS = (
    WHOLE,
    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA), "isolated"), WHOLE]),
)
PIECES = (*SYLLABLES, *ADDED, "ab", "e\u0301", "\n", "_", "    ")


class Irregular(NamedTuple):
    """A tokenizer of Hugging Face's library, what is irregular about it, and texts that contain its tokens."""

    tokenizer: tokenizers.Tokenizer
    merges: list[tuple[str, str]]
    kinds: set[str]
    texts: list[str]


@st.composite
def irregular(draw: st.DrawFn) -> Irregular:
    letters = [to_byte_level(bytes([byte])) for byte in BYTES]
    syllables = st.sampled_from([*letters, *(to_byte_level(each.encode()) for each in SYLLABLES)])
    words = st.lists(syllables, min_size=2, max_size=5).map("".join)
    tokens = draw(st.lists(words, min_size=1, max_size=8, unique=True))
    # Parts of tokens are tokens too: otherwise hardly anything could be merged.
    parts = {token[at:end] for token in tokens for at in range(len(token)) for end in range(at + 2, len(token))}
    tokens += draw(st.permutations(sorted(parts)))[: draw(st.integers(0, len(parts)))]
    tokens = list(dict.fromkeys(tokens))
    present = draw(st.sets(st.sampled_from(letters), min_size=1)) if draw(st.booleans()) else set(letters)
    others = [to_byte_level(bytes([byte])) for byte in range(256) if byte not in BYTES]
    vocab = [*sorted(present), *tokens, *(others if draw(st.booleans()) else [])]
    pairs = [(t[:at], t[at:]) for t in tokens for at in range(1, len(t)) if {t[:at], t[at:]} <= {*vocab}]
    merges = draw(st.permutations(pairs))[: draw(st.integers(len(pairs) // 2, len(pairs)))]

    added = draw(st.lists(st.sampled_from([name for name in ADDED if name not in vocab]), max_size=4, unique=True))
    with_gaps = draw(st.booleans())
    # Hugging Face gives new ids to added tokens that the vocabulary lacks, which only works without gaps.
    listed = [name for name in added if name.isascii() and (with_gaps or draw(st.booleans()))]
    added = [name for name in added if name in listed or not with_gaps]
    vocab += [*listed, *draw(st.sampled_from([[], ["a b"], ["  ", "語"]]))]
    vocab = list(dict.fromkeys(vocab))
    ids = draw(st.permutations(range(len(vocab))))
    bpe = models.BPE(
        {token: 3 * number if with_gaps else number for token, number in zip(vocab, ids, strict=True)},
        merges,
        ignore_merges=draw(st.booleans()),
    )
    tokenizer = tokenizers.Tokenizer(bpe)
    tokenizer.pre_tokenizer = draw(st.sampled_from(PRE_TOKENIZERS))
    tokenizer.normalizer = draw(st.sampled_from([None, None, normalizers.NFC(), normalizers.NFD()]))
    tokenizer.decoder = decoders.ByteLevel()
    flags: dict[str, set[str]] = {name: draw(st.sets(st.sampled_from(FLAGS))) for name in added}
    for name in added:
        token = AddedToken(name, **{flag: flag in flags[name] for flag in FLAGS})
        (tokenizer.add_special_tokens if draw(st.booleans()) else tokenizer.add_tokens)([token])
    spelled = [(from_byte_level(token) or b"").decode(errors="ignore") for token in tokens]
    pieces = st.sampled_from(spelled) | st.sampled_from(PIECES)
    texts = draw(st.lists(st.lists(pieces, max_size=8).map("".join), max_size=8))
    kinds = kinds_of(tokens, present, letters, merges, with_gaps, flags)
    return Irregular(tokenizer, merges, kinds, [*spelled, *texts])


def kinds_of(
    tokens: list[str],
    present: set[str],
    letters: list[str],
    merges: list[tuple[str, str]],
    with_gaps: bool,
    flags: dict[str, set[str]],
) -> set[str]:
    made = [a + b for a, b in merges]
    first = {token: made.index(token) for token in made}
    kinds = {
        "several merges for a token": len(made) > len(set(made)),
        "a token that no merge makes": bool(set(tokens) - set(made)),
        "a merge before its parts": any(first.get(part, -1) > at for at, pair in enumerate(merges) for part in pair),
        "a missing byte": len(present) < len(letters),
        "gaps between ids": with_gaps,
        **{f"a token with {flag}": any(flag in each for each in flags.values()) for flag in FLAGS},
        "a token without normalized": any("normalized" not in each for each in flags.values()),
    }
    return {kind for kind, is_true in kinds.items() if is_true}


def reference_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    model = tokenizer.model
    return reference.encode(
        text,
        model.split,
        model.merges,
        {word.decode(errors="surrogateescape"): token for word, token in model.stop_words.items()},
        model.found_tokens,
        flags={name: model.flags_of(name) for name in model.found_tokens},
        byte_ids=model.byte_ids,
    )


@pytest.mark.filterwarnings("ignore:the vocabulary lacks")
def test_hyp_irregular_vocabularies() -> None:
    seen: Counter[str] = Counter()

    @examples(400)
    @given(irregular())
    def check(case: Irregular) -> None:
        theirs, merges, kinds, texts = case
        ours = Tokenizer.from_huggingface(theirs)
        other = json.loads(theirs.to_str())
        other["model"]["ignore_merges"] = not other["model"]["ignore_merges"]
        flipped = tokenizers.Tokenizer.from_str(json.dumps(other))
        made = Counter(theirs.token_to_id(a + b) for a, b in merges)
        for text in texts:
            ids = theirs.encode(text).ids
            assert ours.encode(text, "all") == ids
            assert reference_ids(ours, text) == ids
            kinds |= {"ids depend on ignore_merges"} if flipped.encode(text).ids != ids else set()
            kinds |= {"several merges for a token of the text"} if any(made[token] > 1 for token in ids) else set()
        for kind in kinds:
            event(kind)
            seen[kind] += 1
        target(len(kinds), label="irregularities")

    check()
    assert len(seen) == 12
    assert min(seen.values()) >= 20 * FUZZ_FACTOR, seen


@pytest.mark.parametrize("flags", [each for size in range(5) for each in combinations(FLAGS, size)], ids="-".join)
@examples(60)  # for each combination
@given(text=st.lists(st.sampled_from(["  ", " ", "a", "<s>", "\n", "_"]), max_size=10).map("".join))
def test_hyp_tokens_next_to_spaces_and_each_other(flags: tuple[str, ...], text: str) -> None:
    """A token that strips spaces may leave nothing of the next one, if that consists of spaces."""
    letters = {to_byte_level(bytes([byte])): byte for byte in range(256)}
    theirs = tokenizers.Tokenizer(models.BPE(letters, []))
    theirs.pre_tokenizer, theirs.decoder = WHOLE, decoders.ByteLevel()
    theirs.add_tokens([AddedToken(name, **{flag: flag in flags for flag in FLAGS}) for name in ("  ", "<s>")])
    ours = Tokenizer.from_huggingface(theirs)
    ids = theirs.encode(text).ids
    assert ours.encode(text, "all") == ids
    assert reference_ids(ours, text) == ids


@pytest.mark.filterwarnings("ignore:the vocabulary lacks")
@pytest.mark.parametrize("data", [b"!\xff", b"ab!\xff", b"ab!", b"!!", b"!a!\xff!"])
def test_missing_bytes_before_invalid_ones(data: bytes) -> None:
    tokenizer = Tokenizer(Model(r"\w+|\s+|[^\w\s]", {}, byte_ids=[None if byte == 33 else byte for byte in range(256)]))
    assert tokenizer.encode_bytes(data) == [*data.replace(b"!", b"")]


def test_chunks_are_not_text() -> None:
    """Encoding chunks, as inspecting does, does not count bytes that the vocabulary lacks."""
    byte_ids = tuple(None if byte == 1 else byte for byte in range(256))
    tokenizer = Tokenizer(Model(PATTERNS["gpt4"], {}, byte_ids=byte_ids))
    ids, _ = tokenizer.core_encoder.encode_chunks(np.array([97, 1], np.uint8), np.array([0, 2], np.int64), None)
    assert ids.tolist() == tokenizer.encode("a") == [97]
    with pytest.warns(UserWarning, match="lacks 1 byte"):
        tokenizer.encode("a\x01")


def test_single_words_are_looked_up_where_they_are_not_found() -> None:
    letters = {to_byte_level(bytes([byte])): byte for byte in range(256)}
    theirs = tokenizers.Tokenizer(models.BPE(letters | {"<t>": 256}, [], ignore_merges=True))
    split = pre_tokenizers.Split(tokenizers.Regex("<t>|."), "isolated")
    theirs.pre_tokenizer, theirs.decoder = pre_tokenizers.Sequence([split, WHOLE]), decoders.ByteLevel()
    theirs.add_tokens([AddedToken("<t>", single_word=True)])
    ours = Tokenizer.from_huggingface(theirs)
    for text in ("<t>s", "a<t>", " <t> "):
        assert ours.encode(text) == reference_ids(ours, text) == theirs.encode(text).ids
    assert Tokenizer.from_huggingface(json.dumps(to_json(ours.model))) == ours
