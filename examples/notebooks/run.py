"""`make notebooks`: execute the notebooks in this folder, and write their outputs into them.

What differs between two runs or two machines is removed. tests/test_notebooks.py executes them too.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SECONDS = 300
"""Time limit of a cell."""


def notebooks() -> list[Path]:
    """Return the notebooks in alphabetical order."""
    return sorted(HERE.glob("*.ipynb"))


def executed(path: Path, folder: str | os.PathLike[str]) -> Any:
    """Run a notebook in a folder, and return it with new outputs. A cell that fails raises `CellExecutionError`."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": folder}},
    )
    client.execute(env=environment())
    return without_traces(notebook)


def environment() -> dict[str, str]:
    """Return the environment of the kernel: `batchbpe` is the command that belongs to this Python.

    Messages about packages that are not needed, and may not be installed, are silenced.
    """
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    silent = {"PYTHONWARNINGS": "ignore:IProgress not found", "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1"}
    return {**os.environ, **silent, "PATH": programs}


def without_traces(notebook: Any) -> Any:
    """Remove times and versions of programs, colors, and how printed text is divided, which depends on time."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat_minor = 5
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = [*joined(cell.outputs)]
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """Join consecutive outputs of the same stream, and remove colors and spaces at the ends of lines."""
    found: list[Any] = []
    for output in outputs:
        if found and output.output_type == "stream" and found[-1].get("name") == output.name:
            found[-1].text += output.text
        else:
            found.append(output)
    for output in found:
        if output.output_type == "stream":
            output.text = re.sub(r"\x1b\[[\d;]*m", "", output.text)
            output.text = re.sub(r"(?m) +$", "", output.text)
    return found


def main() -> None:
    """Execute all notebooks."""
    for path in notebooks():
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, folder)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
