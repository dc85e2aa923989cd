"""Shared by all commands: one-line errors, exit codes, Ctrl-C, and printing of results."""

from __future__ import annotations

import errno
import functools
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from .. import __version__
from ..errors import Setting, Stopped, UserError, os_error, plural, short
from .usage import UsageError, problem

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # its boxes leave little room for text
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train and use byte-pair-encoding tokenizers.",
)
F = TypeVar("F", bound=Callable[..., None])
_debug: ContextVar[bool] = ContextVar("debug", default=False)
MAX_LINE = 1000
"""Maximum length of an error, in characters."""


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


def main() -> int:
    """Run the command line and return the exit code."""
    logging.basicConfig(format="warning: %(message)s")
    try:
        return app(prog_name="batchbpe", standalone_mode=False) or 0
    except Exception as error:  # the base class of usage errors is private to typer
        if not hasattr(error, "format_message"):
            raise
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        sys.stderr.write((error.format_message() if is_help else one_line(f"error: {problem(error)}")) + "\n")
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
            with _terminable(), warnings.catch_warnings():
                warnings.showwarning = _warn  # type: ignore[assignment]
                function(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt as interrupt:
            fail("terminated" if isinstance(interrupt, _Terminated) else "interrupted", 128 + exit_signal(interrupt))
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


def exit_signal(interrupt: KeyboardInterrupt) -> int:
    """Return the signal that an interrupt stands for, which determines the exit code."""
    return signal.SIGTERM if isinstance(interrupt, _Terminated) else signal.SIGINT


_OPTIONS = {
    "errors": "--replace-errors",
    "allow_inexact": "--allow-inexact",
    "resume": "--resume",
    "special_tokens": "--special-token",
    "share": "--heldout-share",
    "format": "--to",
    "data": "the data",
    "path": "the file",
    "files": "the inputs",
}
"""Options that are not spelled like the parameter, and flags that take no value."""
_FLAGS = {"errors", "allow_inexact", "resume"}


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


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM stop a command like Ctrl-C, so that temporary files are removed. If it is ignored, it stays so."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(*_: object) -> None:
    raise _Terminated


def one_line(message: str) -> str:
    """Put a message on one line and shorten it: the problem is at the beginning, the remedy at the end.

    >>> one_line("two" + chr(10) + "lines")
    'two lines'
    """
    line = " ".join(message.split())
    if len(line) > MAX_LINE:
        line = f"{line[: MAX_LINE // 2]} … {line[-MAX_LINE // 2 + 3 :]}"
    return line


def _warn(message: object, *_: object) -> None:
    sys.stderr.write(one_line(f"warning: {message}") + "\n")


def fail(message: str, code: int) -> NoReturn:
    """Print a message on one line and exit."""
    sys.stderr.write(one_line(message) + "\n")
    raise typer.Exit(code) from None


def note(message: str, quiet: bool) -> None:
    """Print something that is not the result, unless `quiet`."""
    if not quiet:
        sys.stderr.write(message + "\n")


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_rows(title: str, rows: dict[str, Any]) -> None:
    """Print names and values."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        pairs = value.items() if isinstance(value, dict) and value else [("", None if value == {} else value)]
        table.add_row(name, "\n".join(f"{key}  {_format(item)}".strip() for key, item in pairs))
    _print(table)


def print_table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table, with numbers aligned to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and isinstance(rows[0][index], int | float)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_format, row))
    _print(table)


def _print(table: Any) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    console = console if console.is_terminal else Console(markup=False, highlight=False, width=200)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


def _format(value: Any) -> str:
    if isinstance(value, float):
        value = round(value, 4)
    return "–" if value is None else f"{value:,}" if type(value) in (int, float) else str(value)


@contextmanager
def stoppable(*, waits: bool) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C or SIGTERM ask a job to stop and save, and the second one end it at once.

    A job that waits for standard input does not poll, so the first signal ends it.
    """
    received: list[int] = []

    def handler(number: int, _: Any) -> None:
        received.append(number)
        if len(received) > 1 or waits:
            raise KeyboardInterrupt if number == signal.SIGINT else _Terminated
        again = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        sys.stderr.write(f"\nstopping; {again} again to stop without saving\n")

    numbers = [signal.SIGINT] + [signal.SIGTERM] * (signal.getsignal(signal.SIGTERM) is _terminate)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield lambda: bool(received)
    except Stopped as stopped:
        stopped.signal = received[0]
        raise
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def load(path: Path, pattern: str | None = None, *, needed: bool = True) -> Tokenizer:
    """Load a tokenizer. A pattern is an error if the file has its own, unless another file needs it."""
    from ..formats import is_rank_file
    from ..tokenizer import Tokenizer

    if pattern and path.is_file() and is_rank_file(path):
        return Tokenizer.from_tiktoken(path, pattern)
    loaded = Tokenizer.from_file(path)
    if pattern and needed:
        raise UsageError(f"--pattern is only for .tiktoken files; {path} has a pattern of its own")
    return loaded


def on_one_line(failed: Mapping[str, str]) -> dict[str, str]:
    """Return the files that could not be read, each with a reason on one line."""
    return {name: one_line(reason) for name, reason in failed.items()}


def fail_if_any(failed: Mapping[str, str]) -> None:
    """Print the files that could not be read, one per line, and exit if there are any."""
    if failed:
        sys.stderr.writelines(f"{one_line(reason)}\n" for reason in failed.values())
        files = plural(len(failed), "file")
        fail(f"error: {files} could not be read completely; the output may include data read before the error", 1)
