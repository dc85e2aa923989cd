"""Claims of docs/migration-trainers.md that its own examples cannot check."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from pydoc_data import topics

import pytest

from batchbpe import BatchTokenizer, Tokenizer
from batchbpe.errors import DataError
from batchbpe.patterns import Split, Step

TEXT = Path(topics.__file__).read_text(encoding="utf-8")[:20_000]
SUPERBPE = Split(r"[\s\S]+", steps=(Step(r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)"),))


def merged(ids: list[int], pair: tuple[int, int], token: int) -> list[int]:
    """Replace a pair from left to right."""
    out: list[int] = []
    for item in ids:
        if out and (out[-1], item) == pair:
            out[-1] = token
        else:
            out.append(item)
    return out


def test_the_second_stage_of_superbpe_equals_a_plain_loop() -> None:
    """SuperBPE's trainer applies the merges of the first stage to the new pieces in order, and then continues."""
    first = Tokenizer.train(TEXT, 400, pattern="gpt2", policy="serial", overlapping=True)
    second = Tokenizer.train(TEXT, 450, base=first.model.with_split(SUPERBPE), policy="serial", overlapping=True)

    pieces = [list(piece.encode()) for piece in SUPERBPE.chunks(TEXT)]
    merges = dict(first.merges)
    for pair, token in merges.items():
        pieces = [merged(piece, pair, token) for piece in pieces]
    for token in range(400, 450):
        counts = Counter(pair for piece in pieces for pair in pairwise(piece))
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges[best] = token
        pieces = [merged(piece, best, token) for piece in pieces]
    assert second.merges == merges
    assert any(b" " in value.strip() for value in second.vocab.values())


def test_files_of_the_papers_program_do_not_contain_stop_words(tmp_path: Path) -> None:
    """Its `save` writes only pairs. With one stop word, the first merge has the id 257, which the file does not say."""
    path = tmp_path / "v1.model"
    path.write_text("BatchBPE v1\n\\w+|\\W+\n0\n97 98\n257 99\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"merge 1, \(257, 99\) -> 257"):
        BatchTokenizer().load(path)
