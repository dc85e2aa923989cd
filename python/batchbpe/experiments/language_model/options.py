"""The sizes of models and texts: defaults for two cores, which one number scales."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

from ...arguments import check_integer
from ...errors import ArgumentError, ArgumentTypeError
from .transformer import HEAD, Shape

DEVICE = re.compile("cpu|cuda|cuda:[0-9]+|mps")
DTYPES = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Options:
    """What is the same for all vocabularies.

    >>> Options.of(scale=8, layers=6)
    Options(layers=6, width=256, context=512, training_bytes=48000000, heldout_bytes=848528, step_bytes=23170, learning_rate=0.00141)
    """  # noqa: E501

    layers: int
    width: int
    context: int
    training_bytes: int
    heldout_bytes: int
    step_bytes: int
    learning_rate: float

    @classmethod
    def of(cls, scale: float = 1.0, **given: Any) -> Options:
        """Return the options for a scale. Those that are given and not None replace it.

        The scale multiplies the parameters without embeddings and the bytes to train on, which makes the compute grow
        with its square. Layers, width and context grow with its cube root.
        """
        if isinstance(scale, bool) or not isinstance(scale, Real):
            raise ArgumentTypeError("scale", scale, "must be a number")
        if not 0 < scale < float("inf"):
            raise ArgumentError("scale", scale, "must be positive and finite")
        root = float(scale) ** (1 / 3)
        defaults = {
            "layers": max(1, round(4 * root)),
            "width": HEAD * max(1, round(2 * root)),
            "context": 32 * max(1, round(8 * root)),
            "training_bytes": round(6_000_000 * scale),
            "heldout_bytes": round(300_000 * max(1, scale**0.5)),
            "step_bytes": round(8192 * max(1, scale**0.5)),
            "learning_rate": round(2e-3 / max(1, root**0.5), 5),
        }
        return cls(**{**defaults, **{name: value for name, value in given.items() if value is not None}})

    def __post_init__(self) -> None:
        """Check the values."""
        for name, least in {"layers": 1, "width": HEAD, "context": 16, "step_bytes": 256}.items():
            check_integer(name, getattr(self, name), least)
        for name in ("training_bytes", "heldout_bytes"):
            check_integer(name, getattr(self, name), 1)
        if self.width % HEAD:
            raise ArgumentError("width", self.width, f"must be a multiple of {HEAD}")
        if isinstance(self.learning_rate, bool) or not isinstance(self.learning_rate, Real):
            raise ArgumentTypeError("learning_rate", self.learning_rate, "must be a number")
        if not 0 < self.learning_rate < 1:
            raise ArgumentError("learning_rate", self.learning_rate, "must be between 0 and 1, exclusive")

    @property
    def shape(self) -> Shape:
        """The sizes of the model."""
        return Shape(self.layers, self.width, self.context)

    def recorded(self) -> dict[str, Any]:
        """Return all options by name."""
        return asdict(self)


def check_names(device: str, dtype: str) -> None:
    """Raise unless the device and the number format can exist."""
    if not isinstance(device, str) or not DEVICE.fullmatch(device):
        raise ArgumentError("device", device, "must be 'cpu', 'cuda', 'cuda:N' or 'mps'")
    if dtype not in DTYPES:
        raise ArgumentError("dtype", dtype, "must be 'auto', 'float32' or 'bfloat16'")


def check_device(device: str, dtype: str) -> str:
    """Return the number format to compute in, and raise if PyTorch or the device does not exist.

    "auto" is bfloat16 where the device computes faster with it, and otherwise float32.
    """
    try:
        import torch
    except ImportError:
        remedy = "run pip install 'batchbpe[lm]'"
        raise ImportError(f"training language models requires PyTorch; {remedy}") from None
    existing = ["cpu"]
    if torch.cuda.is_available():
        existing += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        existing.append("mps")
    if device not in existing:
        raise ArgumentError("device", device, f"must be a device of this machine ({', '.join(existing)})")
    if dtype == "auto":
        is_faster = _multiplies_bfloat16() if device == "cpu" else device != "mps" and torch.cuda.is_bf16_supported()
        return "bfloat16" if is_faster else "float32"
    return dtype


def _multiplies_bfloat16() -> bool:
    """Return whether the processor has instructions for products in bfloat16 (Intel AMX, AVX-512)."""
    import torch

    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)
