"""Build what a release of this commit needs, and say what is missing: `make release-check`.

The exit status is 1 if something is missing.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from build import DIST, ROOT, version

GENERATED = ("docs/cli.md", "docs/figures", "benchmarks/charts")
"""What `make docs` writes."""
COMMANDS = (
    ("make", "--silent", "docs"),
    (".venv/bin/python", "-m", "pytest", "tests/test_notebooks.py"),  # their output depends on the version of Python
    ("make", "--silent", "site"),
    ("make", "--silent", "wheel"),
)


def git(*arguments: str) -> str:
    """Return what git prints, or an empty text if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def everything_can_be_built(_: str) -> Iterator[str]:
    """The documentation, the notebooks, the site and the wheel can be built."""
    for command in COMMANDS:
        print(*command, flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            yield f"{' '.join(command)} failed"


def tag_is_new(tag: str) -> Iterator[str]:
    """The tag is that of the version, and names no other commit."""
    if tag != f"v{version()}":
        yield f"the tag is {tag}, but Cargo.toml has version {version()}"
    tagged = git("rev-list", "-n", "1", tag, "--")
    if tagged and tagged != git("rev-parse", "HEAD"):
        yield f"{tag} exists already, for commit {tagged[:7]}: raise the version in Cargo.toml"


def changelog_has_a_date(_: str) -> Iterator[str]:
    """The changelog starts with the version and its date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.match(rf"# Changelog\n\n## {re.escape(version())} \(\d{{4}}-\d\d-\d\d\)\n", text):
        yield f"CHANGELOG.md does not start with '## {version()} (YYYY-MM-DD)'"


def tree_is_committed(_: str) -> Iterator[str]:
    """What is generated is what was committed, and everything else is committed too."""
    changed = [line[2:].strip() for line in git("status", "--porcelain").splitlines()]
    generated = [name for name in changed if name.startswith(GENERATED)]
    if generated:
        yield f"generated files were out of date, and have been updated: {', '.join(generated)}"
    if len(changed) > len(generated):
        yield f"uncommitted changes: {', '.join(name for name in changed if name not in generated)}"


def distributions_are_valid(_: str) -> Iterator[str]:
    """A wheel and a source distribution of the version are in dist, and their descriptions can be shown."""
    files = [*DIST.glob(f"batchbpe-{version()}*")]
    if sorted(file.suffix for file in files) != [".gz", ".whl"]:
        yield f"dist has no wheel and source distribution of version {version()}: make wheel"
        return
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True)
    if checked.returncode:
        yield f"twine check: {checked.stdout.strip()}"


def workflows_are_valid(_: str) -> Iterator[str]:
    """The linters of workflows have no findings."""
    beside = str(Path(sys.executable).parent)
    linters = {
        "actionlint": ["-no-color"],
        "zizmor": ["--offline", "--no-progress", "--min-severity", "medium", ".github/workflows"],
    }
    for linter, arguments in linters.items():
        program = shutil.which(linter, path=beside) or shutil.which(linter)
        if not program:
            yield f"{linter} is not installed, so the workflows were not checked with it"
            continue
        linted = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True)
        if linted.returncode:
            yield f"{linter}: {(linted.stdout or linted.stderr).strip()}"


QUICK = (tag_is_new, changelog_has_a_date, tree_is_committed, workflows_are_valid)
CHECKS = (everything_can_be_built, distributions_are_valid, *QUICK)
"""Each yields what is missing."""


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tag", default=f"v{version()}", help="tag of the release (default: the version)")
    parser.add_argument("--quick", action="store_true", help="build nothing")
    options = parser.parse_args()
    missing = 0
    for function in QUICK if options.quick else CHECKS:
        found = [*function(options.tag)]
        missing += len(found)
        print(f"{'missing' if found else 'ok':8}{function.__name__.replace('_', ' ')}")
        for line in found:
            print(f"        {line}")
    sys.exit(f"{missing} missing for {options.tag}" if missing else 0)


if __name__ == "__main__":
    main()
