"""Train one model, and evaluate it at several numbers of bytes seen, as if training had ended at each of them.

The learning rate rises, stays constant, and falls to zero over the last part. For an evaluation before the end, the
state is copied where this last part would begin; after the evaluation, training continues from the copy. Thus every
point of the curve is what a complete run of that length reaches, which makes runs of different lengths comparable.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, islice
from math import log, log2
from pathlib import Path
from typing import Any

import numpy as np

from ..._core import threads_or_all
from ...errors import DataError, Setting, opening
from ...storage.atomic import replacing
from .batches import IGNORED, Encoder, Ids, padded, steps
from .options import Options
from .runs import Point, Run
from .texts import Texts
from .transformer import Transformer

ENDS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""The fractions of the bytes after which a model is evaluated."""
FALL = 0.3
"""Fraction of a run in which the learning rate falls to zero."""
RISE = 0.03
"""Fraction of the longest run in which the learning rate rises to its value."""
EMBEDDINGS = 3.0
"""Learning rate of the embeddings, relative to that of the blocks."""
DECAY = 0.1
"""Weight decay of the matrices of the blocks; embeddings have none."""
MAX_FLOPS = 6e10
"""Maximum number of operations in one call on a processor, which Ctrl-C has to wait for."""
MAX_ACTIVATIONS = 1 << 27
"""Maximum number of values of all layers in one call on other devices, whose memory is limited."""
SAVE_EVERY = 60.0
"""Minimum number of seconds between two checkpoints."""
OnProgress = Callable[[float, "float | None"], object]
"""Receives the fraction of the work that is done, and the bits per byte of the last evaluation."""


def train_model(
    encoder: Encoder,
    texts: Texts,
    options: Options,
    seed: int,
    device: str = "cpu",
    dtype: str = "float32",
    threads: int | None = None,
    checkpoint: Path | None = None,
    on_progress: OnProgress = lambda done, bits: None,
) -> Run:
    """Train and evaluate a model. With a checkpoint, training continues from it if the file exists, and updates it."""
    with torch_threads(threads), _enough_memory(device):
        training = _Training(encoder, texts, options, seed, device, dtype)
        if checkpoint is not None and checkpoint.exists():
            training.load(checkpoint)
        training.train(checkpoint, on_progress)
    return training.run


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Let PyTorch use a number of threads, all cores by default."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads_or_all(threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _enough_memory(device: str) -> Iterator[None]:
    """Raise an error that says how to use less memory, instead of the various errors of NumPy and PyTorch."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search("out of memory|allocate memory", str(error)):
            raise
        remedy = ("reduce ", Setting("scale"), ", ", Setting("width"), " or ", Setting("context"))
        raise DataError(f"the model does not fit into the memory of {device}", remedy=remedy) from error


class _Training:
    """A model, its optimizer, and what has been evaluated."""

    def __init__(self, encoder: Encoder, texts: Texts, options: Options, seed: int, device: str, dtype: str) -> None:
        import torch

        self._encoder, self._options, self._device = encoder, options, device
        self._documents = len(texts.heldout)
        self._windows = sorted(encoder.windows(texts.heldout, options.context), key=lambda each: len(each.inputs))
        self._heldout_bytes = sum(texts.heldout_sizes)
        predicted = sum(int((window.targets != IGNORED).sum()) for window in self._windows)
        self._guessed = predicted * log2(encoder.vocabulary)
        """Bits of a guess in which all tokens are equally likely."""
        found = steps(texts.training, options.step_bytes, seed)
        self._steps = list(islice(found, options.training_bytes // options.step_bytes))
        self._bytes = [*accumulate((sum(len(piece.text) for piece in step) for step in self._steps), initial=0)]
        self._ends = [max(1, round(len(self._steps) * part)) for part in ENDS]
        self._model = Transformer(options.shape, encoder.token_bytes(), seed, device, dtype)
        blocks, embeddings = self._model.flat
        blocks.grad, embeddings.grad = self._model.gradients
        self._optimizer = torch.optim.AdamW(
            [{"params": [blocks], "weight_decay": DECAY}, {"params": [embeddings], "weight_decay": 0.0}],
            betas=(0.9, 0.95),
            eps=1e-10,
            fused=True,
        )
        self._position = self._tokens = 0
        """Number of steps done, and of tokens predicted in them."""
        self._work = 0
        """Number of steps done, including those that were undone."""
        self._seconds = 0.0
        self.run = Run(encoder.vocabulary, sum(len(each) for each in self._model.flat), [])

    def train(self, checkpoint: Path | None, on_progress: OnProgress) -> None:
        """Train and evaluate until the end."""
        saved, started = time.perf_counter(), time.perf_counter() - self._seconds
        total = sum(self._ends) - sum(map(_falls_from, self._ends[:-1]))

        def on_step() -> None:
            points = self.run.points
            on_progress(self._work / total, points[-1].total / self._heldout_bytes if points else None)

        for end in self._ends[len(self.run.points) :]:
            self._train_until(_falls_from(end), end, on_step)
            state = self._state() if end < self._ends[-1] else None
            self._train_until(end, end, on_step)
            self._evaluate()
            self._seconds = time.perf_counter() - started
            if state is not None:
                self._restore(state)
                if checkpoint is not None and time.perf_counter() - saved > SAVE_EVERY:
                    self._save(checkpoint, state)
                    saved = time.perf_counter()
        self.run = replace(self.run, seconds=self._seconds)

    def _train_until(self, stop: int, end: int, on_step: Callable[[], object]) -> None:
        """Do the steps before `stop`, in a run that is evaluated at `end`."""
        batches = self._encoder.batches(self._steps[self._position : stop], self._options.context)
        for inputs, targets in batches:
            tokens = int((targets != IGNORED).sum())
            for part in self._parts(*inputs.shape):
                self._model.add_gradients(self._moved(inputs[part]), self._moved(targets[part]), 1 / tokens)
            rise = max(1, round(RISE * len(self._steps)))
            fall = (end - self._position) / (end - _falls_from(end))
            rate = self._options.learning_rate * min(1, (self._position + 1) / rise, fall)
            for group, factor in zip(self._optimizer.param_groups, (1, EMBEDDINGS), strict=True):
                group["lr"] = rate * factor
            self._optimizer.step()
            for gradient in self._model.gradients:
                gradient.zero_()
            self._position, self._tokens, self._work = self._position + 1, self._tokens + tokens, self._work + 1
            on_step()

    def _evaluate(self) -> None:
        """Add the bits of each held-out document."""
        bits = np.zeros(self._documents)
        start = 0
        while start < len(self._windows):
            longest = len(self._windows[min(start + 63, len(self._windows) - 1)].inputs)
            rows = self._rows_at_once(longest, backward=False)
            some = self._windows[start : start + min(rows, 64)]
            inputs, targets = padded(some)
            losses = self._model.losses(self._moved(inputs), self._moved(targets)).cpu().double().sum(1).numpy()
            np.add.at(bits, [each.document for each in some], losses / log(2))
            start += len(some)
        is_end = self._position == self._ends[-1]
        if not np.isfinite(bits).all() or (is_end and bits.sum() > self._guessed):
            remedy = ("reduce ", Setting("learning_rate"))
            raise DataError(f"the training with the tokenizer {self._encoder.name} diverged", remedy=remedy)
        shape = self._options.shape
        flops = 3 * self._tokens * shape.flops(self._encoder.vocabulary)
        self.run.points.append(Point(self._bytes[self._position], self._tokens, flops, bits.tolist()))

    def _parts(self, rows: int, length: int) -> Iterator[slice]:
        """Yield parts of a step, which are computed one at a time."""
        size = self._rows_at_once(length, backward=True)
        return (slice(start, start + size) for start in range(0, rows, size))

    def _rows_at_once(self, length: int, *, backward: bool) -> int:
        """Return how many rows are computed at a time."""
        shape = self._options.shape
        if self._device == "cpu":
            flops = shape.flops(self._encoder.vocabulary) * length * (3 if backward else 1)
            return max(1, int(MAX_FLOPS / flops))
        return max(1, MAX_ACTIVATIONS // (shape.layers * shape.width * length))

    def _moved(self, values: Ids) -> Any:
        import torch

        return torch.from_numpy(np.ascontiguousarray(values)).to(self._device)

    def _state(self) -> dict[str, Any]:
        """Return a copy of everything that steps change."""
        state = {
            "position": self._position,
            "tokens": self._tokens,
            "model": self._model.flat,
            "optimizer": self._optimizer.state_dict(),
        }
        return copy.deepcopy(state)

    def _restore(self, state: dict[str, Any]) -> None:
        """Undo the steps since a copy was made."""
        import torch

        self._position, self._tokens = state["position"], state["tokens"]
        with torch.no_grad():
            for mine, other in zip(self._model.flat, state["model"], strict=True):
                mine.copy_(other)
        self._optimizer.load_state_dict(state["optimizer"])

    def _save(self, checkpoint: Path, state: dict[str, Any]) -> None:
        import torch

        fields = {"run": json.dumps(self.run.recorded()), "work": self._work, "seconds": self._seconds}
        fields["tokenizer"] = self._encoder.tokenizer.model.identity
        with replacing(checkpoint) as temporary, temporary.open("wb") as file:
            try:
                torch.save({**fields, "state": state}, file)
            except RuntimeError as error:  # hides the cause, such as a full disk
                raise (error.__context__ or error) from None

    def load(self, checkpoint: Path) -> None:
        """Continue from a checkpoint."""
        import torch

        try:
            with opening(checkpoint):
                fields = torch.load(checkpoint, map_location=self._device, weights_only=True)
            is_other = fields["tokenizer"] != self._encoder.tokenizer.model.identity
            if not is_other:
                self.run = Run.of(json.loads(fields["run"]))
                self._restore(fields["state"])
                self._work, self._seconds = fields["work"], fields["seconds"]
        except (RuntimeError, ValueError, LookupError, TypeError, EOFError, pickle.UnpicklingError) as error:
            raise DataError("the checkpoint is damaged", where=str(checkpoint), remedy="remove it") from error
        if is_other:
            reason = f"the checkpoint is from another vocabulary {self._encoder.name}"
            raise DataError(reason, where=str(checkpoint), remedy="rename the vocabulary, or remove it")


def _falls_from(end: int) -> int:
    """Return the step from which the learning rate falls, in a run that ends at `end`.

    >>> _falls_from(100), _falls_from(1)
    (70, 0)
    """
    return end - max(1, round(FALL * end))
