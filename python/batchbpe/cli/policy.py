"""`--policy`: the name of a built-in policy, or `module:function` for a policy of the user's own."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

import typer

from ..choices import PolicyName
from ..errors import ArgumentError, DataError, listed, short
from .usage import suggestion

if TYPE_CHECKING:
    from ..policies import Candidates, Policy

NAMES = get_args(PolicyName)
EXPECTED = f"must be one of {', '.join(map(repr, NAMES))}, or module:function"


def policy_option() -> dict[str, Any]:
    """Return the settings of the option. What it names is imported by `load_policy`."""

    def parse(text: str) -> str:
        if text not in NAMES and ":" not in text and not text.endswith(".py"):
            raise typer.BadParameter(f"{EXPECTED}, got {short(text)}{suggestion(text, NAMES)}")
        return text

    help = f"How to choose the pairs of a batch: {', '.join(NAMES)}, or module:function of your own."
    return {"parser": parse, "autocompletion": lambda: NAMES, "metavar": "POLICY", "help": help}


def load_policy(text: str) -> Policy | str:
    """Return the policy that a user names. `module:function` imports the module, which may be a path to a file.

    >>> load_policy("serial")
    'serial'
    >>> load_policy("batchbpe.policies:naive").__name__
    'naive'
    """
    from ..policies import POLICIES

    if text in NAMES:
        return text
    name, _, attribute = text.rpartition(":")
    if attribute.endswith(".py"):
        raise ArgumentError("policy", text, "must name a function in the file", remedy=f"write {text}:function")
    if not (name and attribute):
        raise ArgumentError("policy", text, EXPECTED)
    try:
        module = _import(name)
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}"
        raise _wrong(text, f"must name a module that can be imported ({problem})") from error
    if not hasattr(module, attribute):
        own = {
            each: value for each, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
        }
        found = [each for each, value in own.items() if callable(value) and not each.startswith("_")]
        raise _wrong(text, f"must name an attribute of {name}, which has {listed(found)}")
    policy = getattr(module, attribute)
    if isinstance(policy, type):
        try:
            policy = policy()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise _wrong(text, f"must name a class that needs no arguments ({problem})") from error
    if not callable(policy):
        raise _wrong(text, f"must name a function or a callable object, but {attribute} is {short(policy)}")
    return policy if policy in POLICIES.values() else _Reported(policy, text)


class _Reported:
    """A user's policy whose errors are reported as its own, with the line that failed."""

    def __init__(self, policy: Any, text: str) -> None:
        from ..policies import policy_name

        self._policy, self._text = policy, text
        self.__name__ = policy_name(policy)

    def __call__(self, candidates: Candidates) -> Candidates:
        return self._report(self._policy, candidates)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name not in ("start", "revise"):
            raise AttributeError(name)
        return partial(self._report, getattr(self._policy, name))

    def _report(self, function: Callable[..., Any], *given: Any) -> Any:
        try:
            return function(*given)
        except Exception as error:
            # The first frame is the one above. The policy's own code is before that of libraries it calls.
            frames = traceback.extract_tb(error.__traceback__)[1:]
            own = [frame for frame in frames if frame.filename == frames[0].filename]
            line = f" at {own[-1].filename}, line {own[-1].lineno}" if own else ""
            problem = f"policy {self._text} failed{line}: {type(error).__name__}: {error}"
            raise DataError(problem, remedy="batchbpe --debug … shows the traceback") from error


def _wrong(text: str, reason: str) -> ArgumentError:
    remedy = f"the built-in policies are {', '.join(NAMES)}"
    return ArgumentError("policy", text, reason, remedy=remedy)


def _import(name: str) -> ModuleType:
    """Import a module from the current folder or the environment, or from a file."""
    path = Path(name)
    is_file = path.suffix == ".py"
    folder = str(path.parent.resolve() if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that no file in it hides an installed module
    if not is_file:
        return importlib.import_module(name)
    if not path.is_file():
        raise FileNotFoundError(f"file not found: {name}")
    spec = spec_from_file_location(name, path)
    assert spec and spec.loader  # the suffix is .py
    module = module_from_spec(spec)
    sys.modules[name] = module  # as dataclasses expect; the name of a file hides no other module
    spec.loader.exec_module(module)
    return module
