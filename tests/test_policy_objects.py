"""What policies can do besides choosing pairs: look at tokens and groups, keep state, hide and split tokens, stop."""

import logging
from typing import Any

import numpy as np
import pytest

from batchbpe import ChunkCounts, Model, PairTable, Tokenizer, reference, train
from batchbpe.errors import ArgumentError, ArgumentTypeError
from batchbpe.policies import Candidates, GrowingVocab, MergedBatch, continue_search, serial

TEXT = "the theory of the theorem, the thesis and the thermometer; other weather " * 5
LONGER = TEXT + "If in doubt, measure whether a hidden step saves anything that a reader would notice. " * 3


def test_counts_are_signed() -> None:
    differences = []

    def policy(candidates: Candidates) -> Candidates:
        differences.append(int((candidates.count - 10**6).max()))
        return serial(candidates)

    train(TEXT, 258, policy=policy)
    assert max(differences) < 0


def test_candidates_know_their_tokens_and_what_remains() -> None:
    seen: list[tuple[int, int]] = []

    def policy(candidates: Candidates) -> Candidates:
        seen.append((candidates.merges_remaining, candidates.next_id))
        tokens = Model(candidates_pattern, merges, {}).encoder().encode(TEXT, None, 1)
        for first, last, first_count, last_count in zip(
            candidates.first.tolist(),
            candidates.last.tolist(),
            candidates.first_count.tolist(),
            candidates.last_count.tolist(),
            strict=True,
        ):
            assert (first_count, last_count) == (tokens.count(first), tokens.count(last))
        chosen = serial(candidates)
        merges[chosen.tuples[0]] = candidates.next_id
        return chosen

    candidates_pattern = Tokenizer.train(TEXT, 256).pattern
    merges: dict[tuple[int, int], int] = {}
    model = train(TEXT, 262, policy=policy)
    assert seen == [(6 - done, 256 + done) for done in range(6)]
    assert dict(model.merges) == merges


def test_a_policy_can_end_training(caplog: pytest.LogCaptureFixture) -> None:
    def policy(candidates: Candidates) -> Candidates:
        return serial(candidates) if candidates.count[0] > 20 else candidates.stop()

    with caplog.at_level(logging.WARNING):
        model = train(TEXT, 300, policy=policy)
    merges, _ = reference.train(dict(ChunkCounts.count(TEXT)), 300, policy="serial")
    assert 0 < len(model.merges) < 44
    assert "the policy ended training: the vocabulary has" in caplog.text
    assert dict(model.merges).items() <= merges.items()


def test_a_policy_can_keep_state() -> None:
    class Alternating:
        def start(self, vocab: GrowingVocab) -> None:
            self.calls: list[str] = [f"start with {len(vocab)}"]

        def __call__(self, candidates: Candidates) -> Candidates:
            self.calls.append("choose")
            return serial(candidates)

        def revise(self, batch: MergedBatch) -> None:
            self.calls.append(f"revise {batch.token.tolist()} {batch[0].tuples}")

    policy = Alternating()
    model = train(TEXT, 258, policy=policy)
    first, second = model.merges
    expected = ["start with 256", "choose", f"revise [256] [{first}]", "choose", f"revise [257] [{second}]"]
    assert policy.calls == expected
    assert model.training["policy"] == "Alternating"


class HideEvenTokens:
    """Hides every other token, and counts."""

    def __call__(self, candidates: Candidates) -> Candidates:
        return continue_search(candidates)

    def revise(self, batch: MergedBatch) -> None:
        assert batch.best_count == int(batch.more(1).count.sum())
        batch.hide(batch.token[batch.token % 2 == 0])


def test_hidden_tokens_do_not_count() -> None:
    for special_tokens in (["<s>"], {"<s>": 300}):
        model = train(LONGER, 276, policy=HideEvenTokens(), special_tokens=special_tokens, max_batch_size=1)
        assert model.vocab_size == 276
        assert model.special_tokens["<s>"] == model.n_vocab - 1 == (300 if isinstance(special_tokens, dict) else 275)
        assert sorted(model.hidden) == list(range(model.n_vocab, model.n_vocab + len(model.hidden)))
        assert len(model.hidden) in (19, 20)
        # All pairs are those of ordinary training: only the ids differ.
        plain = train(LONGER, 256 + len(model.merges), policy="serial")
        vocab = model.vocab_with_hidden
        pairs = [(vocab[first], vocab[last]) for first, last in model.merges]
        assert pairs == [(plain.vocab[first], plain.vocab[last]) for first, last in plain.merges]
        tokenizer = Tokenizer(model)
        assert tokenizer.decode(tokenizer.encode(LONGER)) == LONGER
        assert not {*tokenizer.encode(LONGER)} & model.hidden


def test_tokens_can_be_shown_again() -> None:
    class Nothing(HideEvenTokens):
        def revise(self, batch: MergedBatch) -> None:
            batch.hide(batch.token)
            assert {*batch.token.tolist()} <= {*batch.hidden.tolist()}
            batch.show(batch.hidden)

    assert train(TEXT, 280, policy=Nothing()) == train(TEXT, 280)


def test_split_tokens_are_hidden_and_can_be_merged_again() -> None:
    class SplitOnce:
        def __call__(self, candidates: Candidates) -> Candidates:
            return serial(candidates)

        def start(self, vocab: GrowingVocab) -> None:
            self.log: list[tuple[int, int, int]] = []

        def revise(self, batch: MergedBatch) -> None:
            before = int(batch.token_counts(batch.token)[0])
            if len(self.log) == 2:
                batch.split(batch.token)
            self.log.append((int(batch.token[0]), before, int(batch.token_counts(batch.token)[0])))

    policy = SplitOnce()
    model = train(TEXT, 262, policy=policy)
    assert policy.log[2][2] == 0 < policy.log[2][1]
    assert policy.log[3] == (258, policy.log[2][1], policy.log[2][1])  # the same pair, token and count
    assert not model.hidden
    assert model == train(TEXT, 262, policy="serial")


def test_tokens_are_only_shown_while_they_are_wanted() -> None:
    class ShowAll(HideEvenTokens):
        def __call__(self, candidates: Candidates) -> Candidates:
            return serial(candidates)

        def revise(self, batch: MergedBatch) -> None:
            super().revise(batch)
            if batch.merges_remaining == 1:
                batch.show(batch.hidden)

    model = train(LONGER, 276, policy=ShowAll)  # a class is created without arguments
    assert model.vocab_size == model.n_vocab == 276
    assert model.hidden


def test_splitting_all_tokens_is_an_error() -> None:
    class SplitAll(HideEvenTokens):
        def revise(self, batch: MergedBatch) -> None:
            batch.split(batch.token)

    with pytest.raises(ValueError, match="policy SplitAll made no new token in 100 batches"):
        train(TEXT, 300, policy=SplitAll())


@pytest.mark.parametrize("tokens", [[256.5], 256, None, "a", [[256]]])
def test_hidden_tokens_must_be_ids(tokens: Any) -> None:
    class HideThese(HideEvenTokens):
        def revise(self, batch: MergedBatch) -> None:
            batch.hide(tokens)

    with pytest.raises(ArgumentTypeError, match="tokens must be ids, which are integers, got"):
        train(TEXT, 260, policy=HideThese())


def test_only_new_tokens_can_be_hidden() -> None:
    class HideBytes(HideEvenTokens):
        def revise(self, batch: MergedBatch) -> None:
            batch.hide(batch.first)

    with pytest.raises(ArgumentError, match="tokens that this training made, with ids from 256 to 256, got"):
        train(TEXT, 260, policy=HideBytes())


def test_groups_without_a_policy_equal_their_sum() -> None:
    texts = {"one": TEXT, "two": TEXT.upper() * 2, "three": "ein Theorem, eine Theorie; " * 9}
    for options in ({}, {"stop_list_size": 5}, {"policy": "serial"}, {"overlapping": True}, {"threads": 1}):
        together = train(texts=list(texts.values()), vocab_size=300, **options)  # type: ignore[arg-type]
        assert train(groups={name: [text] for name, text in texts.items()}, vocab_size=300, **options) == together  # type: ignore[arg-type]
    grouped = train(groups={name: [text] for name, text in texts.items()}, vocab_size=300)
    assert grouped.training["groups"] == ["one", "two", "three"]


def test_a_policy_can_compare_groups() -> None:
    class FairChoice:
        """Merges the best pair of the group that has the most tokens."""

        def __call__(self, candidates: Candidates) -> Candidates:
            assert candidates.count_by_group.sum(axis=1).tolist() == candidates.count.tolist()
            longest = int(candidates.lengths.argmax())
            best = candidates.more(1, group=candidates.groups[longest])
            assert best.count.tolist() == best.count_by_group[:, longest].tolist()
            self.chosen.append(candidates.groups[longest])
            return best

        def start(self, vocab: GrowingVocab) -> None:
            self.chosen: list[str] = []

    texts = {"en": TEXT, "de": "Der Zweck heiligt die Mittel, aber nicht alle. " * 9}
    groups = {name: ChunkCounts.count(text) for name, text in texts.items()}
    policy = FairChoice()
    model = train(groups=groups, vocab_size=290, policy=policy)
    lengths = {name: len(Tokenizer(model).encode(text)) for name, text in texts.items()}
    assert {*policy.chosen} == {"en", "de"}
    assert max(lengths.values()) < 1.1 * min(lengths.values())

    # The same, step by step, with the public table.
    table = PairTable(groups)
    for _ in range(34):
        table.merge(table.top(1, [*groups][int(np.argmax(table.lengths))]))
    assert dict(zip(groups, table.lengths.tolist(), strict=True)) == lengths


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"data": "to be", "groups": {"en": ["a"]}}, ArgumentError, "data cannot be combined with groups"),
        ({"groups": {"en": ["a"]}, "phrases": 3}, ArgumentError, "phrases cannot be combined with groups"),
        ({"groups": {}}, ArgumentTypeError, "groups must be a dict of names and their data"),
        ({"groups": ["a"]}, ArgumentTypeError, "groups must be a dict of names and their data"),
        ({"groups": ChunkCounts.count(["a"])}, ArgumentTypeError, "groups must be a dict of names and their data"),
        ({"groups": {"a": None}}, ArgumentTypeError, r"groups\['a'\] must be text, files or other data, got None"),
        ({"groups": {"en": [], "de": []}}, ValueError, "nothing to train on"),
        ({"groups": {"en": ["ab"]}, "freq_cutoff": 9}, ArgumentError, "freq_cutoff must be at most 1"),
    ],
)
def test_wrong_groups(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        train(vocab_size=300, **arguments)


def test_a_policy_can_pick_pairs_of_several_groups() -> None:
    groups = {"en": ChunkCounts.count(TEXT), "x": ChunkCounts.count("xyxyxy the")}
    picked: list[tuple[list[tuple[int, int]], list[int]]] = []

    def policy(candidates: Candidates) -> Candidates:
        pairs = candidates.more(1, "x").tuples + candidates.more(1, "en").tuples
        picked.append((pairs, candidates.pick(pairs).count.tolist()))
        assert len(candidates.pick([])) == 0
        return candidates.pick(pairs)

    model = train(groups=groups, vocab_size=258, policy=policy)
    ((pairs, counts),) = picked
    assert [*model.merges] == pairs == [tuple(b"xy"), tuple(b"he")]
    assert counts == PairTable(groups).count(pairs).tolist()


@pytest.mark.parametrize("pairs", [[1, 2], [(1, 2, 3)], [(0.5, 1.0)], ["ab"]])
def test_picked_pairs_must_be_pairs_of_ids(pairs: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="pairs must be a list of pairs of ids"):
        train(TEXT, 260, policy=lambda candidates: candidates.pick(pairs))


def test_policies_cannot_merge_by_themselves() -> None:
    def cheating(candidates: Candidates) -> Candidates:
        candidates.source.merge(candidates)  # type: ignore[attr-defined]
        return candidates

    with pytest.raises(AttributeError, match="a policy cannot use 'merge' of the table"):
        train(TEXT, 300, policy=cheating)
