"""What all commands have in common: errors in a line, exit codes, Ctrl-C, and how results are printed."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from .. import __version__
from ..progress import Stopped

if TYPE_CHECKING:
    from ..data.readers import Source
    from ..tokenizer import Tokenizer

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # its boxes leave little room for words
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train byte-pair-encoding tokenizers in safe batches, and use them.",
)
F = TypeVar("F", bound=Callable[..., None])
debug = False
ended_by = signal.SIGINT
"""The signal that asked a command to end: the exit code tells it."""
LONGEST_LINE = 1000
"""Characters of an error."""


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"batchbpe {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug_: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    global debug
    debug = debug_


def command(function: F) -> F:
    """Make a function fit for a command: its errors are a line, and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _terminable(), warnings.catch_warnings():
                warnings.showwarning = _warn  # type: ignore[assignment]
                function(*args, **kwargs)
            sys.stdout.flush()
        except (KeyboardInterrupt, Stopped) as stopped:
            fail(str(stopped) or ("terminated" if ended_by == signal.SIGTERM else "interrupted"), 128 + ended_by)
        except BrokenPipeError:  # as in `batchbpe … | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (ValueError, TypeError, OSError, KeyError, ImportError, MemoryError) as error:
            if debug:
                raise
            if isinstance(error, OSError) and error.errno == errno.ENOSPC and not error.filename:
                error = OSError(f"cannot write standard output: {error.strerror}")
            if isinstance(error, MemoryError):
                error = MemoryError(_out_of_memory(error))
            message = error.args[0] if isinstance(error, KeyError) and error.args else error  # else within quotes
            line = in_a_line(str(message or type(error).__name__))
            fail(f"error: {line}", 2 if line.startswith("--") else 1)

    return run  # type: ignore[return-value]


def _out_of_memory(error: MemoryError) -> str:
    detail = f" ({error})" if str(error) else ""
    return f"out of memory{detail}; use --limit-bytes or --threads 1, for count also --max-memory"


@contextmanager
def _terminable() -> Iterator[None]:
    """Have SIGTERM end a command as Ctrl-C does, so that its temporary files are removed; ignored, it stays ignored."""
    global ended_by
    ended_by = signal.SIGINT
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(*_: object) -> None:
    global ended_by
    ended_by = signal.SIGTERM
    raise KeyboardInterrupt


_IN_A_SHELL = {
    'errors="replace"': "--replace-errors",
    "special_tokens=": "--special-token ",
    "share=": "--heldout-share ",
    "choose by text_column": "choose by --text-column, or for jsonl by --jsonl-field",
    "allow_inexact=True": "--allow-inexact",
    'format="batchbpe" or "transformers"': "--to batchbpe or --to transformers",
    'format="transformers"': "--to transformers",
    "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')": "--replace-errors",
    "load it by Tokenizer.from_tiktoken(path, pattern)": "give it by --pattern",
}
"""What the package advises, as options."""
_PARAMETER = re.compile(
    r"\b(vocab_size|stop_list_size|freq_cutoff|cap_divisor|max_batch_size|sample|limit_bytes|seed"
    r"|max_chunk_bytes|max_document_bytes|shard_tokens|end_of_text|threads|pattern|policy)="
)
"""What the package names in its errors, and is an option here."""


def in_a_line(message: str) -> str:
    """Give an error of the package as one line for a shell."""
    for advice, option in _IN_A_SHELL.items():
        message = message.replace(advice, option)
    if "--grid" not in message:  # where these are names of what varies
        message = _PARAMETER.sub(lambda found: f"--{found[1].replace('_', '-')} ", message)
    line = " ".join(message.split())
    if len(line) > LONGEST_LINE:  # what is wrong stands at the beginning, and the remedy at the end
        line = f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 + 3 :]}"
    return line + "\n"


def _warn(message: object, *_: object) -> None:
    sys.stderr.write(in_a_line(f"warning: {message}"))


def fail(message: str, code: int) -> NoReturn:
    """Say in one line what is wrong, and leave."""
    sys.stderr.write(in_a_line(message))
    raise typer.Exit(code) from None


def note(message: str, quiet: bool) -> None:
    """Say something that is not the result."""
    if not quiet:
        sys.stderr.write(message + "\n")


def many(number: int, word: str) -> str:
    """Give a number of things.

    >>> many(1, "file"), many(2000, "chunk")
    ('1 file', '2,000 chunks')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """Print a result for machines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_rows(title: str, rows: dict[str, Any]) -> None:
    """Print names and values for people."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        pairs = value.items() if isinstance(value, dict) and value else [("", None if value == {} else value)]
        table.add_row(name, "\n".join(f"{key}  {_text(item)}".strip() for key, item in pairs))
    _print(table)


def print_table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table for people: names to the left, numbers to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        numbers = bool(rows) and isinstance(rows[0][place], int | float)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    _print(table)


def _print(table: Any) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    console = console if console.is_terminal else Console(markup=False, highlight=False, width=200)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


def _text(value: Any) -> str:
    if isinstance(value, float):
        value = round(value, 4)
    return "–" if value is None else f"{value:,}" if type(value) in (int, float) else str(value)


@contextmanager
def stoppable(*, waits: bool) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C or SIGTERM ask a job to stop, which then saves what it has, and the second end it at once.

    A job that waits for standard input may not hear of it: the first one ends it.
    """
    asked: list[int] = []

    def handler(number: int, _: Any) -> None:
        global ended_by
        ended_by = signal.Signals(number)
        if asked or waits:
            raise KeyboardInterrupt
        asked.append(1)
        again = "Ctrl-C" if number == signal.SIGINT else ended_by.name
        sys.stderr.write(f"\nstopping; {again} again to lose what is not saved yet\n")

    numbers = [signal.SIGINT] + [signal.SIGTERM] * (signal.getsignal(signal.SIGTERM) is _terminate)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield lambda: bool(asked)
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def sources_of(
    inputs: list[str],
    text_column: str = "text",
    jsonl_field: str | None = None,
    errors: str = "strict",
    max_document_bytes: int | None = None,
) -> list[Source]:
    """Find the files."""
    from ..data.corpus import paths
    from ..data.readers import standard_input
    from ..data.tables import MAX_DOCUMENT_BYTES, ReadOptions

    options = ReadOptions(text_column, errors, max_document_bytes or MAX_DOCUMENT_BYTES)
    if inputs.count("-") > 1:
        raise ValueError("- is given twice: standard input can be read once")
    sources: list[Source] = []
    for place in inputs:
        if place == "-":
            sources.append(standard_input(sys.stdin.buffer, jsonl_field, options))
        else:
            sources += paths(place, options, jsonl_field=jsonl_field)
    names = [source.name for source in sources]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        sys.stderr.write(f"{twice[0]} is given more than once, and is read as often\n")
    return sources


def load(path: Path, pattern: str | None = None, *, needed: bool = True) -> Tokenizer:
    """Load a tokenizer; a pattern that it does not need is an error, unless others may need it."""
    from ..tokenizer import Tokenizer

    if pattern and path.suffix == ".tiktoken":
        return Tokenizer.from_tiktoken(path, pattern)
    try:
        loaded = Tokenizer.from_file(path)
    except ValueError as error:
        if pattern and "--pattern" in in_a_line(str(error)):
            return Tokenizer.from_tiktoken(path, pattern)
        raise
    if pattern and needed:
        raise ValueError(f"--pattern {pattern}: it is for files of ranks, and {path} has a pattern of its own")
    return loaded


def shown(failed: Mapping[str, str]) -> dict[str, str]:
    """Give the files that could not be read, and why, in the words of a shell."""
    return {name: in_a_line(reason).strip() for name, reason in failed.items()}


def fail_if_any(failed: Mapping[str, str]) -> None:
    """Name the files that could not be read, a line each."""
    if failed:
        sys.stderr.writelines(map(in_a_line, failed.values()))
        fail(f"error: {many(len(failed), 'file')} could not be read to the end; what comes before that may be there", 1)
