"""Generate docs/cli.md from the help of the commands: `make docs`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from batchbpe.cli import app
from batchbpe.cli.usage import argument, grouped
from batchbpe.util.documentation import DOCUMENTATION

HEAD = """# Command line

Inputs are files, folders, globs, URLs, or `-` for standard input. In a folder, files with a known suffix are read; a
file that is named explicitly and has another suffix is read as text. Results go to standard output, everything else to
standard error: a progress bar in a terminal, or a line every few seconds in a log. Files and pipes receive UTF-8; a
terminal with another encoding shows characters that it does not have as `\\u8a9e`.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | failure, explained in one line, including when `--skip-errors` skipped a file |
| 2 | invalid arguments or options |
| 130, 143 | stopped by Ctrl-C or SIGTERM |

`batchbpe --debug …` shows the traceback of an error, `batchbpe --install-completion` sets up shell completion, and
`batchbpe --version` prints the version.

`--resume` continues a `count` that was stopped, killed, or ran out of disk space. Every minute, and at the first Ctrl-C
unless it reads standard input, `count` saves its counts in a folder next to the output, `counts.parquet.parts`. Nothing
is counted twice, and the result is the same as without the interruption. `encode` into a folder continues after the
last complete shard.
"""


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, command in _commands(get_command(app)):
        text, _, example = command.help.partition("Example: ")
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        usage = " ".join(map(argument, arguments))
        parts.append(
            f"## `batchbpe {name} {usage}".rstrip() + f"`\n\n{' '.join(text.split())}\n\n    {example.strip()}\n"
        )
        rows = [f"| `{argument(param)}` | {param.help} |" for param in arguments]
        context = typer.Context(command)
        groups = grouped(command.get_params(context))
        for title, options in groups.items():
            rows += [f"| **{title}** | |"] * (len(groups) > 1)
            for param in options:
                if param.name != "help":
                    rows.append(f"| `{param.get_help_record(context)[0]}` | {param.help}{_default(param)} |")
        parts.append("\n".join(["| | |", "|---|---|", *rows, ""]))
    return re.sub(rf"{DOCUMENTATION}([\w-]+)\.html", r"[\1.md](\1.md)", "\n".join(parts))


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the commands of a group by name, and those of the groups in it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _default(param: Any) -> str:
    if param.required:
        return " Required."
    if param.secondary_opts:  # as in --skip-errors / --strict
        return f" Default: `{(param.opts if param.default else param.secondary_opts)[0]}`."
    if isinstance(param.show_default, str):
        return f" Default: {param.show_default}."
    return "" if param.default is None or param.default is False else f" Default: `{param.default}`."


if __name__ == "__main__":
    (Path(__file__).parent / "cli.md").write_text(page(), encoding="utf-8", newline="\n")
