"""The scripts in release/ say what a release needs; the Makefile's targets run them."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

RELEASE = Path(__file__).parent.parent / "release"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """release/check.py, with an empty folder as the repository."""
    monkeypatch.syspath_prepend(str(RELEASE))
    module = importlib.import_module("check")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    yield module
    for name in ("build", "check"):
        del sys.modules[name]


def git(folder: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_changelog_has_the_date(check: Any, tmp_path: Path) -> None:
    for date, is_missing in {"unreleased": True, "2026-12-01": False}.items():
        (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {check.version()} ({date})\n", encoding="utf-8")
        assert bool([*check.changelog_has_a_date("")]) == is_missing


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_a_tag_names_one_commit(check: Any, tmp_path: Path) -> None:
    tag = f"v{check.version()}"
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "--message", "one")
    assert [*check.tag_is_new(tag)] == []
    assert "but Cargo.toml has version" in next(check.tag_is_new("v9.9.9"))
    git(tmp_path, "tag", tag)
    assert [*check.tag_is_new(tag)] == [], "the workflow checks the commit that was tagged"
    git(tmp_path, "commit", "--allow-empty", "--message", "two")
    assert "exists already" in next(check.tag_is_new(tag))


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
def test_generated_files_are_up_to_date(check: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/cli.md", "README.md"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "one")
    assert [*check.tree_is_committed("")] == []
    (tmp_path / "docs/cli.md").write_text("new", encoding="utf-8")
    (generated,) = check.tree_is_committed("")
    assert generated.startswith("generated files were out of date") and "docs/cli.md" in generated
    (tmp_path / "README.md").write_text("new", encoding="utf-8")
    assert [line.partition(":")[0] for line in check.tree_is_committed("")][1:] == ["uncommitted changes"]


def test_what_was_not_built_is_missing(check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(check, "DIST", tmp_path)
    assert "make wheel" in next(check.distributions_are_valid(""))


def test_a_linter_that_is_missing_is_named(check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert [line.partition(" ")[0] for line in check.workflows_are_valid("")] == ["actionlint", "zizmor"]
