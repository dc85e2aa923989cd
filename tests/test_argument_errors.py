"""Wrong arguments: each error names the parameter and the value, and says how to fix it if that is not obvious."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import batchbpe
from batchbpe import BatchTokenizer, ChunkCounts, Model, QuickTokenizer, Tokenizer
from batchbpe.analysis import audit, evaluate
from batchbpe.errors import UserError
from batchbpe.policies import Candidates

TEXT = "aaabdaaabac"
TOK: Any = Tokenizer.train(TEXT, 259)
COUNTS: Any = ChunkCounts.count("to be")
SPECIAL: Any = Tokenizer.train(TEXT, 260, special_tokens=["<e>"])
HAS_SPECIAL = (
    'the text contains the special token "<e>" at byte 1; pass allowed_special={"<e>"} or allowed_special="all" to '
    'encode it as that token, or disallowed_special=() or allowed_special="none" to encode it as plain text'
)
BATCH: Any = BatchTokenizer()
THREADS = "threads must be an integer, or None for all cores, got 'x'"
NO_THREADS = "threads must be at least 1, or None for all cores, got 0"
Call = Callable[[], object]


def train(**options: Any) -> Call:
    return lambda: Tokenizer.train(TEXT, **{"vocab_size": 259, **options})


def count(**options: Any) -> Call:
    return lambda: ChunkCounts.count(TEXT, **options)


def candidates(use: Callable[[Candidates], object]) -> Call:
    def policy(found: Candidates) -> Candidates:
        use(found)
        return found

    return train(policy=policy)


ENCODE: list[tuple[Call, str]] = [
    (lambda: TOK.encode(5), "text must be a string, got 5"),
    (lambda: TOK.encode(None), "text must be a string, got None"),
    (lambda: TOK.encode(b"x"), "text must be a string, got b'x'; decode it first"),
    (lambda: TOK.encode(["a"]), "text must be a string, got ['a']"),
    (lambda: TOK.encode("a", threads="x"), THREADS),
    (lambda: TOK.encode("a", threads=0), NO_THREADS),
    (lambda: TOK.encode_ordinary(5), "text must be a string, got 5"),
    (lambda: TOK.encode_ordinary("a", threads="x"), THREADS),
    (lambda: TOK.encode_to_numpy(5), "text must be a string, got 5"),
    (lambda: TOK.encode_to_numpy("a", threads="x"), THREADS),
    (lambda: TOK.encode_batch(5), "text must be a list of strings, got 5"),
    (lambda: TOK.encode_batch(["a", "b", "c", 1]), "text[3] must be a string, got 1"),
    (lambda: TOK.encode_batch(iter(["a", b"x"])), "text[1] must be a string, got b'x'; decode it first"),
    (lambda: TOK.encode_batch(["\ud83d\ude00", 5]), "text[1] must be a string, got 5"),
    (lambda: TOK.encode_batch(["a"], threads="x"), THREADS),
    (lambda: TOK.encode_batch(["a"], num_threads=0), f"num_{NO_THREADS}"),
    (lambda: BATCH.encode_batch(["a"], num_threads="x"), f"num_{THREADS}"),
    (
        lambda: TOK.encode_batch(["a"], threads=2, num_threads=3),
        "num_threads must be omitted if threads is given, got 3",
    ),
    (lambda: SPECIAL.encode_batch(["ok", "a<e>"]), f"text[1]: {HAS_SPECIAL}"),
    (lambda: SPECIAL.encode_batch_to_numpy(["ok", "a<e>"]), f"text[1]: {HAS_SPECIAL}"),
    (lambda: TOK.encode_ordinary_batch([1]), "text[0] must be a string, got 1"),
    (lambda: TOK.encode_batch_to_numpy(5), "text must be a list of strings, got 5"),
    (lambda: TOK.encode_batch_to_numpy(["a", 1]), "text[1] must be a string, got 1"),
    (lambda: TOK.encode_batch_to_numpy(["a"], threads="x"), THREADS),
    (lambda: TOK.encode_single_token("\ud83d"), r"text_or_bytes must not contain surrogates, got '\ud83d'"),
    (lambda: TOK.token_to_id(5), "token must be a string, got 5"),
    (lambda: TOK.token_to_id(["a"]), "token must be a string, got ['a']"),
    (lambda: TOK.view(5), "text must be a string, got 5"),
    (lambda: BATCH.encode(5), "text must be a string, got 5"),
    (lambda: batchbpe.split(5), "text must be a string, got 5"),
    (lambda: batchbpe.split(b"x"), "text must be a string, got b'x'; decode it first"),
    (lambda: batchbpe.split("x", errors="ignore"), 'errors must be "strict" or "replace", got \'ignore\''),
]
DECODE: list[tuple[Call, str]] = [
    (lambda: TOK.decode(5), "tokens must be a list of integers, got 5; use [5] for a single id"),
    (lambda: TOK.decode(None), "tokens must be a list of integers, got None"),
    (lambda: TOK.decode("abc"), "tokens must be a list of integers, got 'abc'"),
    (lambda: TOK.decode([97, "a"]), "tokens[1] must be an integer, got 'a'"),
    (lambda: TOK.decode(iter([97, 1.5])), "tokens[1] must be an integer, got 1.5"),
    (lambda: TOK.decode(np.array(5)), "tokens must be a list of integers, got 5; use [5] for a single id"),
    (
        lambda: TOK.decode(np.array([[97, 98]])),
        "tokens[0] must be an integer, got [97, 98]; use decode_batch for a list of lists",
    ),
    (lambda: TOK.decode_bytes(["a"]), "tokens[0] must be an integer, got 'a'"),
    (lambda: TOK.decode_batch(5), "batch must be a list of lists of integers, got 5"),
    (lambda: TOK.decode_batch([[97], ["a"]]), "batch[1]: tokens[0] must be an integer, got 'a'"),
    (lambda: TOK.decode_batch([[97], [300]]), "batch[1]: token id 300 does not exist; the largest id is 258"),
    (
        lambda: TOK.decode_bytes_batch(iter([[97], 5])),
        "batch[1]: tokens must be a list of integers, got 5; use [5] for a single id",
    ),
    (lambda: TOK.decode_single_token_bytes("a"), "token must be an integer, got 'a'"),
    (lambda: TOK.decode_tokens_bytes(None), "tokens must be a list of integers, got None"),
    (lambda: TOK.decode_tokens_bytes([97, "a"]), "tokens[1] must be an integer, got 'a'"),
    (lambda: TOK.decode_tokens_bytes(iter([97, "a"])), "token must be an integer, got 'a'"),
    (lambda: TOK.decode_with_offsets("a"), "tokens must be a list of integers, got 'a'"),
    (lambda: TOK.id_to_token("a"), "id must be an integer, got 'a'"),
    (lambda: TOK.merge_tree("a"), "token must be an integer, got 'a'"),
]
TRAIN: list[tuple[Call, str]] = [
    (train(threads="x"), THREADS),
    (train(threads=0), NO_THREADS),
    (train(sample="x"), "sample must be a number, got 'x'"),
    (train(seed="x"), "seed must be an integer, got 'x'"),
    (train(seed=-1), "seed must be at least 0, got -1"),
    (train(limit_bytes="x"), "limit_bytes must be an integer, got 'x'"),
    (train(max_document_bytes="x"), "max_document_bytes must be an integer, got 'x'"),
    (train(text_column=5), "text_column must be a string, got 5"),
    (train(progress="yes"), "progress must be True, False or a function, got 'yes'"),
    (train(overlapping="no"), "overlapping must be True or False, got 'no'"),
    (train(on_batch=5), "on_batch must be a function, got 5"),
    (train(on_counts=5), "on_counts must be a function, got 5"),
    (lambda: BATCH.train(TEXT, 259, on_batch=5), "on_batch must be a function, got 5"),
    (
        train(vocab_size=300, special_tokens={"<e>": 256}),
        "special_tokens must have ids of at least 299 (bytes, stop words and merges have the lower ones), "
        "got {'<e>': 256}",
    ),
    (candidates(lambda found: found.more(-1)), "n must be at least 0, got -1"),
    (candidates(lambda found: found.more("x")), "n must be an integer, got 'x'"),  # type: ignore[arg-type]
    (candidates(lambda found: found.keep(5)), "wanted must be a function, got 5"),  # type: ignore[arg-type]
    (
        candidates(lambda found: found.keep(lambda _: None)),  # type: ignore[arg-type,return-value]
        "wanted must return one boolean for each pair (1), got None",
    ),
]
COUNT: list[tuple[Call, str]] = [
    (count(threads="x"), THREADS),
    (lambda: ChunkCounts.count(COUNTS, threads=0), NO_THREADS),
    (count(sample=None), "sample must be a number, got None"),
    (count(progress="yes"), "progress must be True, False or a function, got 'yes'"),
    (lambda: ChunkCounts({"a": 1}), "arrays must be ChunkArrays, got {'a': 1}; use ChunkCounts.count"),  # type: ignore[arg-type]
    (lambda: ChunkCounts.load(5), "path must be a str or os.PathLike, got 5"),  # type: ignore[arg-type]
    (lambda: ChunkCounts.load(""), "path must not be empty, got ''"),
    (lambda: COUNTS.save(5), "path must be a str or os.PathLike, got 5"),
    (lambda: COUNTS.most_common("x"), "n must be an integer, got 'x'"),
    (lambda: COUNTS.at_least(1.5), "freq_cutoff must be an integer, got 1.5"),
    (lambda: COUNTS.stop_words(-1), "stop_list_size must be at least 0, got -1"),
]
CREATE: list[tuple[Call, str]] = [
    (lambda: BatchTokenizer(stop_list_size=-1), "stop_list_size must be at least 0, got -1"),
    (lambda: BatchTokenizer(freq_cutoff=1.5), "freq_cutoff must be an integer, got 1.5"),  # type: ignore[arg-type]
    (lambda: BatchTokenizer(store_dict=5), "store_dict must be a str or os.PathLike, got 5"),  # type: ignore[arg-type]
    (lambda: BatchTokenizer(store_dict="counts.txt"), "store_dict must end in .parquet or .csv, got 'counts.txt'"),
    (lambda: BatchTokenizer(multiprocess="no"), "multiprocess must be True or False, got 'no'"),  # type: ignore[arg-type]
    (lambda: Model(r"\w+", {}, byte_ids=5), "byte_ids must be 256 different ids, one for each byte, got 5"),  # type: ignore[arg-type]
    (lambda: Tokenizer.from_file(5), "path must be a str or os.PathLike, got 5"),  # type: ignore[arg-type]
    (lambda: Tokenizer.from_tiktoken(5), "path must be a file path or a tiktoken.Encoding, got 5"),  # type: ignore[arg-type]
    (lambda: Tokenizer.from_tiktoken(""), "path must not be empty, got ''"),
    (lambda: Tokenizer.from_huggingface(""), "source must not be empty, got ''"),
    (lambda: BATCH.load(5), "model_file must be a str or os.PathLike, got 5"),
    (lambda: TOK.save(5), "prefix must be a str or os.PathLike, got 5"),
    (lambda: TOK.save(""), "prefix must not be empty, got ''"),
    (lambda: TOK.export(5, "tiktoken"), "path must be a str or os.PathLike, got 5"),
    (lambda: Tokenizer.from_tiktoken("x", special_tokens={5: 1}), "special_tokens must contain only strings, got 5"),  # type: ignore[dict-item]
    (train(special_tokens=[""]), "special_tokens must not contain an empty string, got ''"),
]
LOADABLE = "must be a Tokenizer, a Model, a path, or a fast tokenizer of tokenizers or transformers"
ANALYSE: list[tuple[Call, str]] = [
    (lambda: audit(5), f"tokenizer {LOADABLE}, got 5"),  # type: ignore[arg-type]
    (lambda: evaluate(TOK, texts={"en": None}), "texts['en'] must be text, files or other data, got None"),  # type: ignore[dict-item]
    (lambda: evaluate({"a": TOK}, {"en": "to be", "de": 5}), "data['de'] must be text, files or other data, got 5"),  # type: ignore[dict-item]
]


@pytest.mark.parametrize(("call", "message"), ENCODE + DECODE + TRAIN + COUNT + CREATE + ANALYSE)
def test_wrong_argument(call: Call, message: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value) == message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # no exception of the core is shown


def test_errors_of_iterators_are_not_hidden() -> None:
    def failing() -> Any:
        yield 97
        raise TypeError("from the iterator")

    for call in (TOK.decode, TOK.decode_tokens_bytes, TOK.encode_batch, lambda lists: TOK.decode_batch([lists])):
        with pytest.raises(TypeError, match=r"^from the iterator$"):
            call(failing())


def test_objects_that_can_be_iterated_over_by_index() -> None:
    class Texts:
        def __getitem__(self, index: int) -> str:
            return ["aaab", "ac"][index]

    assert TOK.encode_batch(Texts()) == [[258], [97, 99]]


DOWNLOAD = "; batchbpe does not download tokenizers; for a published one, "
FROM_PRETRAINED = "transformers.AutoTokenizer.from_pretrained"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tokenizer.from_file("mine"), "mine; did you mean 'mine.model'?"),
        (lambda: Tokenizer.from_file(Path("mine")), "mine; did you mean 'mine.model'?"),
        (lambda: Tokenizer.from_file("mine.modle"), "mine.modle; did you mean 'mine.model'?"),
        (lambda: Tokenizer.from_file("./exportd"), "./exportd; did you mean './exported'?"),
        (lambda: Tokenizer.from_file("yours.model"), "yours.model"),
        (lambda: Tokenizer.from_file("is.modl"), "is.modl"),
        (lambda: Tokenizer.from_huggingface("other"), "other; did you mean 'other.json'?"),
        (
            lambda: Tokenizer.from_file("gpt2"),
            f"gpt2{DOWNLOAD}use Tokenizer.from_huggingface({FROM_PRETRAINED}('gpt2'))",
        ),
        (
            lambda: Tokenizer.from_file("cl100k_base"),
            f"cl100k_base{DOWNLOAD}use Tokenizer.from_tiktoken(tiktoken.get_encoding('cl100k_base'))",
        ),
        (
            lambda: Tokenizer.from_tiktoken("cl100k_base"),
            f"cl100k_base{DOWNLOAD}pass tiktoken.get_encoding('cl100k_base')",
        ),
        (lambda: Tokenizer.from_tiktoken("gpt-4o"), f"gpt-4o{DOWNLOAD}pass tiktoken.encoding_for_model('gpt-4o')"),
        (lambda: Tokenizer.from_huggingface("a/b-0.5B"), f"a/b-0.5B{DOWNLOAD}pass {FROM_PRETRAINED}('a/b-0.5B')"),
        # These are files, not names.
        (lambda: Tokenizer.from_file(Path("gpt2")), "gpt2"),
        (lambda: Tokenizer.from_file("runs/a.model"), "runs/a.model"),
        (lambda: BATCH.load("x.txt"), "x.txt"),
        (lambda: Tokenizer.from_huggingface("/runs/a/b"), "/runs/a/b"),
    ],
)
def test_model_file_not_found(call: Call, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    TOK.save("mine")
    Path("other.json").touch()
    Path("exported").mkdir()
    with pytest.raises(FileNotFoundError) as caught:
        call()
    assert str(caught.value) == f"model file not found: {message}"


@pytest.mark.parametrize("kind", [BatchTokenizer, QuickTokenizer])
def test_unknown_attribute(kind: type[BatchTokenizer]) -> None:
    with pytest.raises(AttributeError) as caught:
        _ = kind().nosuch
    assert str(caught.value) == f"'{kind.__name__}' object has no attribute 'nosuch'"
    assert caught.value.__context__ is None


def test_split_replaces_surrogates() -> None:
    assert batchbpe.split("a \ud83d", errors="replace") == ["a", " \ufffd"]
    with pytest.raises(UnicodeEncodeError, match=r'^text: lone surrogate .* at character 2; use errors="replace"'):
        batchbpe.split("a \ud83d")
