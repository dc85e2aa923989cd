"""The notebooks run, and what they store is complete and says nothing about the machine that executed them."""

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples" / "notebooks"))
import run as script  # noqa: E402

NOTEBOOKS = script.notebooks()
SILENT = {
    "train_and_compare": {"sizes = "},
    "write_a_policy": set(),
    "extend_a_tokenizer": set(),
    "corpus_to_megatron": set(),
}
"""How the code cells without output begin, by notebook."""
TRACES = r"/home|/root|/usr|/tmp|/var|/Users|C:\\|site-packages/|0x[0-9a-f]{8}|\d{4}-\d\d-\d\d|\x1b"
"""Paths, addresses, dates and colors."""


def stored(path: Path) -> Any:
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(output: Any) -> str:
    """Return the text of an output, without pictures."""
    if output.output_type == "stream":
        return str(output.text)
    return "".join(value for kind, value in output.data.items() if kind.startswith("text/"))


def test_the_notebooks_are_found() -> None:
    assert {path.stem for path in NOTEBOOKS} == {*SILENT}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    """Its cells have the kinds of output that are stored. Their content depends on the version of Python."""
    if path.stem == "corpus_to_megatron" and not shutil.which("sh"):
        pytest.skip("the notebook needs a shell")
    notebook = script.executed(path, tmp_path)
    for new, old in zip(code_cells(notebook), code_cells(stored(path)), strict=True):
        kinds = [
            [(output.output_type, *sorted(output.get("data", {}))) for output in each.outputs] for each in (new, old)
        ]
        assert kinds[0] == kinds[1], new.source
        assert not any(output.get("name") == "stderr" for output in new.outputs), new.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_complete(path: Path) -> None:
    cells = code_cells(stored(path))
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    silent = [cell.source for cell in cells if not cell.outputs]
    assert len(silent) == len(SILENT[path.stem])
    for source in silent:
        assert any(begin in source for begin in SILENT[path.stem]), source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_notebooks_have_no_traces_of_a_machine(path: Path) -> None:
    notebook = stored(path)
    assert notebook.metadata == script.METADATA
    assert not any(cell.metadata for cell in notebook.cells)
    folders = {str(ROOT), str(Path.home()), os.path.realpath(sys.prefix), sys.base_prefix}
    traces = re.compile("|".join([TRACES, *map(re.escape, folders)]))
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert not traces.search(text_of(output)), cell.source
    assert path.read_text(encoding="utf-8") == nbformat.writes(script.without_traces(notebook)) + "\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_starts_with_its_title_and_its_links_lead_to_files(path: Path) -> None:
    notebook = stored(path)
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert notebook.cells[0].source == texts[0]
    headings = re.findall(r"(?m)^(#+) ", "\n".join(re.sub(r"(?ms)^```.*?^```", "", text) for text in texts))
    assert texts[0].startswith("# ") and headings == ["#", *["##"] * (len(headings) - 1)]
    links = re.findall(r"\]\(([^)#\s]+)", "\n".join(texts))
    assert not [link for link in links if "://" not in link and not (path.parent / link).exists()]


def test_the_notebooks_are_small() -> None:
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 500_000


def test_an_error_in_a_cell_is_raised(tmp_path: Path) -> None:
    """This includes errors of shell commands."""
    for number, source in enumerate(["raise ValueError", "%%sh -e\nbatchbpe train missing.txt -n 300 -o mine\necho"]):
        path = tmp_path / f"{number}.ipynb"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        path.write_text(nbformat.writes(notebook), encoding="utf-8")
        with pytest.raises(CellExecutionError, match=r"ValueError|CalledProcessError"):
            script.executed(path, tmp_path)


def test_traces_are_removed() -> None:
    cell = nbformat.v4.new_code_cell("1", metadata={"execution": {"iopub.execute_input": "2020-01-01"}})
    cell.outputs = [
        nbformat.v4.new_output("stream", name="stdout", text=text) for text in ("\x1b[1ma  \x1b[0m", "b \n")
    ]
    notebook = script.without_traces(
        nbformat.v4.new_notebook(cells=[cell], metadata={"language_info": {"name": "python", "version": "3"}})
    )
    assert notebook.metadata == script.METADATA and not cell.metadata
    assert [output.text for output in cell.outputs] == ["a  b\n"]
