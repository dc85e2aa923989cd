"""The program, and what its commands have in common: one-line errors, exit codes, and loading inputs."""

from __future__ import annotations

import errno
import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from .. import __version__
from ..errors import Setting, Stopped, UserError, os_error, plural, short
from .output import one_line
from .signals import Terminated, exit_signal, terminable
from .usage import Group, TyperUsageError, UsageError, problem

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,  # its boxes leave little room for text
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train and use byte-pair-encoding tokenizers.",
)
F = TypeVar("F", bound=Callable[..., None])
_debug: ContextVar[bool] = ContextVar("debug", default=False)


def main() -> int:
    """Run the command line and return the exit code."""
    logging.basicConfig(format="warning: %(message)s")
    try:
        return app(prog_name="batchbpe", standalone_mode=False) or 0
    except TyperUsageError as error:
        sys.stderr.write(one_line(f"error: {problem(error)}") + "\n")
        return 2


def _version(is_wanted: bool) -> None:
    if is_wanted:
        sys.stdout.write(f"batchbpe {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    _debug.set(debug)


def command(function: F) -> F:
    """Wrap a command so that an error prints one line and sets the exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with terminable(), warnings.catch_warnings():
                warnings.showwarning = _warn  # type: ignore[assignment]
                function(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt as interrupt:
            fail("terminated" if isinstance(interrupt, Terminated) else "interrupted", 128 + exit_signal(interrupt))
        except Stopped as stopped:
            fail(stopped.render(as_option), 128 + stopped.signal)
        except BrokenPipeError:  # as in `batchbpe … | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (UserError, ValueError, TypeError, OSError, KeyError, ImportError, MemoryError) as error:
            if _debug.get():
                raise
            is_usage = isinstance(error, UsageError) or (isinstance(error, UserError) and bool(error.parameter))
            fail(f"error: {describe(error)}", 2 if is_usage else 1)

    return run  # type: ignore[return-value]


_OPTIONS = {
    "errors": "--replace-errors",
    "allow_inexact": "--allow-inexact",
    "resume": "--resume",
    "special_tokens": "--special-token",
    "add_tokens": "--add",
    "share": "--heldout-share",
    "format": "--to",
    "token_format": "--format",
    "paths": "PATHS",
    "data": "the data",
    "path": "the file",
    "files": "the inputs",
}
"""Options that are not spelled like the parameter, and flags that take no value."""
_FLAGS = {"errors", "allow_inexact", "resume", "append_eos", "prepend_bos", "split_documents"}


def as_option(setting: Setting) -> str:
    """Spell a parameter as the command line does.

    >>> as_option(Setting("vocab_size")), as_option(Setting("errors", "replace")), as_option(Setting("sample", 0.5))
    ('--vocab-size', '--replace-errors', '--sample 0.5')
    """
    name = _OPTIONS.get(setting.parameter, f"--{setting.parameter.replace('_', '-')}")
    return name if setting.value is None or setting.parameter in _FLAGS else f"{name} {setting.value}"


def as_typed(value: object) -> str:
    """Show a value as it was typed: without Python's brackets and doubled backslashes.

    >>> print(as_typed(["a", r"\\p{L}"]))
    'a', '\\p{L}'
    """
    if isinstance(value, list) and value:
        return ", ".join(map(as_typed, value))
    text = short(value)
    return text.replace("\\\\", "\\") if isinstance(value, str) else text


def describe(error: BaseException) -> str:
    """Describe an error in terms of the command line.

    >>> from batchbpe.errors import ArgumentError
    >>> describe(ArgumentError("vocab_size", 3, "must be at least 256"))
    '--vocab-size must be at least 256, got 3'
    """
    if isinstance(error, UserError):
        # Only records of jsonl are located by line.
        replaced = {"text_column": Setting("jsonl_field")} if ", line " in error.where else {}
        return error.render(lambda setting: as_option(replaced.get(setting.parameter, setting)), as_typed)
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        return f"out of memory{detail}; use --limit-bytes or --threads 1, or --max-memory for count"
    if isinstance(error, OSError) and error.filename:
        return str(os_error(error, f"cannot access {error.filename}"))
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return str(os_error(error, "cannot write standard output"))
    if isinstance(error, KeyError) and error.args:  # str(KeyError) would quote the message
        return str(error.args[0])
    return str(error) or type(error).__name__


def _warn(message: object, *_: object) -> None:
    sys.stderr.write(one_line(f"warning: {message}") + "\n")


def fail(message: str, code: int) -> NoReturn:
    """Print a message on one line and exit."""
    sys.stderr.write(one_line(message) + "\n")
    raise typer.Exit(code) from None


def load(path: Path, pattern: str | None = None, *, needed: bool = True) -> Tokenizer:
    """Load a tokenizer. A pattern is an error if the file has its own, unless another file needs it."""
    from ..formats import is_rank_file
    from ..tokenizer import Tokenizer

    if pattern and path.is_file() and is_rank_file(path):
        return Tokenizer.from_tiktoken(path, pattern)
    loaded = Tokenizer.from_file(path)
    if pattern and needed:
        raise UsageError(f"--pattern is only for .tiktoken files; {path} already has a pattern")
    return loaded


def contains_counts(path: Path) -> bool:
    """Return whether a file or folder contains chunk counts, judging by its name and, for a folder, its files."""
    from ..data.files import split_suffix
    from ..data.readers.tables import is_counts_folder

    return split_suffix(path)[0] in (".csv", ".parquet") or is_counts_folder(path)


def on_one_line(failed: Mapping[str, str]) -> dict[str, str]:
    """Return the files that could not be read, each with a reason on one line."""
    return {name: one_line(reason) for name, reason in failed.items()}


def fail_if_any(failed: Mapping[str, str]) -> None:
    """Print the files that could not be read, one per line, and exit if there are any."""
    if failed:
        sys.stderr.writelines(f"{one_line(reason)}\n" for reason in failed.values())
        files = plural(len(failed), "file")
        fail(f"error: {files} could not be read completely; the output may include data read before the error", 1)
