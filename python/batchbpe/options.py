"""Options are declared once: as fields of a dataclass, each with a help text.

Docstrings, the command line, sweeps and the metadata of models are derived from the fields; the tests compare
signatures with them.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from inspect import Parameter
from itertools import chain
from typing import Any, Literal, TypeAlias, TypeVar, cast

from .arguments import check_bool, check_integer
from .errors import ArgumentError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
HelpGroup: TypeAlias = Literal[
    "Output", "Vocabulary", "Splitting", "Special tokens", "Data", "Phrases", "Merging", "Execution"
]
"""Titles of the groups of options in `--help`, in order."""


def option(default: T, help: str, **rest: Any) -> T:
    """Declare a field of a dataclass as an option. `rest` is as for `details`."""
    return field(default=default, metadata=details(help, **rest))


def details(
    help: str,
    *,
    least: int | None = None,
    choices: tuple[str, ...] = (),
    shell: bool = True,
    group: HelpGroup | None = None,
) -> dict[str, Any]:
    """Return the metadata of an option.

    Parameters
    ----------
    help: a sentence for `help()` and `--help`.
    least: the smallest number allowed.
    choices: the strings allowed on the command line.
    shell: whether the command line has an option of the same name and type, which its default value tells.
    group: its group in `--help`, by default `GROUP` of the dataclass.

    """
    return {"help": help, "least": least, "choices": choices, "shell": shell, "group": group}


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
    """Create options from those arguments of a function that are named like them."""
    return options(**{each.name: given[each.name] for each in fields(options) if each.name in given})  # type: ignore[arg-type]


def documented(**classes: Sequence[type]) -> Callable[[F], F]:
    """Return a decorator that replaces each `{name}` in a docstring with the help of all options of some classes."""

    def decorate(function: F) -> F:
        for name, options in classes.items():
            lines = [described(each) for one in options for each in fields(one)]
            expand = r"\1" + r"\n\1".join(line.replace("\\", r"\\") for line in lines)
            function.__doc__ = re.sub(rf"(?m)^( *)\{{{name}\}}$", expand, function.__doc__ or "")
        return function

    return decorate


def described(option: Field[Any]) -> str:
    """Return an option and its help, as in a docstring."""
    help = option.metadata["help"]
    return f"{option.name}: {help[:1].lower()}{help[1:]}"


def accepting(*classes: type) -> Callable[[F], F]:
    """Return a decorator for a function with typed keyword arguments that are the fields of some dataclasses.

    `help()` shows them in the signature, and in the docstring in place of `{reading}`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        for each in chain.from_iterable(map(fields, classes)):
            parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type))
        known = {each.name for each in parameters}

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            for name in kwargs:
                if name not in known:
                    raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}")
            return function(*args, **kwargs)

        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return cast(F, documented(reading=classes)(call))

    return decorate


def defaults(options: type) -> dict[str, Any]:
    """Return the default values of the options of the command line that have one."""
    return {each.name: each.default for each in shell_options(options) if each.default not in (MISSING, None)}
