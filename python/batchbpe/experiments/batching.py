"""What the choice of batches changes: their number and size, the time, the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from .. import policies
from ..analysis.evaluation import evaluate_text
from ..data import corpus
from ..tokenizer import Tokenizer
from .data import Data
from .plots import axes, styled
from .result import Result, signed
from .trainings import Run, check_size, runs_bar, train_all

POLICIES = ("serial", "naive", "positional", "continue_search")


@styled
def batching(
    data: Data | corpus.Data,
    *,
    vocab_size: int = 50_304,
    cap_divisors: Sequence[int] = (1, 2, 4, 8),
    max_batch_sizes: Sequence[int] = (50, 100, 200, 400),
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with each policy, and with the default one at other caps; compare all with merging one pair at a time.

    >>> result = batching("to be or not to be " * 50, vocab_size=260, cap_divisors=[1], max_batch_sizes=[])
    >>> result.table["policy"].to_pylist()[:2], result.tables["caps"]["cap_divisor"].to_pylist()
    (['serial', 'naive'], [1])
    """
    data = Data.of(data)
    plain = {"vocab_size": vocab_size, **options}
    settings: list[dict[str, Any]] = [{**plain, "policy": getattr(policies, name)} for name in POLICIES]
    settings += [{**plain, "cap_divisor": divisor} for divisor in cap_divisors]
    settings += [{**plain, "max_batch_size": size} for size in max_batch_sizes]
    text = data.text
    runs: list[Run] = []
    with runs_bar(len(settings), show=progress) as moved:
        for run in train_all(data.counts, settings, timed=True, moved=moved):
            if not runs:
                check_size(run)
            runs.append(run)
    serial = runs[0].tokenizer
    reference = evaluate_text("serial", serial, text)
    rows: list[dict[str, Any]] = []
    for run in runs:
        sizes = [batch.size for batch in run.batches]
        done = run.batches[sizes.index(max(sizes))].merges_done if sizes else 0
        rows.append(
            {
                "batches": len(sizes),
                "mean_size": sum(sizes) / max(1, len(sizes)),
                "largest": max(sizes, default=0),
                "largest_at": done / max(1, sum(sizes)),
                "seconds": run.seconds,
                "shared_with_serial": shared(run.tokenizer, serial),
                "change": evaluate_text("", run.tokenizer, text).change(reference),
            }
        )
    named = pa.Table.from_pylist([{"policy": name, **row} for name, row in zip(POLICIES, rows, strict=False)])
    caps = [
        {
            "cap_divisor": run.options.get("cap_divisor", 2),
            "max_batch_size": run.options.get("max_batch_size", 0),
            **row,
        }
        for run, row in list(zip(runs, rows, strict=True))[len(POLICIES) :]
    ]
    naive, positional, default = rows[1], rows[2], rows[3]
    return Result(
        "batching",
        {**data.parameters, "vocab_size": vocab_size, **options},
        {"policies": named} | ({"caps": pa.Table.from_pylist(caps)} if caps else {}),
        {"batches": _figure(dict(zip(POLICIES[1:], runs[1 : len(POLICIES)], strict=True)))},
        {
            "a batch has often 200 pairs or more": f"{default['mean_size']:.0f} on average",
            "the largest come when about a third of the merges is made": f"at {100 * default['largest_at']:.0f} %",
            "positional batches are about twice as large as naive ones": (
                f"{positional['mean_size'] / naive['mean_size']:.1f} times"
            ),
            "the vocabulary is all but the same as one pair at a time gives": (
                f"{100 * default['shared_with_serial']:.3f} % of the tokens are shared, "
                f"the encoded length changes by {signed(default['change'])} %"
            ),
        },
    )


def shared(one: Tokenizer, other: Tokenizer) -> float:
    """Give the share of tokens, by their bytes, that a vocabulary has in common with another.

    >>> plain, longer = (Tokenizer.train("aaabdaaabac", size) for size in (256, 257))
    >>> shared(longer, plain) * 257
    256.0
    """
    mine, theirs = set(one.vocab.values()), set(other.vocab.values())
    return len(mine & theirs) / len(mine)


def _figure(runs: dict[str, Run]) -> Any:
    figure, (panel,) = axes(height=4.6)
    for name, run in runs.items():
        sizes = np.array([batch.size for batch in run.batches])
        done = np.array([batch.merges_done for batch in run.batches]) / max(1, sizes.sum())
        # The mean over each hundredth of the merges: single batches jump.
        bins = np.minimum((done * 100).astype(int), 99)
        shown = np.unique(bins)
        means = [sizes[bins == place].mean() for place in shown]
        label = f"{name.replace('_', ' ')}: {len(sizes):,} batches, {sizes.mean():.0f} pairs on average"
        panel.plot(shown + 0.5, means, linewidth=1.6, label=label)
    panel.set(xlabel="merges made, %", ylabel="pairs in a batch, mean", xlim=(0, 100), ylim=(0, None))
    panel.set_title("the size of batches over a training run, averaged over each percent of it")
    figure.legend(loc="outside lower center")
    return figure
