"""Examples in README.md and docs/ run, links lead to files, guarantees name tests, and docs/cli.md is up to date."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "benchmarks").glob("*.md"))]
ABSENT = [name for name in ("litgpt", "mistral_common", "rustbpe", "sentencepiece", "torch") if not find_spec(name)]
NEED_SPARK = ("scale.md",)  # tested by test_spark.py
TEXT = Path(re.__file__).read_text(encoding="utf-8")


def examples(page):
    """Return the blocks of Python and the lines of Python in tables, except those that name tests."""
    if page.name == "reliability.md":
        return []
    found = re.finditer(r"(?ms)^```python\n(.*?)^```|^\|[^|\n]*\| `([^\n]+)` \|$", page.read_text(encoding="utf-8"))
    return [block or line.replace(r"\|", "|") for block, line in (match.groups() for match in found)]


def commands(page):
    """Return the shell commands."""
    return "".join(re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text(encoding="utf-8")))


def test_the_examples_are_found():
    assert {page.name for page in PAGES if examples(page)} >= {"README.md", "policies.md", "tutorial.md", "usage.md"}
    assert {page.name for page in PAGES if commands(page)} >= {"README.md", "tutorial.md", "usage.md"}
    assert 'tokenizer.export("folder", "transformers")' in examples(ROOT / "docs" / "interop.md")


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    found = re.findall(r'\]\(([^)#\s]+)|\b(?:src|srcset)="([^"]+)"', page.read_text(encoding="utf-8"))
    missing = [link for link in map("".join, found) if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_every_guarantee_has_its_test():
    """reliability.md names tests as `file::test`, or as `::test` if the previous one is in the same file."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    checked, path = 0, None
    for file, name in re.findall(r"`([\w/]+\.(?:py|rs))?(?:::(\w+))?`", page):
        if file:
            path = ROOT / file if file.startswith("src/") else ROOT / "tests" / file
            assert path.is_file(), file
        if name:
            assert path and re.search(rf"\b(?:def|fn) {name}\b", path.read_text(encoding="utf-8")), name
            checked += 1
    assert checked > 100
    rows = re.findall(r"(?m)^\| guarantee \| test \|\n\|.*\n((?:\|.*\n)+)", page)
    for row in "".join(rows).splitlines():
        assert re.search(r"\.(?:py|rs)(?:::\w+)?`|clippy", row), row


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in NEED_SPARK], ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    run_page(page, tmp_path, monkeypatch)


def run_page(page, tmp_path, monkeypatch):
    """Run the commands and the examples of a page in a folder with a corpus."""
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text(TEXT, encoding="utf-8")
    Path("data").mkdir()
    pq.write_table(pa.table({"text": TEXT.splitlines()}), "more.parquet")
    pq.write_table(pa.table({"text": [TEXT] * 3}), "data/a.parquet")
    if page.name == "formats.md":
        from gguf_models import tiny_model

        tiny_model(Path("model.gguf"), 1024)
    if page.name == "tutorial.md":
        (Path("data") / "a.parquet").unlink()
        Path("data").rmdir()
    if commands(page):
        if os.name != "posix" or not shutil.which("bash"):
            pytest.skip("the commands of this page need bash")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        shell = ["bash", "-euo", "pipefail", "-c", commands(page)]
        ran = subprocess.run(shell, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
    names: dict[str, object] = {}
    for example in examples(page):
        if any(re.search(rf"(?m)^(import|from) {name}\b", example) for name in ABSENT):
            continue
        exec(compile(example, page.name, "exec"), names)
    return names


def test_every_extra_is_on_the_page_about_installation():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = {name: re.findall(r'"([\w-]+)', packages) for name, packages in re.findall(r"(?m)^(\w+) = (.+)$", section)}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\| `(\w+)` \| ([^|]+) \|", page)
    assert {name: packages.split(", ") for name, packages in listed} == extras


def test_cli_page_is_up_to_date():
    page = runpy.run_path(str(ROOT / "docs" / "make_cli.py"))["page"]()
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == page, "make docs"
