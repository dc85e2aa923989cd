"""Build a wheel and the source distribution of the last commit into dist: `make wheel`.

They are built in an exported copy, so that they contain no files of this machine. In the copy, README.md has absolute
links, because package registries show it without the repository. On Linux, zig links for an old C library.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
COPY = ROOT / "target" / "release-copy"
REPOSITORY = "https://github.com/batchbpe/batchbpe"
RAW = "https://raw.githubusercontent.com/batchbpe/batchbpe"
GLIBC = (2, 28)
"""The oldest glibc that the Linux wheels support: RHEL 8, Debian 10 and Ubuntu 20.04 have it or a newer one."""


def version() -> str:
    """Return the version, from Cargo.toml.

    >>> version().count(".")
    2
    """
    found = re.search(r'(?m)^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert found
    return found[1]


def absolute_links(readme: str, tag: str) -> str:
    """Let links lead to the repository at a tag, and images to their files.

    >>> print(absolute_links('[a](docs/a.md#b) ![c](docs/c.svg) <img src="d.svg"> [e](https://e.org)', "v1"))
    ... # doctest: +NORMALIZE_WHITESPACE
    [a](https://github.com/batchbpe/batchbpe/blob/v1/docs/a.md#b)
    ![c](https://raw.githubusercontent.com/batchbpe/batchbpe/v1/docs/c.svg)
    <img src="https://raw.githubusercontent.com/batchbpe/batchbpe/v1/d.svg"> [e](https://e.org)
    """
    relative = r"(?!https?://|#)"
    readme = re.sub(rf'((?:!\[[^\]]*\]\()|\b(?:src|srcset)="){relative}', rf"\g<1>{RAW}/{tag}/", readme)
    return re.sub(rf"((?<!!)\[[^\]]*\]\(){relative}", rf"\g<1>{REPOSITORY}/blob/{tag}/", readme)


def export() -> None:
    """Write the files of the last commit to `COPY`."""
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout
    if changed:
        print("uncommitted changes are not included")
    shutil.rmtree(COPY, ignore_errors=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(COPY, filter="data")
    readme = COPY / "README.md"
    text = absolute_links(readme.read_text(encoding="utf-8"), f"v{version()}")
    readme.write_text(text, encoding="utf-8", newline="\n")


def build(target: str | None) -> Path:
    """Build both into an empty `DIST`, and return the wheel."""
    is_linux = "linux" in (target or sys.platform)
    tag = "musllinux_1_2" if "musl" in (target or "") else f"manylinux_{GLIBC[0]}_{GLIBC[1]}"
    arguments = ["--sdist", "--release", "--locked", "--out", str(DIST), "--target-dir", str(ROOT / "target" / "wheel")]
    arguments += ["--zig", "--compatibility", tag] if is_linux else []
    arguments += ["--target", target] if target else []
    shutil.rmtree(DIST, ignore_errors=True)
    # maturin looks for zig on the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["maturin", "build", "--quiet", *arguments], cwd=COPY, env=os.environ | {"PATH": path}, check=True)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def check_glibc(wheel: Path) -> None:
    """Print which glibc a wheel needs, or end the program if it is too new."""
    shown = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(wheel)], capture_output=True, text=True, check=True
    ).stdout
    needed = max(tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", shown))
    if needed > GLIBC:
        sys.exit(f"{wheel.name} needs a newer glibc than {GLIBC[0]}.{GLIBC[1]}:\n{shown}")
    print(f"needs glibc {needed[0]}.{needed[1]}, {re.findall(r'[a-z]+linux_[0-9a-z_]+', shown)[-1]}")


def main() -> None:
    """Build, and print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target", help="target triple of Rust (default: this machine)")
    target = parser.parse_args().target
    export()
    wheel = build(target)
    for path in sorted(DIST.iterdir()):
        print(f"dist/{path.name} {path.stat().st_size / 1e6:.1f} MB")
    if "manylinux" in wheel.name:
        check_glibc(wheel)


if __name__ == "__main__":
    main()
