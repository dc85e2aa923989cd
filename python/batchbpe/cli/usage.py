"""Help and usage errors in the usual notation: `MODEL [INPUTS...]` and `--threads must be at least 1, got 0`.

This uses only what typer and click document, because their help and errors differ between versions.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import short
from ..options import HelpGroup

TyperUsageError: Any = typer.BadParameter.__base__
"""Base class of typer's usage errors, which typer does not export."""


FEW = 12
"""Up to this many options are listed without groups."""


class UsageError(ValueError):
    """Options that cannot be combined."""


def refuse(problems: Mapping[str, object]) -> None:
    """Raise a usage error with the first message whose condition is true."""
    for message, is_true in problems.items():
        if is_true:
            raise UsageError(message)


class Group(TyperGroup):
    """The program: prints its help to standard error if it is called without arguments, and suggests commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command."""
        if not args and not ctx.resilient_parsing:  # which is set for shell completion
            sys.stderr.write(f"{ctx.get_help()}\n")
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            ctx.fail(f"unknown command {args[0]!r}{suggestion(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


class Command(TyperCommand):
    """A command that writes its arguments in the usual notation."""

    allow_extra_args = True  # so that `parse_args` receives them

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and options."""
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            ctx.fail(f"unexpected argument: {' '.join(extra)}")
        return extra

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command in the usage line."""
        arguments = [param for param in self.params if param.param_type_name == "argument"]
        return ["[OPTIONS]", *map(argument, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options with their help, in groups if there are many."""
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        rows = {"Arguments": [(argument(param), getattr(param, "help", "")) for param in arguments]}
        for title, options in grouped(self.get_params(ctx)).items():
            # click puts defaults that are described in words in parentheses.
            records = [record for option in options if (record := option.get_help_record(ctx))]
            rows[title] = [
                (names, re.sub(r"\[default: \((.*)\)([;\]])", r"[default: \1\2", text)) for names, text in records
            ]
        for title, records in rows.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def grouped(params: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the options of a command by the titles of their groups, those without a group first.

    `--help` is one of these, or the last option if every other one has a group.
    """
    options = [param for param in params if param.param_type_name == "option"]
    if len(options) <= FEW:
        return {"Options": options}
    *own, help = options
    titles: list[Any] = [None, *get_args(HelpGroup)]
    groups = {title or "Options": [each for each in own if each.rich_help_panel == title] for title in titles}
    filled = {title: members for title, members in groups.items() if members}
    (groups["Options"] or [*filled.values()][-1]).append(help)
    return filled


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
            listed = ", ".join(map(repr, choices))
            raise typer.BadParameter(f"must be one of {listed}, got {short(text)}{suggestion(text, choices)}")
        return text

    return {"parser": parse, "autocompletion": lambda: choices}


def count_or(word: str) -> dict[str, Any]:
    """Return the settings of an option whose value is a number or a word, such as auto."""

    def parse(value: str | int) -> int | str:  # the default is a number
        if value == word or isinstance(value, int):
            return value
        if not value.isdecimal():
            raise typer.BadParameter(f"must be a number or {word}, got {short(value)}")
        return int(value)

    return {"type": Any, "parser": parse, "metavar": "N"}


def suggestion(word: str, choices: Iterable[str], cutoff: float = 0.6, show: Callable[[str], str] = repr) -> str:
    """Return the choices that a misspelled word resembles, for the end of a message."""
    by_lower = {choice.lower(): choice for choice in choices}
    number = 1 if word.lower() in by_lower else 3
    close = [by_lower[each] for each in get_close_matches(word.lower(), by_lower, number, cutoff)]
    return f"; did you mean {' or '.join(map(show, close))}?" if close else ""


def problem(error: Any) -> str:
    """Describe a usage error of typer in the words of our own errors."""
    see = f"; see '{error.ctx.command_path} --help'" if error.ctx else ""
    if isinstance(error, typer.BadParameter):
        param: Any = error.param
        name = _name(param)
        # The message is empty if the parameter is missing; otherwise `number` or `one_of` has written it.
        return f"{name} {error.message}" if error.message else f"missing {param.param_type_name} {name}{see}"
    name = getattr(error, "option_name", "")
    text: str = error.message.rstrip(".").replace("No such", "unknown").replace(f"Option {name!r}", name)
    text += suggestion(name, getattr(error, "possibilities", None) or [], cutoff=0.75, show=str)
    return text[:1].lower() + text[1:] + ("" if text.endswith("?") else see)
