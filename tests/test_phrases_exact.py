"""Exported phrases are exact: random vocabularies, phrases and texts, of characters of all classes of a pattern."""

import json
import random
from collections.abc import Iterator

import pytest
import tokenizers

from batchbpe import PATTERNS, Model, Tokenizer, split, train
from batchbpe.boundaries import boundaries_of
from batchbpe.errors import DataError
from batchbpe.formats.huggingface import to_json
from batchbpe.formats.tiktoken import ranks_of
from batchbpe.formats.unsupported import without_unsupported

pytestmark = [pytest.mark.filterwarnings("ignore:the file for"), pytest.mark.filterwarnings("ignore:the pattern")]
CUSTOM = [r" ?\p{L}+", r"\p{Lu}?\p{Ll}+|\p{N}{2,4}|[^\S\n]+(?!\S)|\s|[^\s\p{L}\p{N}]", r"(?:ab)+|ab{2,3}c|[a-e]|."]
ODDITIES = ["'", "'", "'s", "'lL", "'rE", "'ſ", "\r\n", "\r/", "\u200d", "\ufe0f", "❤️", "👍🏽", "\u0301", "é", "ſ", "K"]
ODDITIES += ["l", "L", "e", "E", "v", "R", "語", "ǅ", "ʰ", "٣", "½", "\u00a0", "\u3000", "  ", " ", " the", "ab", "\0"]


def alphabet(pattern: str) -> list[str]:
    """Return a character of each class of the pattern, and others that have been treated wrongly somewhere."""
    boundaries = boundaries_of(pattern)
    ranges = zip(boundaries._range_classes, boundaries._range_starts, strict=True)
    examples = {number: chr(start) for number, start in ranges if not 0xD800 <= start < 0xE000}
    return [*examples.values(), *ODDITIES]


def random_text(chance: random.Random, pieces: list[str], n: int) -> str:
    return "".join(chance.choices(pieces, k=chance.randint(1, n)))


def random_model(chance: random.Random, pattern: str, pieces: list[str]) -> Model:
    """Return a model of random text with any phrases that occur in it, including those that cannot be exported."""
    texts = [random_text(chance, pieces, 30) for _ in range(20)]
    model = train(texts=texts, vocab_size=256 + chance.randint(1, 80), pattern=pattern, policy="serial")
    encode = Tokenizer(model).encode_ordinary
    phrases: dict[tuple[int, ...], int] = {}
    for text in texts:
        chunks = split(text, pattern)
        for _ in range(2):
            start = chance.randrange(len(chunks) + 1)
            part = chunks[start : start + chance.randint(2, 4)]
            ids = [token for chunk in part for token in encode(chunk)]
            if 1 < len(part) == len(ids) and "".join(part) in text and "\n" not in "".join(part):
                phrases.setdefault(tuple(ids), 1000 + len(phrases))
    return Model(pattern, model.merges, phrases=phrases)


def random_texts(chance: random.Random, model: Model, pieces: list[str], n: int) -> Iterator[str]:
    """Texts of phrases, parts of phrases, and what may change their chunks."""
    phrases = [model.vocab[token].decode() for token in model.phrases.values()]
    for _ in range(n):
        some = chance.choice([pieces, pieces, alphabet(model.pattern)])
        parts = [random_text(chance, some, 2) for _ in range(chance.randint(0, 6))]
        for phrase in chance.choices(phrases, k=3):
            cut = chance.randrange(len(phrase))
            parts += [phrase, phrase[cut:], phrase[:cut]][: chance.randint(1, 3)]
        chance.shuffle(parts)
        yield "".join(parts)


def check_random_model(pattern: str, seed: int, texts: int = 50) -> tuple[int, int, int]:
    """Compare the ids of a random model in both tools. Return the number of texts, and of phrases in each."""
    chance = random.Random(f"{seed} {pattern}")
    pieces = ["e", *chance.sample(ODDITIES, 5), *chance.sample(alphabet(pattern), 4)]
    model = random_model(chance, pattern, pieces)
    for_tiktoken, for_tokenizers = (
        without_unsupported(model, "tool", ["phrases"], by_rank=by_rank) for by_rank in (True, False)
    )
    compared = 0
    if for_tiktoken.phrases:
        try:
            ranks_of(for_tiktoken)
        except DataError:  # the merges themselves have no ranks
            return 0, 0, 0
        tokenizer = Tokenizer(for_tiktoken)
        encoding = tokenizer.to_tiktoken()
        for text in random_texts(chance, model, pieces, texts):
            assert encoding.encode_ordinary(text) == tokenizer.encode_ordinary(text), (seed, pattern, text)
            compared += 1
        assert Tokenizer.from_tiktoken(encoding) == tokenizer
    if for_tokenizers.phrases:
        tokenizer = Tokenizer(for_tokenizers)
        loaded = tokenizers.Tokenizer.from_str(json.dumps(to_json(for_tokenizers)))
        for text in random_texts(chance, model, pieces, texts):
            assert loaded.encode(text).ids == tokenizer.encode_ordinary(text), (seed, pattern, text)
            compared += 1
        assert Tokenizer.from_huggingface(loaded) == tokenizer
    return compared, len(for_tiktoken.phrases), len(for_tokenizers.phrases)


@pytest.mark.parametrize("pattern", [*sorted(PATTERNS.keys() - {"command-a"}), *CUSTOM])
def test_random_models(pattern: str) -> None:
    found = [check_random_model(PATTERNS.get(pattern, pattern), seed) for seed in range(2)]
    assert sum(compared for compared, _, _ in found) > 50
