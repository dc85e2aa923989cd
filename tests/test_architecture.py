"""The import rules of docs/architecture.md: data flows down, and heavy packages are imported where they are used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import batchbpe

ROOT = Path(batchbpe.__file__).parent

LAYERS = [
    "choices",
    "errors",
    "arguments",
    "options",
    "util",
    "storage",
    "policies",
    "reference",
    "data",
    "patterns",
    "boundaries",
    "model",
    "formats",
    "counts",
    "training",
    "phrases",
    "tokenizer",
    "transformers",
    "analysis",
    "verification",
    "jobs",
    "experiments",
    "spark",
    "viewer",
    "cli",
    "__main__",
]
"""The modules and packages of batchbpe. Each imports only those before it."""
EXCEPTIONS = {
    ("training.train", "phrases.counting"),
    ("training.train", "phrases.options"),
    ("training.train", "phrases.training"),
    # Imports inside functions:
    ("counts", "analysis.inspection"),
    ("model.surgery", "formats.carried"),
    ("model.surgery", "formats.roles"),
    ("model.tree", "analysis.tree_html"),
    ("policies.candidates", "analysis.display"),
    ("policies.candidates", "analysis.tables"),
    ("tokenizer", "analysis.comparison"),
    ("tokenizer", "analysis.display"),
    ("tokenizer", "analysis.id_map"),
    ("tokenizer", "analysis.inspection"),
}

HEAVY = {"IPython", "datasets", "matplotlib", "pandas", "regex", "rich", "tiktoken", "tokenizers", "transformers"}
HEAVY |= {"gigatoken", "highspy", "llama_cpp", "mistral_common"}
HEAVY |= {"jinja2", "py4j", "pyspark", "starlette", "torch", "uvicorn"}
HEAVY_EXCEPTIONS = {
    ("reference", "regex"),
    ("reference.phrases", "regex"),
    ("transformers", "tokenizers"),
    ("transformers", "transformers"),
    ("transformers.call", "tokenizers"),
    ("transformers.call", "transformers"),
}
"""Modules that are useless without the package."""


class Import(NamedTuple):
    importer: str
    """The module, relative to the package: "data.files"."""
    imported: str
    """A module of batchbpe, written like `importer`, or the full name of another module."""
    is_ours: bool
    is_lazy: bool
    """Whether the import is inside a function."""


def package(module: str) -> str:
    return module.partition(".")[0]


def imports_of(path: Path) -> Iterator[Import]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    importer = ".".join(parts).removesuffix(".__init__")
    todo: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_bytes()), False)]
    while todo:
        node, is_lazy = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            todo += [(child, is_lazy) for child in node.orelse]
            continue  # imports for annotations
        is_lazy = is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        todo += [(child, is_lazy) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.Import):
            yield from (Import(importer, alias.name, False, is_lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module, is_ours = node.module or "", bool(node.level)
            if is_ours:
                module = ".".join([*parts[: len(parts) - node.level], *filter(None, [module])])
            elif package(module) == "batchbpe":
                module, is_ours = module.removeprefix("batchbpe").removeprefix("."), True
            for name in (alias.name for alias in node.names):
                is_module = not module or (ROOT / module.replace(".", "/") / f"{name}.py").exists()
                is_module = is_module or (ROOT / module.replace(".", "/") / name).is_dir()
                imported = f"{module}.{name}".removeprefix(".") if is_ours and is_module else module
                yield Import(importer, imported, is_ours, is_lazy)


IMPORTS = {found for path in ROOT.rglob("*.py") for found in imports_of(path)}


def test_imports_are_found() -> None:
    """Otherwise the other tests would check nothing."""
    assert {
        Import("training.merges", "policies", True, False),
        Import("training.train", "data.corpus", True, False),
        Import("counts.counter", "formats.counts_parquet", True, True),
        Import("jobs.count", "storage.locks", True, False),
        Import("data.source", "data.options", True, False),
        Import("util.progress", "rich.console", False, True),
        Import("__main__", "cli", True, True),
    } <= IMPORTS


def test_every_module_has_a_layer() -> None:
    modules = {path.relative_to(ROOT).with_suffix("").parts[0] for path in ROOT.rglob("*.py")}
    assert modules == {*LAYERS, "__init__"}


def test_modules_import_only_what_is_below_them() -> None:
    layer = {name: number for number, name in enumerate(["_core", "__version__", *LAYERS])}
    upward = {
        (each.importer, each.imported)
        for each in IMPORTS
        if each.is_ours and layer.get(package(each.imported), len(layer)) > layer[package(each.importer)]
    }
    assert upward == EXCEPTIONS


def test_only_main_imports_the_command_line() -> None:
    importers = {each.importer for each in IMPORTS if each.is_ours and package(each.imported) == "cli"}
    assert {name for name in importers if package(name) != "cli"} == {"__main__"}


def test_spark_uses_public_names_only() -> None:
    names = {
        alias.name
        for path in (ROOT / "spark").glob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    }
    assert {"ChunkCounter", "TextCounter"} <= names
    assert not [name for name in names if name.startswith("_")]


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    eager = {(each.importer, package(each.imported)) for each in IMPORTS if not each.is_ours and not each.is_lazy}
    assert {(importer, name) for importer, name in eager if name in HEAVY} == HEAVY_EXCEPTIONS


def test_only_the_command_line_prints() -> None:
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        if path.parent.name != "cli"
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert calls == []


def test_no_property_is_computed_under_a_lock() -> None:
    """`functools.cached_property` holds a lock before Python 3.12, so a forked process would wait forever."""
    assert not [path for path in ROOT.rglob("*.py") if b"cached_property" in path.read_bytes() and path.stem != "lazy"]


def test_the_page_lists_every_module() -> None:
    """docs/architecture.md has a line for each folder, followed by its files."""
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed: set[str] = set()
    folders: list[str] = []
    for line in page.split("```")[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in re.findall(r"[\w./]+(?:\.py|\.rs|/)", re.split(r"\s{2,}(?=[^\s])", line.strip() + "  ")[0]):
            if name.endswith("/"):
                folders[depth:] = [name]
            else:
                listed.add("".join(folders[:depth]) + name)
    roots = [(ROOT.parents[1] / "src", "*.rs"), (ROOT, "*.py")]
    found = {str(path.relative_to(ROOT.parents[1])) for root, kind in roots for path in root.rglob(kind)}
    is_listed = {name for name in found if name.endswith(("tests.rs", "/__init__.py"))}
    assert found - listed - is_listed == set()
    assert listed - found == set()
