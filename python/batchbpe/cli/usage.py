"""Help and usage errors in the usual notation: `MODEL [INPUTS...]` and `--threads must be at least 1, got 0`.

This uses only what typer and click document, since their help and errors differ between versions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import short


class UsageError(ValueError):
    """Options that cannot be combined."""


class Command(TyperCommand):
    """A command that writes its arguments in the usual notation."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command in the usage line."""
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        return ["[OPTIONS]", *map(argument, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options with their help."""
        rows: dict[str, list[Any]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                rows["Arguments"].append((argument(param), getattr(param, "help", "")))
            elif record := param.get_help_record(ctx):
                names, text = record
                # click puts defaults that are described in words in parentheses.
                rows["Options"].append((names, re.sub(r"\[default: \((.*)\)([;\]])", r"[default: \1\2", text)))
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


def argument(param: Any) -> str:
    """Return an argument as in a usage line: `MODEL`, `INPUTS...`, or `[INPUTS...]` if it can be omitted."""
    name = _name(param) + "..." * (param.nargs == -1)
    return name if param.required else f"[{name}]"


def _name(param: Any) -> str:
    """Return the name of an option or an argument as a user knows it: `--output` or `INPUTS`."""
    return str(max(param.opts, key=len) if param.param_type_name == "option" else param.metavar or param.name.upper())


def number(kind: type[int] | type[float], least: float | None = None, most: float | None = None) -> dict[str, Any]:
    """Return the settings of an option whose value is a number in a range."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            noun = "an integer" if kind is int else "a number"
            raise typer.BadParameter(f"must be {noun}, got {short(text)}") from None
        if least is not None and not value >= least:  # nan is not
            raise typer.BadParameter(f"must be at least {least}, got {value}")
        if most is not None and value > most:
            raise typer.BadParameter(f"must be at most {most}, got {value}")
        return value

    return {"parser": parse, "metavar": "N"}


def one_of(choices: Sequence[str]) -> dict[str, Any]:
    """Return the settings of an option or argument whose value is one of the choices."""

    def parse(text: str) -> str:
        if text not in choices:
            close = get_close_matches(text, choices, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise typer.BadParameter(f"must be one of {', '.join(map(repr, choices))}, got {short(text)}{hint}")
        return text

    return {"parser": parse, "autocompletion": lambda: choices}


def problem(error: Any) -> str:
    """Describe a usage error of typer in the words of our own errors."""
    see = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
    if isinstance(error, typer.BadParameter):
        param: Any = error.param
        name = _name(param)
        # The message is empty if the parameter is missing; otherwise `number` or `one_of` has written it.
        return f"{name} {error.message}" if error.message else f"missing {param.param_type_name} {name}{see}"
    text = error.message.rstrip(".").replace("No such", "unknown").replace(". Did you mean", "; did you mean")
    text = re.sub(r"^Option '(.+?)'", r"\1", text)
    text = re.sub(r"^Got unexpected extra argument\S* \((.*)\)$", r"unexpected argument: \1", text)
    suggested = getattr(error, "possibilities", None)
    close = get_close_matches(error.option_name, suggested, cutoff=0.75) if suggested else []  # the default is 0.6
    if close:
        text += f"; did you mean {' or '.join(close)}?"
    return text[:1].lower() + text[1:] + ("" if text.endswith("?") else see)
