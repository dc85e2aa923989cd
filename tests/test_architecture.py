"""The import rules of docs/architecture.md: data flows down, and heavy packages are imported where they are used."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import batchbpe

ROOT = Path(batchbpe.__file__).parent

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "arguments": {"errors"},
    "reference": set(),
    "reference_phrases": {"reference"},
    "arrow": set(),
    "cancellation": {"_core"},
    "lazy": set(),
    "memory": set(),
    "merging": {"_core", "policies"},
    "policies": {"arguments", "errors"},
    "storage": {"errors"},
    "special": {"errors"},
    "surrogates": {"errors"},
    "merge_tree": {"errors"},
    "progress": {"memory"},
    "patterns": {"_core", "arguments", "errors", "surrogates"},
    "merges": {"_core", "lazy"},
    "model": {"_core", "arguments", "errors", "lazy", "merge_tree", "merges"},
    "encoder": {"_core", "model"},
    "compat": {"arguments", "errors", "formats", "model"},
    "data": {"_core", "arrow", "errors", "storage", "surrogates"},
    "boundaries": {"_core"},
    "formats": {"_core", "arguments", "arrow", "boundaries", "errors", "merges", "model", "patterns", "storage"},
}
"""The modules and packages of batchbpe that each of these may import; no others are allowed."""
USERS = {"jobs", "analysis", "experiments", "spark", "viewer", "cli"}
FORBIDDEN = {
    "counting": USERS,
    "counts": USERS,
    "run_counting": USERS | {"counts", "runs"},
    "runs": USERS | {"training", "tokenizer"},
    "phrases": USERS | {"training", "tokenizer"},
    "training_options": USERS | {"counts", "runs", "training", "tokenizer"},
    "merge_training": USERS | {"training", "tokenizer"},
    "phrase_training": USERS | {"training", "tokenizer"},
    "training": USERS,
    "codec": USERS | {"counting", "counts", "data", "training"},
    "tokenizer": USERS,
    "batch_tokenizer": USERS,
    "jobs": {"experiments", "spark", "viewer", "cli"},
    "analysis": {"experiments", "spark", "viewer", "cli"},
    "experiments": {"spark", "viewer", "cli"},
    "spark": {"analysis", "experiments", "viewer", "cli"},
    "viewer": {"_core", "codec", "encoder", "experiments", "formats", "jobs", "merging", "spark", "training", "cli"},
}
"""The packages of batchbpe that each of these may not import."""
LAZY_EXCEPTIONS = {
    ("tokenizer", "analysis.comparison"),
    ("tokenizer", "analysis.view"),
    ("formats.tokenization_batchbpe", "Tokenizer"),  # this file is copied into folders for transformers
}
"""Exceptions: imports inside functions that are allowed."""

HEAVY = {"IPython", "datasets", "matplotlib", "pandas", "regex", "rich", "tiktoken", "tokenizers", "transformers"}
HEAVY |= {"py4j", "pyspark", "starlette", "uvicorn"}
HEAVY_EXCEPTIONS = {
    ("reference", "regex"),
    ("reference_phrases", "regex"),
    ("formats.tokenization_batchbpe", "transformers"),
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
    importer = ".".join(parts)
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
                imported = f"{module}.{name}".removeprefix(".") if is_ours and is_module else module
                yield Import(importer, imported, is_ours, is_lazy)


IMPORTS = {found for path in ROOT.rglob("*.py") for found in imports_of(path)}


def is_allowed(each: Import) -> bool:
    importer, imported = package(each.importer), package(each.imported)
    if importer == imported or (each.is_lazy and (each.importer, each.imported) in LAZY_EXCEPTIONS):
        return True
    return imported in ALLOWED[importer] if importer in ALLOWED else imported not in FORBIDDEN.get(importer, ())


def test_imports_are_found() -> None:
    """Otherwise the other tests would check nothing."""
    assert {
        Import("training", "policies", True, False),
        Import("training", "data.corpus", True, False),
        Import("counting", "formats.counts", True, True),
        Import("jobs.count", "storage.locks", True, False),
        Import("data.source", "data.limits", True, False),
        Import("progress", "rich.console", False, True),
        Import("__main__", "cli", True, True),
    } <= IMPORTS
    assert {(each.importer, each.imported) for each in IMPORTS} >= LAZY_EXCEPTIONS


def test_every_module_has_a_rule() -> None:
    modules = {path.relative_to(ROOT).with_suffix("").parts[0] for path in ROOT.rglob("*.py")}
    assert modules == {*ALLOWED, *FORBIDDEN, "cli", "__init__", "__main__"}


def test_modules_import_only_what_is_below_them() -> None:
    ours = [each for each in IMPORTS if each.is_ours]
    assert sorted(f"{each.importer} imports {each.imported}" for each in ours if not is_allowed(each)) == []


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
    assert {"ChunkCounter", "RunCounter"} <= names
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
    assert not [path for path in ROOT.rglob("*.py") if "cached_property" in path.read_text() and path.stem != "lazy"]
