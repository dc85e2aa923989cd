"""What is published about the project: one version, one set of addresses."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import batchbpe

if sys.version_info < (3, 11):
    import tomli as tomllib  # a dependency of pytest
else:
    import tomllib

ROOT = Path(__file__).parent.parent


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


PROJECT = toml("pyproject.toml")["project"]
VERSION = toml("Cargo.toml")["package"]["version"]
"""The one that counts: maturin takes it from there."""
REPOSITORY, SITE = PROJECT["urls"]["Repository"], PROJECT["urls"]["Documentation"]


def versions(name: str) -> list[str]:
    """Return the versions of the project that a file names."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".lock"):
        return [each["version"] for each in tomllib.loads(text)["package"] if each["name"] == "batchbpe"]
    pattern = {"CITATION.cff": r"(?m)^version: (.+)$", "CHANGELOG.md": r"(?m)\A# Changelog\n\n## (\S+) \(.+\)$"}[name]
    return re.findall(pattern, text)


def test_python_reports_the_version() -> None:
    assert batchbpe.__version__ == VERSION
    assert PROJECT["dynamic"] == ["version"] and "version" not in PROJECT


@pytest.mark.parametrize(
    "name",
    ["CITATION.cff", "CHANGELOG.md", "Cargo.lock", "fuzz/Cargo.lock", "benchmarks/instructions/Cargo.lock"],
)
def test_files_name_the_version(name: str) -> None:
    assert versions(name) == [VERSION], f"{name} differs from Cargo.toml"


def files() -> list[Path]:
    """Return the files in the repository, or skip the test where there is no repository."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git repository")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_addresses_of_the_project_agree() -> None:
    """They are declared in pyproject.toml, and every other one is below those."""
    assert re.fullmatch(r"https://github\.com/[\w-]+/batchbpe", REPOSITORY)
    assert all(url.startswith(REPOSITORY) for name, url in PROJECT["urls"].items() if name != "Documentation")
    found = {
        (path.relative_to(ROOT).as_posix(), url)
        for path in files()
        if path.suffix not in {".ipynb", ".png"} and path.is_file()
        for url in re.findall(
            r"https?://[\w./-]*\bbatchbpe\b[\w./-]*", path.read_text(encoding="utf-8", errors="ignore")
        )
    }
    assert {file for file, _ in found} >= {"pyproject.toml", "CITATION.cff"}
    allowed = re.compile(rf"({re.escape(REPOSITORY)}|{re.escape(SITE.rstrip('/'))})(\.git$|\.$|/|$)")
    others = re.compile(r"https://(pypi\.org/p|img\.shields\.io/)")
    assert not {(file, url) for file, url in found if not (allowed.match(url) or others.match(url))}
