"""Install what is in dist in clean environments, and try it: `make test-wheel`.

For each version of Python that is found, the wheel is installed without Rust: by pip with current dependencies, and by
uv with the oldest allowed ones. The source distribution is installed once, which compiles it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from build import DIST, ROOT, version

UV = [sys.executable, "-m", "uv"]
KINDS = ("current", "oldest")


def declared_versions() -> list[str]:
    """Return the versions of Python in the classifiers."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))


def environment() -> dict[str, str]:
    """Return an environment in which uv finds the versions of Python that pyenv has installed."""
    folders = [str(folder) for folder in Path.home().glob(".pyenv/versions/*/bin")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return kept | {"PATH": os.pathsep.join([*folders, os.environ["PATH"]])}


def without_rust(scripts: Path) -> dict[str, str]:
    """Return an environment that finds only the commands of a virtual environment and of the system."""
    system = [os.environ["SYSTEMROOT"] + "\\System32"] if os.name == "nt" else ["/usr/bin", "/bin"]
    path = os.pathsep.join([str(scripts), *system])
    assert not shutil.which("cargo", path=path), "Rust is among the commands of the system"
    return environment() | {"PATH": path}


def create(folder: Path, python: str) -> Path | None:
    """Create a virtual environment with pip, and return its Python, or None if there is no such version of Python."""
    command = [*UV, "venv", "--quiet", "--seed", "--python", python, str(folder)]
    if subprocess.run(command, env=environment(), capture_output=True).returncode:
        return None
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, kind: str, wheel: Path) -> None:
    """Install the wheel, or compile the source distribution."""
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if kind == "current":
        command, env = [*pip, "--only-binary", ":all:", str(wheel)], without_rust(python.parent)
    elif kind == "oldest":
        oldest = ["--resolution", "lowest-direct", "--only-binary", ":all:", "-r", str(ROOT / "pyproject.toml")]
        command, env = [*UV, "pip", "install", "--quiet", "--python", str(python), *oldest, str(wheel)], environment()
    else:
        (sdist,) = DIST.glob("*.tar.gz")
        command = [*pip, str(sdist)]
        env = environment() | {"CARGO_TARGET_DIR": str(ROOT / "target" / "sdist")}
    subprocess.run(command, env=env, check=True)


def attempt(version_of_python: str, kind: str, wheel: Path) -> bool | None:
    """Install and try the package. Return whether it works, or None if there is no such version of Python."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        python = create(Path(folder, "venv"), version_of_python)
        if python is None:
            return None
        work = Path(folder, "work")
        work.mkdir()
        env = without_rust(python.parent)
        try:
            install(python, kind, wheel)
            frozen = subprocess.run([*UV, "pip", "freeze", "--python", str(python)], capture_output=True, text=True)
            smoke = [str(python), str(ROOT / "release" / "smoke.py"), str(ROOT / "README.md"), version()]
            subprocess.run(smoke, cwd=work, env=env, check=True)
        except subprocess.CalledProcessError as error:
            print(f"{version_of_python} {kind}: failed: {' '.join(error.cmd)}", flush=True)
            return False
    found = re.findall(r"(?m)^(?:numpy|pyarrow|rich|typer|click)==.+$", frozen.stdout)
    print(f"{version_of_python} {kind}: works in {time.monotonic() - started:.0f} s ({' '.join(found)})", flush=True)
    return True


def main() -> None:
    """Try all environments, and end with an error if one fails or if there is nothing to try."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pythons", nargs="+", default=declared_versions(), help="versions of Python")
    parser.add_argument("--no-sdist", action="store_true", help="do not compile the source distribution")
    options = parser.parse_args()
    wheels = [*DIST.glob(f"batchbpe-{version()}-*.whl")]
    if len(wheels) != 1:
        sys.exit(f"expected one wheel of version {version()} in {DIST}, found {len(wheels)}: run make wheel")
    results: list[bool | None] = []
    tried: list[str] = []
    for python in options.pythons:
        found = [attempt(python, kind, wheels[0]) for kind in KINDS]
        if found[0] is None:
            print(f"{python}: not found, not tested", flush=True)
        else:
            tried.append(python)
            results += found
    if tried and not options.no_sdist:
        results.append(attempt(tried[-1], "source", wheels[0]))
    if not results or not all(results):
        sys.exit("the wheel does not work everywhere, see above" if results else "no version of Python was found")


if __name__ == "__main__":
    main()
