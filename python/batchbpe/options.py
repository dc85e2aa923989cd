"""Options are declared once: as fields of a dataclass, each with a help text.

Docstrings, the command line, sweeps and the metadata of models are derived from the fields; the tests compare
signatures with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar

from .arguments import check_bool, check_integer
from .errors import ArgumentError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def option(default: T, help: str, **rest: Any) -> T:
    """Declare a field of a dataclass as an option. `rest` is as for `details`."""
    return field(default=default, metadata=details(help, **rest))


def details(
    help: str, *, least: int | None = None, choices: tuple[str, ...] = (), shell: bool = True
) -> dict[str, Any]:
    """Return the metadata of an option.

    Parameters
    ----------
    help: a sentence for `help()` and `--help`.
    least: the smallest number allowed.
    choices: the strings allowed on the command line.
    shell: whether the command line has an option of the same name and type, which its default value tells.

    """
    return {"help": help, "least": least, "choices": choices, "shell": shell}


def shell_options(options: type) -> list[Field[Any]]:
    """Return the fields that are options of the command line, those of the class before those that it inherits."""
    in_order = sorted(fields(options), key=lambda each: each.name not in options.__annotations__)
    return [each for each in in_order if each.metadata["shell"]]


def check_numbers(options: Any) -> None:
    """Raise unless all numbers are integers in range, and all switches are True or False."""
    for each in fields(options):
        value = getattr(options, each.name)
        if isinstance(each.default, bool):
            check_bool(each.name, value)
        elif each.metadata["least"] is not None and value is not None:
            check_integer(each.name, value, each.metadata["least"])


def check_choice(options: Any, name: str) -> None:
    """Raise unless an option has one of the values allowed."""
    choices = type(options).__dataclass_fields__[name].metadata["choices"]
    if getattr(options, name) not in choices:
        raise ArgumentError(name, getattr(options, name), f"must be one of {', '.join(map(repr, choices))}")


def picked(options: type[T], given: Mapping[str, Any]) -> T:
    """Create options from the arguments of a function, which are named like them."""
    return options(**{each.name: given[each.name] for each in fields(options)})  # type: ignore[arg-type]


def documented(*classes: type) -> Callable[[F], F]:
    """Return a decorator that replaces `{options}` in a docstring with the help of all options."""
    lines = [f"{each.name}: {each.metadata['help']}" for options in classes for each in fields(options)]

    def decorate(function: F) -> F:
        function.__doc__ = (function.__doc__ or "").replace("{options}", "\n    ".join(lines))
        return function

    return decorate


def defaults(options: type) -> dict[str, Any]:
    """Return the default values of the options of the command line that have one."""
    return {each.name: each.default for each in shell_options(options) if each.default is not MISSING}
