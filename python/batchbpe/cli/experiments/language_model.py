"""`batchbpe experiment language-model`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..options import Threads, option
from ..usage import number, one_of, refuse
from .common import experiment, spelling
from .grids import grid_of

if TYPE_CHECKING:
    from ...experiments import Result


def _scaled(help: str, kind: type[int] | type[float] = int) -> Any:
    return option(help, show_default="from --scale", **number(kind))


@experiment("pattern", "normalization", takes_counts=False)
def language_model(
    *,
    tokenizer: Annotated[
        list[Path] | None, option("Tokenizer to compare, in any format. Can be repeated.", metavar="MODEL")
    ] = None,
    grid: Annotated[
        list[str] | None, option("Options of vocabularies to train, as for sweep.", metavar="NAME=VALUE,...")
    ] = None,
    vocab_size: Annotated[
        int | None,
        option("Size of each vocabulary of --grid.", "--vocab-size", "-n", **number(int, least=256)),
    ] = None,
    seeds: Annotated[int, option("Number of models for each vocabulary.", **number(int, least=1))] = 3,
    scale: Annotated[float, option("Factor for parameters and bytes to train on.", **number(float))] = 1.0,
    layers: Annotated[int | None, _scaled("Number of layers.")] = None,
    width: Annotated[int | None, _scaled("Width, a multiple of 64.")] = None,
    context: Annotated[int | None, _scaled("Context, in tokens.")] = None,
    training_bytes: Annotated[int | None, _scaled("Bytes of text to train on.")] = None,
    heldout_bytes: Annotated[int | None, _scaled("Bytes of held-out text to evaluate on.")] = None,
    step_bytes: Annotated[int | None, _scaled("Bytes of text per training step.")] = None,
    learning_rate: Annotated[float | None, _scaled("Learning rate.", float)] = None,
    device: Annotated[str, option("Device: cpu, cuda, cuda:N or mps.", metavar="DEVICE")] = "cpu",
    dtype: Annotated[
        str,
        option(
            "Number format: auto, float32 or bfloat16.", metavar="FORMAT", **one_of(["auto", "float32", "bfloat16"])
        ),
    ] = "auto",
    threads: Threads = None,
    given: dict[str, Any],
) -> Result:
    """Compare vocabularies by training small language models.

    The first vocabulary is the reference (https://batchbpe.github.io/batchbpe/language-model.html).

    Example: batchbpe experiment language-model --data data --tokenizer a.model --tokenizer b.model -o lm
    """
    from ...experiments import language_model

    refuse({"language-model needs --tokenizer, --grid or both": not (tokenizer or grid)})
    refuse({"--vocab-size has no effect without --grid; remove it": vocab_size and not grid})
    values = grid_of(grid, vocab_size) if grid else None
    with spelling(values or ()):
        return language_model(
            tokenizers=tokenizer or None,
            grid=values,
            seeds=seeds,
            scale=scale,
            layers=layers,
            width=width,
            context=context,
            training_bytes=training_bytes,
            heldout_bytes=heldout_bytes,
            step_bytes=step_bytes,
            learning_rate=learning_rate,
            device=device,
            dtype=dtype,  # type: ignore[arg-type]
            threads=threads,
            **given,
        )
