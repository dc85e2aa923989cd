"""Parity-aware BPE against plain BPE on reweighted counts: which needs fewer tokens if languages cost the same?"""

from __future__ import annotations

import numpy as np
from languages import Counts, arguments, characters, measure, parts
from parity import Parity

from batchbpe import ChunkCounts, Model, train
from batchbpe.policies import exact

TOLERANCE = 0.001
"""Gini coefficients below this are equal: those of two random samples of the same text differ more."""


def reweighted(training: Counts, dev: Counts, vocab_size: int, target: float) -> Model:
    """Train on mixtures. Raise the weights of expensive languages until the Gini coefficient on `dev` is low enough."""
    weights: dict[str, float] = {name: counts.total_bytes for name, counts in training.items()}
    power, best = 8.0, None
    for _ in range(30):
        mixture = ChunkCounts.mix({name: (training[name], weight) for name, weight in weights.items()})
        model = train(mixture, vocab_size, policy=exact)
        result = measure(model, dev)
        if best is None or result.gini < best[0]:
            best, power = (result.gini, model, weights, result.costs), power * 1.2
        else:
            power /= 2
        gini, model, weights, costs = best
        if gini <= target:
            break
        mean = np.mean([*costs.values()])
        weights = {name: weight * float(costs[name] / mean) ** power for name, weight in weights.items()}
    return model


def main() -> None:
    """Compare both on several random splits of the documents."""
    given = arguments(__doc__)
    changes = []
    for seed in range(given.seeds):
        training, dev, test = parts(given.data, given.languages, seed)
        models = {"plain": train(groups=training, vocab_size=given.vocab_size, policy=exact)}
        policy = Parity(dev, units=characters(dev))
        models["parity"] = train(groups=training, vocab_size=given.vocab_size, policy=policy)
        target = max(measure(models["parity"], dev).gini, TOLERANCE)
        models["mixture"] = reweighted(training, dev, given.vocab_size, target)
        tokens = {}
        for name, model in models.items():
            result = measure(model, test)
            tokens[name] = sum(each.tokens for each in result.evaluations.values())
            print(
                f"{seed:3} {name:8} Gini {measure(model, dev).gini:.4f} dev {result.gini:.4f} test {tokens[name]:12,}"
            )
        changes.append(tokens["mixture"] / tokens["parity"] - 1)
    print(f"tokens of the mixture: {np.mean(changes):+.2%} ± {np.std(changes):.2%}")


if __name__ == "__main__":
    main()
