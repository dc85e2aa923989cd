"""Experiments on many vocabularies: every combination of a grid, and mixtures of groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args

from ...choices import Objective, Unit
from ...errors import ArgumentError, Setting, short
from ...util.documentation import page
from ..options import option
from ..policy import load_policy
from ..usage import UsageError, count_or, number, one_of, refuse
from .common import VOCAB_SIZE, experiment, spelling

if TYPE_CHECKING:
    from ...experiments import Result

KEEP = {name: value for name, value in count_or("all").items() if name != "type"}
Keep = Annotated[Any, option("Number of models to save, best first, or all.", **KEEP)]
GridSize = Annotated[
    int | None,
    option(
        "Size of each vocabulary, unless in --grid.",
        "--vocab-size",
        "-n",
        show_default=str(VOCAB_SIZE),
        **number(int, least=256),
    ),
]


@experiment()
def sweep(
    *,
    grid: Annotated[list[str], option("Option of train and its values. Can be repeated.", metavar="NAME=VALUE,...")],
    vocab_size: GridSize = None,
    keep: Keep = 0,
    given: dict[str, Any],
) -> Result:
    """Train and rank every combination of options.

    Example: batchbpe experiment sweep --data data --grid stop_list_size=0,100 -o sweep
    """
    from ...experiments import sweep

    values = grid_of(grid, vocab_size, given.pop("pattern"))
    with spelling(values):
        return sweep(grid=values, keep=keep, **given)


@experiment("heldout", "resume")
def mixture(
    *,
    group_column: Annotated[str | None, option("Table column or jsonl field with the groups.", metavar="NAME")] = None,
    by_file: Annotated[bool, option("Each file is a group.", "--by-file")] = False,
    grid: Annotated[
        list[str] | None, option("Several vocabulary sizes: vocab_size=N,N.", metavar="NAME=VALUE,...")
    ] = None,
    vocab_size: GridSize = None,
    objective: Annotated[
        Objective,
        option(
            f"What to optimize: total, worst, gini or bytes-per-token ({page('mixtures')}).",
            metavar="NAME",
            **one_of(get_args(Objective)),
        ),
    ] = "total",
    per: Annotated[
        Unit,
        option(
            "Unit of text whose cost is compared: byte, character, or text if all groups have the same content.",
            metavar="UNIT",
            **one_of(get_args(Unit)),
        ),
    ] = "character",
    trials: Annotated[int, option("Number of mixtures to train.", **number(int, least=1))] = 100,
    keep: Keep = 0,
    given: dict[str, Any],
) -> Result:
    """Search weights of languages or other groups.

    Example: batchbpe experiment mixture --data data.parquet --group-column language -o mixture
    """
    from ...experiments import mixture

    refuse({"mixture needs --group-column or --by-file": not (group_column or by_file)})
    values = grid_of(grid or [], vocab_size)
    refuse({f"--grid {name} has no effect with mixture; remove it": name for name in values if name != "vocab_size"})
    with spelling(values):
        return mixture(
            group_column=group_column,
            by_file=by_file,
            vocab_sizes=values["vocab_size"],
            objective=objective,
            per=per,
            trials=trials,
            keep=keep,
            **given,
        )


def grid_of(given: list[str], vocab_size: int | None, pattern: str | None = None) -> dict[str, Any]:
    """Return the grid that --grid, --vocab-size and --pattern describe."""
    values = _parsed(given)
    size = next((name for name in ("vocab_size", "add_tokens") if name in values), None)
    problems = {"--vocab-size": vocab_size and size, "--pattern": pattern and "pattern" in values and "pattern"}
    refuse({f"{name} has no effect with --grid {cause}; remove it": cause for name, cause in problems.items()})
    return (
        ({"pattern": [pattern]} if pattern else {})
        | ({} if size else {"vocab_size": [vocab_size or VOCAB_SIZE]})
        | values
    )


def _parsed(given: list[str]) -> dict[str, Any]:
    """Parse options and their values."""
    from ...patterns import PATTERNS

    parsers = _parsers()
    grid: dict[str, Any] = {}
    for each in given:
        name, _, text = each.partition("=")
        name = name.strip().replace("-", "_")
        if not text:
            raise ArgumentError("grid", each, "must be NAME=VALUE,…", remedy="for example vocab_size=8000,16000")
        if name not in parsers:
            raise UsageError(f"--grid {name} is unknown; use one of {', '.join(parsers)}")
        parts = text.split(",") if name == "pattern" else [part.strip() for part in text.split(",")]
        if name == "pattern" and not set(parts) <= set(PATTERNS):
            if set(parts) & set(PATTERNS):
                reason = "must not combine regular expressions, which may contain commas, with named patterns"
                raise ArgumentError("grid", each, reason, remedy=("repeat ", Setting("grid"), " for each"))
            parts = [text]
        try:
            with spelling([name]):
                grid.setdefault(name, {}).update((part, parsers[name](part)) for part in parts)
        except _WrongValue as error:
            raise UsageError(f"--grid {name} must be a list of {error}, got {short(text)}") from None
    # Only policies keep the names that were typed; other values are their own names.
    return {name: values if name == "policy" else list(values.values()) for name, values in grid.items()}


class _WrongValue(ValueError):
    """A value of the grid that is not of the expected kind."""


def _parsers() -> dict[str, Callable[[str], Any]]:
    """Return the options that can be in a grid on the command line, and what parses their values."""
    from ...options import shell_options
    from ...phrases.options import PhraseOptions
    from ...training.options import TrainingOptions

    def number(text: str, kind: type = int, noun: str = "integers") -> Any:
        try:
            return kind(text)
        except ValueError:
            raise _WrongValue(noun) from None

    def switch(text: str) -> bool:
        if text not in ("true", "false"):
            raise _WrongValue("true and false")
        return text == "true"

    def count_or_auto(text: str) -> int | str:
        return text if text == "auto" else number(text, noun="integers and auto")

    by_type: dict[type, Callable[[str], Any]] = {int: number, bool: switch, str: str, type(None): number}
    fields = (each for options in (TrainingOptions, PhraseOptions) for each in shell_options(options))
    return {
        "vocab_size": number,
        "pattern": str,
        **{each.name: by_type[type(each.default)] for each in fields},
        "policy": load_policy,
        "phrases": count_or_auto,
        "phrase_sample": partial(number, kind=float, noun="numbers"),
        "base": str,
        "like": str,
    }
