"""Compare batching policies: number and size of batches, time, and resulting vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..analysis.plots import axes, styled
from ..data.corpus import Data, Files
from ..errors import ArgumentError
from ..policies import PAPER_POLICIES, Policy, policy_name, resolve_policy, serial
from ..tokenizer import Tokenizer
from ..training.loop import Batch
from .data import ExperimentData
from .result import Result, signed
from .trainings import recorded_options, train_with_reference


@styled
def batching(
    data: ExperimentData | Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    vocab_size: int = 50_304,
    policies: Sequence[str | Policy] = tuple(PAPER_POLICIES),
    cap_divisors: Sequence[int] = (1, 2, 4, 8),
    max_batch_sizes: Sequence[int] = (50, 100, 200, 400),
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with each policy, and with other limits on the search, and compare with merging one pair at a time.

    Parameters
    ----------
    data: anything that `ChunkCounts.count` accepts, or an `ExperimentData`.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    vocab_size: size of each vocabulary.
    policies: names or functions. "serial" is always trained first, as the reference.
    cap_divisors, max_batch_sizes: values of these options of `train`, tried with the default policy.
    progress: whether to display a progress bar.
    options: other options of `train`, for all vocabularies.

    >>> result = batching("to be or not to be " * 50, vocab_size=260, cap_divisors=[1], max_batch_sizes=[])
    >>> result.table["policy"].to_pylist()[:2], result.tables["caps"]["cap_divisor"].to_pylist()
    (['serial', 'naive'], [1])

    """
    data = ExperimentData.of(data, texts=texts, files=files)
    chosen: dict[str, Policy] = {"serial": serial}
    for policy in map(resolve_policy, policies):
        if chosen.setdefault(policy_name(policy), policy) is not policy:
            raise ArgumentError("policies", policy_name(policy), "must have different names")
    settings: list[dict[str, Any]] = [{"policy": policy} for policy in chosen.values()]
    settings += [{"cap_divisor": divisor} for divisor in cap_divisors]
    settings += [{"max_batch_size": size} for size in max_batch_sizes]
    settings = [{"vocab_size": vocab_size, **options, **each} for each in settings]
    results = train_with_reference(data, settings, timed=True, progress=progress)
    rows: list[dict[str, Any]] = []
    for trained in results:
        sizes = [batch.size for batch in trained.batches]
        done = trained.batches[sizes.index(max(sizes))].merges_done if sizes else 0
        rows.append(
            {
                "batches": len(sizes),
                "mean_size": sum(sizes) / max(1, len(sizes)),
                "largest": max(sizes, default=0),
                "largest_at": done / max(1, sum(sizes)),
                "seconds": trained.seconds,
                "shared_with_serial": shared(trained.tokenizer, results[0].tokenizer),
                "change": trained.evaluation.change(results[0].evaluation),
            }
        )
    by_policy = dict(zip(chosen, rows, strict=False))
    tables = {"policies": pa.Table.from_pylist([{"policy": name, **row} for name, row in by_policy.items()])}
    caps = [
        {"cap_divisor": each.get("cap_divisor", 2), "max_batch_size": each.get("max_batch_size", 0), **row}
        for each, row in zip(settings[len(chosen) :], rows[len(chosen) :], strict=True)
    ]
    if caps:
        tables["caps"] = pa.Table.from_pylist(caps)
    batches = {name: trained.batches for name, trained in zip(chosen, results, strict=False)}
    return Result(
        "batching",
        {**data.parameters, "vocab_size": vocab_size, **recorded_options(options)},
        tables,
        {"batches": _figure(batches)},
        _findings(by_policy),
    )


def _findings(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """State what was found for the claims about the policies that were trained."""
    findings: dict[str, str] = {}
    default = rows.get("continue_search")
    if default:
        findings["batches often contain 200 pairs or more"] = f"{default['mean_size']:.0f} on average"
        findings["the largest batches occur after about a third of the merges"] = (
            f"after {100 * default['largest_at']:.0f}%"
        )
    if "naive" in rows and "positional" in rows:
        ratio = rows["positional"]["mean_size"] / rows["naive"]["mean_size"]
        findings["positional batches are about twice as large as naive batches"] = f"{ratio:.1f} times as large"
    if default:
        findings["the vocabulary is nearly identical to that of merging one pair at a time"] = (
            f"{100 * default['shared_with_serial']:.3f}% of the tokens are shared; "
            f"the encoded length changes by {signed(default['change'])}%"
        )
    return findings


def shared(one: Tokenizer, other: Tokenizer) -> float:
    """Return the fraction of the tokens of one vocabulary, compared as bytes, that another vocabulary contains.

    >>> plain, longer = (Tokenizer.train("aaabdaaabac", size) for size in (256, 257))
    >>> shared(longer, plain) * 257
    256.0
    """
    mine, theirs = set(one.vocab.values()), set(other.vocab.values())
    return len(mine & theirs) / len(mine)


def _figure(batches: Mapping[str, Sequence[Batch]]) -> Any:
    """Plot batch sizes over the training, except for serial, whose batches all have one pair."""
    figure, (panel,) = axes(height=4.6)
    for name, each in batches.items():
        if name == "serial" and len(batches) > 1:
            continue
        sizes = np.array([batch.size for batch in each])
        done = np.array([batch.merges_done for batch in each]) / max(1, sizes.sum())
        # Sizes vary a lot from batch to batch, so plot the mean over each percent of the merges.
        bins = np.minimum((done * 100).astype(int), 99)
        used = np.unique(bins)
        means = [sizes[bins == percent].mean() for percent in used]
        label = f"{name.replace('_', ' ')}: {len(sizes):,} batches, {sizes.mean():.0f} pairs on average"
        panel.plot(used + 0.5, means, linewidth=1.6, label=label)
    panel.set(xlabel="merges completed, %", ylabel="mean pairs per batch", xlim=(0, 100), ylim=(0, None))
    panel.set_title("Batch size during training, averaged over each percent of the merges")
    figure.legend(loc="outside lower center")
    return figure
