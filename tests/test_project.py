"""What is published: one version, one set of addresses, and workflows that run what the Makefile has."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

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
    raw = REPOSITORY.replace("//github.com", "//raw.githubusercontent.com")
    bases = "|".join(re.escape(base.rstrip("/")) for base in (REPOSITORY, SITE, raw))
    allowed = re.compile(rf"({bases})(\.git$|\.$|/|$)|https://img\.shields\.io/")
    assert not {(file, url) for file, url in found if not allowed.match(url)}


def test_links_of_the_published_readme_are_absolute() -> None:
    """Package registries show it without the files it refers to."""
    build = runpy.run_path(str(ROOT / "release" / "build.py"))
    assert (build["REPOSITORY"], build["version"]()) == (REPOSITORY, VERSION)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.compile(r"""\]\(([^)\s]+)|\b(?:src|srcset)="([^"]+)""")
    before, after = (links.findall(text) for text in (readme, build["absolute_links"](readme, "v1")))
    assert len(before) > 30
    for old, new in zip(map("".join, before), map("".join, after), strict=True):
        assert new in {old, f"{REPOSITORY}/blob/v1/{old}", f"{build['RAW']}/v1/{old}"} and "://" in new


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"(?m)^([a-z-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert {*re.findall(r"\bmake ([a-z-]+)", text)} <= {*targets}
    assert all((ROOT / script).is_file() for script in re.findall(r"\bpython (\S+\.py)", text))
    groups = toml("pyproject.toml")["dependency-groups"]
    assert {*re.findall(r"--group (\S+)", text)} <= {*groups}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_few_permissions_and_fixed_actions(path: Path) -> None:
    """An action is named by its commit, since tags can be moved."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] in ({}, {"contents": "read"})
    may_write = {
        name: {permission for permission, kind in job.get("permissions", {}).items() if kind == "write"}
        for name, job in workflow["jobs"].items()
    }
    expected = {"publish": {"id-token"}, "site": {"pages", "id-token"}} if path.stem == "release" else {}
    assert {name: found for name, found in may_write.items() if found} == expected
    used = [step["uses"] for job in workflow["jobs"].values() for step in job.get("steps", []) if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)


def test_the_environment_that_publishes_is_documented() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"a trusted publisher on PyPI for the environment `{jobs['publish']['environment']}`" in guide


def test_workflows_test_every_version_of_python() -> None:
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_page_about_compatibility_names_the_oldest_versions() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"(?m)^\| (\w+)[^|]* \| (\d[\d.]*)", page))
    bounds = dict(each.split(">=") for each in PROJECT["dependencies"])
    bounds |= {
        "Python": PROJECT["requires-python"].removeprefix(">="),
        "Rust": toml("Cargo.toml")["package"]["rust-version"],
    }
    assert rows == bounds
    build = runpy.run_path(str(ROOT / "release" / "build.py"))
    assert "glibc {}.{}".format(*build["GLIBC"]) in page
