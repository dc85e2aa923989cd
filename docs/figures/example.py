"""The example that the figures draw: a text, and all that batchbpe makes of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from batchbpe import ChunkCounts, Model, PairTable, Tokenizer, reference
from batchbpe.policies import Candidates, continue_search

TEXT = (
    "The weather in the north is the other weather, the heat in the south is either, and the other weather in the "
    "north is neither the weather in the south nor the heat there."
)
STOP_WORDS = 1
CUTOFF = 2
VOCAB_SIZE = 280
PHRASES = 6
OPTIONS: Any = {"stop_list_size": STOP_WORDS, "freq_cutoff": CUTOFF}

Pair = tuple[int, int]


@dataclass
class Choice:
    """What the policy was asked, and what it chose."""

    candidates: list[Pair]
    counts: list[int]
    beyond: list[Pair]
    """Pairs that were not searched."""
    taken: list[Pair]
    first_id: int


class Example:
    """The counts, the batches and the tokenizers of the text."""

    def __init__(self) -> None:
        """Count and train."""
        self.counts = ChunkCounts.count(texts=[TEXT])
        self.split = self.counts.split
        self.chunks = reference.split(TEXT, self.split)
        self.choices: list[Choice] = []
        self.plain = Tokenizer.train(self.counts, VOCAB_SIZE, policy=self._choose, **OPTIONS)
        self.model = self.plain.model
        self.vocab = self.plain.vocab
        self.kept = self.counts.at_least(CUTOFF)
        self.tokenizer = Tokenizer.train(texts=[TEXT], vocab_size=VOCAB_SIZE + PHRASES, phrases=PHRASES, **OPTIONS)
        assert self.tokenizer.model.merges == self.model.merges

    def _choose(self, candidates: Candidates) -> Candidates:
        batch = continue_search(candidates)
        more = candidates.more(len(candidates) + 2).tuples[len(candidates) :]
        counts = candidates.count.tolist()
        self.choices.append(Choice(candidates.tuples, counts, more, batch.tuples, candidates.next_id))
        return batch

    def table(self) -> PairTable:
        """Return the table of pairs as it is before the first batch."""
        return PairTable(self.kept, base=Model(split=self.split, merges={}, stop_words=self.model.stop_words))

    def trained(self) -> list[tuple[str, int]]:
        """Return the chunks that merges are made in, and their counts."""
        return [item for item in self.kept.items() if item[0].encode() not in self.model.stop_words]

    def pairs(self, table: PairTable) -> dict[Pair, int]:
        """Return the counts of all pairs of a table."""
        first, last, count = (each.tolist() for each in table.top(10_000))
        return dict(zip(zip(first, last, strict=True), count, strict=True))

    def steps(self, chunk: str) -> Iterator[tuple[list[int], list[int | None]]]:
        """Yield the tokens of a chunk after each merge of its encoding, and what each pair of them would become."""
        merges = dict(self.model.merges)
        ids = list(chunk.encode())
        while True:
            found = [merges.get(pair) for pair in itertools.pairwise(ids)]
            yield list(ids), found
            best = min((token for token in found if token), default=None)
            if best is None:
                break
            at = found.index(best)
            ids[at : at + 2] = [best]
        assert ids == self.plain.encode(chunk)
