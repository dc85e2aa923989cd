"""Write docs/cli.md from what the commands say of themselves: `make docs`."""

from pathlib import Path
from typing import Any

from typer.main import get_command

from batchbpe.cli import app

HEAD = """# The command line

Every argument is a path: a file, a glob, a folder, a url, or `-` for standard input. In a folder the files of known
suffixes are read; a file that is named is text if its suffix is another. Results go to standard output, everything
else to standard error: a bar in a terminal, in a pipe or a log a line every few seconds. Exit codes: 0; 1 for a
failure, in one line (`batchbpe --debug …` shows the traceback), also where `--skip-errors` passed over a file; 2 for
arguments that are not understood, or values that an option cannot have; 130 after Ctrl-C. `batchbpe
--install-completion` sets up the shell's completion, `batchbpe --version` prints the version.

A `count` that was stopped, killed, or met a full disk goes on with `--resume`: what it has counted is saved in a folder
beside the result, `counts.parquet.parts`, every minute and, unless it reads standard input, at the first Ctrl-C. What
was counted is not counted again, and the result is the same as without the interruption. `encode` into a folder goes on
after the last whole shard.
"""


def page() -> str:
    """Give the page."""
    parts = [HEAD]
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        text, _, example = command.help.partition("Example: ")
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        usage = " ".join(_argument(param) for param in arguments)
        parts.append(f"## `batchbpe {name} {usage}`\n\n{' '.join(text.split())}\n\n    {example.strip()}\n")
        rows = [f"| `{_argument(param)}` | {param.help} |" for param in arguments]
        options = [param for param in command.params if param.param_type_name == "option" and param.name != "help"]
        rows += [f"| {_names(param)} | {param.help}{_default(param)} |" for param in options]
        parts.append("\n".join(["| | |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _argument(param: Any) -> str:
    name = (param.metavar or param.name).upper().removesuffix("...") + ("..." if param.nargs == -1 else "")
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))


def _default(param: Any) -> str:
    if param.required:
        return " Required."
    default = getattr(param.default, "value", param.default)
    return "" if default in (None, False, "") or callable(default) else f" Default: `{default}`."


if __name__ == "__main__":
    (Path(__file__).parent / "cli.md").write_text(page(), encoding="utf-8")
