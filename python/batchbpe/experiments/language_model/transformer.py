"""The model: a decoder-only transformer, and its computation on a batch of rows of ids.

Pre-norm RMSNorm without gains (including queries and keys), rotary positions, GELU, no biases, and one matrix of
embeddings for input and output. The initial values of all other parameters follow from the seed alone, and that of an
embedding from the seed and the bytes of its token. PyTorch is an optional dependency, imported inside functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Tensor: TypeAlias = Any

HEAD = 64
"""Width of an attention head, and what `width` must be a multiple of."""
INITIAL = 0.02
"""Standard deviation of the initial parameters."""
POSITIONS = 10_000.0
"""Base of the wavelengths of rotary positions."""
CACHED_LOGITS, MAX_LOGITS = 1 << 22, 1 << 28
"""Maximum number of logits that are computed at a time, on a processor and on other devices."""
GRAIN = 128
"""The number of positions is rounded up to a multiple: PyTorch keeps code in memory for every shape of a product."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a transformer, except for the vocabulary.

    >>> Shape(layers=4, width=128, context=256).parameters
    786432
    """

    layers: int
    width: int
    context: int

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """The shape of each matrix of the blocks."""
        width = self.width
        block = {"qkv": (3 * width, width), "out": (width, width), "up": (4 * width, width), "down": (width, 4 * width)}
        return {f"{layer}.{name}": shape for layer in range(self.layers) for name, shape in block.items()}

    @property
    def parameters(self) -> int:
        """The number of parameters without embeddings."""
        return sum(map(prod, self.matrices.values()))

    def flops(self, embeddings: int) -> int:
        """Return the floating-point operations per token of a forward pass, with the output layer.

        Two for each parameter in a product of matrices, and attention to half of the context on average. Training takes
        three times as many.

        >>> Shape(layers=4, width=128, context=256).flops(embeddings=8192)
        3932160
        """
        return 2 * (self.parameters + embeddings * self.width) + 2 * self.layers * self.width * self.context


class Transformer:
    """Parameters on a device, and the passes that training and evaluation need.

    All parameters are views of two flat tensors, `blocks` and `embeddings`, so that the optimizer and the average of
    the weights each need only a few operations.
    """

    def __init__(self, shape: Shape, tokens: Sequence[bytes], seed: int, device: str, dtype: str) -> None:
        """Initialize the parameters from a seed. `tokens` are the bytes of each token of the vocabulary."""
        import torch

        self.shape, self.vocabulary, self.device = shape, len(tokens), device
        vocabulary = self.vocabulary
        self.dtype: Any = getattr(torch, dtype)
        self.blocks = torch.tensor(initial_blocks(shape, seed), device=device)
        self.embeddings = torch.tensor(initial_embeddings(tokens, shape.width, seed), device=device)
        self.gradients = [torch.zeros_like(each) for each in self.flat]
        ends = accumulate(map(prod, shape.matrices.values()), initial=0)
        self._matrices: dict[str, Tensor] = {}
        for (name, sizes), (start, end) in zip(shape.matrices.items(), pairwise(ends), strict=True):
            matrix = self.blocks[start:end].view(sizes).requires_grad_()
            matrix.grad = self.gradients[0][start:end].view(sizes)
            self._matrices[name] = matrix
        self._input = self.embeddings.view(vocabulary, shape.width).requires_grad_()
        self._input.grad = self.gradients[1].view(vocabulary, shape.width)
        self._cosine, self._sine = (torch.tensor(each, device=device) for each in rotations(shape.context))
        above = torch.full((shape.context, shape.context), float("-inf")).triu(1)
        self._mask = above.to(device=device, dtype=self.dtype)
        self._at_once = max(16, (CACHED_LOGITS if device == "cpu" else MAX_LOGITS) // vocabulary)
        # Allocating these for every part would take a tenth of the time.
        self._scratch = [torch.empty(self._at_once, vocabulary, device=device, dtype=self.dtype) for _ in range(2)]
        self._product = torch.empty(self._at_once, shape.width, device=device, dtype=self.dtype)
        self._rows = torch.arange(self._at_once, device=device)

    @property
    def flat(self) -> list[Tensor]:
        """All parameters, as two flat tensors."""
        return [self.blocks, self.embeddings]

    def add_gradients(self, inputs: Tensor, targets: Tensor, weight: float) -> None:
        """Add the gradients of the sum of the losses, multiplied by `weight`. Targets below 0 are ignored."""
        import torch

        with self._autocast():
            hidden = self._hidden(inputs)
        positions = (targets.view(-1) >= 0).nonzero()[:, 0]
        number = len(positions)
        positions = torch.cat([positions, positions[:1].expand(-number % GRAIN)])
        used, wanted = hidden.view(-1, self.shape.width)[positions], targets.view(-1)[positions]
        output_gradient = self.gradients[1].view(self.vocabulary, self.shape.width)
        with torch.no_grad():
            features, output = used.to(self.dtype), self._input.to(self.dtype)
            gradient, scaled = torch.empty_like(used), features * weight
            for part in self._parts(len(wanted)):
                logits, errors = (each[: part.stop - part.start] for each in self._scratch)
                torch.mm(features[part], output.T, out=logits)
                torch.softmax(logits, -1, out=errors)
                errors[self._rows[: len(errors)], wanted[part]] -= 1
                errors[max(0, number - part.start) :] = 0
                torch.mm(errors, output, out=self._product[: len(errors)])
                gradient[part] = self._product[: len(errors)]
                output_gradient += errors.T @ scaled[part]
            gradient *= weight
        used.backward(gradient)

    def losses(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the negative logarithm of the probability of each target, and 0 for targets below 0."""
        import torch

        with torch.no_grad():
            with self._autocast():
                hidden = self._hidden(inputs)
            is_used = targets.view(-1) >= 0
            used, wanted = hidden.view(-1, self.shape.width)[is_used].float(), targets.view(-1)[is_used]
            losses = torch.zeros(targets.numel(), device=targets.device)
            found = torch.empty(len(wanted), device=targets.device)
            for part in self._parts(len(wanted)):
                logits = used[part] @ self._input.T
                chosen = logits.gather(1, wanted[part, None])[:, 0]
                found[part] = torch.logsumexp(logits, -1) - chosen
            losses[is_used] = found
            return losses.view(targets.shape)

    def _autocast(self) -> AbstractContextManager[Any]:
        import torch

        if self.dtype == torch.float32:
            return nullcontext()
        context: AbstractContextManager[Any] = torch.autocast(self.device.partition(":")[0], self.dtype)
        return context

    def _parts(self, rows: int) -> Iterator[slice]:
        return (slice(start, min(start + self._at_once, rows)) for start in range(0, rows, self._at_once))

    def _hidden(self, inputs: Tensor) -> Tensor:
        """Return the normalized output of the last block for each position."""
        from torch.nn.functional import embedding, gelu, linear

        stream = self._normalized(embedding(inputs, self._input))
        for layer in range(self.shape.layers):
            mixed = self._attention(linear(self._normalized(stream), self._matrices[f"{layer}.qkv"]))
            stream = stream + linear(mixed, self._matrices[f"{layer}.out"])
            inner = gelu(linear(self._normalized(stream), self._matrices[f"{layer}.up"]))
            stream = stream + linear(inner, self._matrices[f"{layer}.down"])
        return self._normalized(stream)

    def _normalized(self, values: Tensor) -> Tensor:
        from torch.nn.functional import rms_norm

        return rms_norm(values, (self.shape.width,))

    def _attention(self, qkv: Tensor) -> Tensor:
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        rows, length, _ = qkv.shape
        parts = qkv.view(rows, length, 3, self.shape.width // HEAD, HEAD).transpose(1, 3)
        query, key = self._rotated(parts[:, :, :2]).unbind(2)
        value = parts[:, :, 2]
        if self.device != "cpu" or self.dtype == torch.float32:
            mixed = scaled_dot_product_attention(query, key, value, is_causal=True)
        else:  # twice as fast as the function above in bfloat16
            scores = (query * HEAD**-0.5) @ key.transpose(-1, -2) + self._mask[:length, :length]
            mixed = torch.softmax(scores, -1).to(self.dtype) @ value
        return mixed.transpose(1, 2).reshape(rows, length, self.shape.width)

    def _rotated(self, vectors: Tensor) -> Tensor:
        """Normalize vectors, and rotate pairs of values by angles that grow with the position."""
        from torch.nn.functional import rms_norm

        vectors = rms_norm(vectors, (HEAD,))
        length = vectors.shape[-2]
        cosine, sine = self._cosine[:length].to(vectors.dtype), self._sine[:length].to(vectors.dtype)
        return vectors * cosine + vectors.roll(HEAD // 2, -1) * sine


def initial_blocks(shape: Shape, seed: int) -> npt.NDArray[np.float32]:
    """Return the initial parameters of the blocks. They depend on the seed only, not on the vocabulary or the device.

    Matrices that write to the residual stream start at zero.
    """
    generator = np.random.default_rng(seed)
    parts = []
    for name, sizes in shape.matrices.items():
        spread = 0.0 if name.endswith((".out", ".down")) else INITIAL
        parts.append(spread * generator.standard_normal(prod(sizes), np.float32))
    return np.concatenate(parts)


def initial_embeddings(tokens: Sequence[bytes], width: int, seed: int) -> npt.NDArray[np.float32]:
    """Return the initial embedding of each token. It depends on the seed and the bytes of the token only.

    Tokens that two vocabularies share thus start with the same embedding, whatever their ids. That makes the noise in
    the difference of the vocabularies smaller.

    >>> first, second = initial_embeddings([b"to", b"be"], 64, seed=0), initial_embeddings([b"be"], 64, seed=0)
    >>> (first[64:] == second).all()
    np.True_
    """
    found = np.empty((len(tokens), width), np.float32)
    for row, token in enumerate(tokens):
        key = int.from_bytes(hashlib.blake2b(token, digest_size=16).digest(), "little")
        np.random.default_rng([seed, key]).standard_normal(dtype=np.float32, out=found[row])
    return INITIAL * found.ravel()


def rotations(context: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return the cosines and signed sines of rotary positions, for each position and value of a head."""
    frequencies = POSITIONS ** -(np.arange(0, HEAD, 2) / HEAD)
    angles = np.arange(context)[:, None] * frequencies
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.hstack([cosine, cosine]).astype(np.float32), np.hstack([-sine, sine]).astype(np.float32)
