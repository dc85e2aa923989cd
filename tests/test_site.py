"""The pages of the documentation site: which there are, where their links lead, and what the API reference contains."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "site"))
import pages  # noqa: E402

from batchbpe.util import documentation  # noqa: E402

COLLECTION = pages.Collection()
TEXTS = {name: content for name, content in COLLECTION.files.items() if isinstance(content, str)}
API = "\n".join(text for name, text in TEXTS.items() if name.startswith("api/"))
SOURCES = sorted((ROOT / "python" / "batchbpe").rglob("*.py"))
PUBLIC = ["batchbpe", "batchbpe.analysis", "batchbpe.experiments", "batchbpe.policies"]


def markdown(name: str) -> str:
    """Return the text of a page without its code."""
    if name.endswith(".ipynb"):
        cells = json.loads(TEXTS[name])["cells"]
        return "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"(?ms)^```.*?^```$", "", TEXTS[name])


def anchors(name: str) -> set[str]:
    """Return the anchors of a page on GitHub, which the site has, too, and the empty one."""
    found = re.findall(r"(?m)^#+ (.+)$", markdown(name)) if name in TEXTS else []
    return {"", *(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found)}


def resolved(path: str) -> object:
    """Import what an entry of the API reference documents."""
    first, *names = path.split(".")
    found: object = import_module(first)
    for end, name in enumerate(names, 1):
        found = getattr(found, name, None) or import_module(".".join([first, *names[:end]]))
    return found


def documented() -> dict[str, object]:
    """Return what the API reference documents, by name."""
    names = re.findall(r"(?m)^\.\. auto(?!module)\w+:: ([\w.]+)$", API)
    modules = re.findall(r"(?m)^\.\. automodule:: ([\w.]+)\n   :members:(.*)(?:\n   :exclude-members: (.*))?$", API)
    for module, members, excluded in modules:
        exported = members.strip().split(", ") if members else import_module(module).__all__
        names += [f"{module}.{name}" for name in exported if name not in excluded.split(", ")]
    return {name: resolved(name) for name in names}


def test_every_page_is_in_the_table_of_contents() -> None:
    listed = {"index", *pages.titles()}
    for folder in ("notebooks", "api"):
        entries = re.search(r"(?ms)^:maxdepth: 1\n\n(.*?)^```", TEXTS[f"{folder}/index.md"])
        assert entries
        listed |= {f"{folder}/{name}" for name in entries[1].split()}
    assert listed == set(COLLECTION.sources.values())


def test_pages_have_their_titles_in_the_table_of_contents_as_headings() -> None:
    titles = pages.titles()
    headings = {name: re.match("# (.+)", TEXTS.get(f"{name}.md", "")) for name in titles}
    assert {name: heading and heading[1] for name, heading in headings.items()} == titles


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_links_lead_to_pages_or_to_the_repository(name: str) -> None:
    for label, link in pages.LINK.findall(markdown(name)):
        target, _, anchor = link.partition("#")
        in_repository = re.fullmatch(rf"{pages.address_of('Repository')}/(?:blob|tree)/main/(.+)", target)
        if in_repository:
            assert (ROOT / in_repository[1]).exists(), link
        elif target and "://" not in target:
            there = (Path("/") / Path(name).parent / target).resolve().relative_to("/").as_posix()
            assert there in COLLECTION.files, link
            assert not label.endswith(".md"), label
            assert anchor in anchors(there), link
        elif not target:
            assert anchor in anchors(name), link


def test_the_search_scorer_names_parts_of_the_menu() -> None:
    names = re.search(r"const LAST = (\[.*?\]);", (pages.SITE / "scorer.js").read_text(encoding="utf-8"))
    captions = re.findall(r"(?m)^:caption: (.+)$", (pages.SITE / "contents.md").read_text(encoding="utf-8"))
    assert names and {*json.loads(names[1])} <= {*captions, *pages.titles().values()}
    assert "Guides" in captions


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".ipynb")])
def test_a_notebook_links_to_its_file(name: str) -> None:
    file = f"examples/{name}"
    assert (ROOT / file).exists()
    assert f"({pages.address_of('Repository')}/blob/main/{file})" in markdown(name)


def test_a_picture_follows_the_color_scheme_of_the_page() -> None:
    assert "{.only-dark width=640}" in TEXTS["index.md"] and "<picture>" not in TEXTS["index.md"]


def test_the_api_reference_contains_every_public_name() -> None:
    entries = {id(entry) for entry in documented().values()}
    exported = {f"{module}.{name}" for module in PUBLIC for name in import_module(module).__all__}
    assert {name for name in exported if id(resolved(name)) not in entries} == {"batchbpe.policies"}


def test_the_api_reference_contains_what_the_examples_import() -> None:
    entries = documented()
    ids = {id(entry) for entry in entries.values()}
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.*")]:
        imports = re.findall(r"from (batchbpe\b[\w.]*) import ([\w, ]+)", path.read_text(encoding="utf-8"))
        for full in (f"{module}.{name}" for module, names in imports for name in names.split(", ")):
            assert full in entries or id(resolved(full)) in ids, (path, full)


def test_the_package_refers_to_pages_of_the_site() -> None:
    """An installed package has no folder docs. Anchors are those of GitHub, which the site has, too."""
    assert pages.address_of("Documentation") == documentation.DOCUMENTATION
    found = 0
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w/])docs/", text), path
        address = rf"{re.escape(documentation.DOCUMENTATION)}([\w-]+)\.html(?:#([\w-]+))?"
        for name, anchor, called in re.findall(rf"{address}|\bpage\(['\"]([\w-]+)", text):
            assert anchor in anchors(f"{name or called}.md"), (path, anchor)
            found += 1
    assert found > 30
