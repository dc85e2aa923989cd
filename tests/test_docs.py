"""Every Python example in README.md and docs/ runs."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = Path(re.__file__).read_text(encoding="utf-8")


def examples(page):
    """The blocks of Python, and the lines of it in tables."""
    found = re.finditer(r"(?ms)^```python\n(.*?)^```|^\|[^|\n]*\| `([^\n]+)` \|$", page.read_text(encoding="utf-8"))
    return [block or line.replace(r"\|", "|") for block, line in (match.groups() for match in found)]


def test_the_examples_are_found():
    assert {page.name for page in PAGES if examples(page)} >= {"README.md", "policies.md"}
    assert 'tokenizer.export("folder", "transformers")' in examples(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").write_text(TEXT, encoding="utf-8")
    pq.write_table(pa.table({"text": TEXT.splitlines()}), "more.parquet")
    names: dict[str, object] = {}
    for example in examples(page):
        exec(compile(example, page.name, "exec"), names)
