"""The same files on every system: what Linux has and others lack is disabled, and what they do is simulated."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import END, TEXT

import batchbpe

ROOT = Path(batchbpe.__file__).parent
GUARDED = {
    "fcntl": {"storage/locks.py"},
    "resource": {"util/memory.py"},
    "ctypes": {"util/memory.py", "verification/llama_cpp.py"},
    **{name: set[str]() for name in ("grp", "multiprocessing", "pwd", "termios", "tty")},
}
"""Modules that some systems lack, or that behave differently, and the files that handle it."""
ONLY_UNIX = {
    "kill": {"storage/locks.py", "spark/files.py"},
    "sysconf": {"util/memory.py"},
    **{
        name: set[str]() for name in ("chmod", "chown", "fork", "geteuid", "getuid", "mkfifo", "posix_fadvise", "umask")
    },
}
"""Likewise for functions of `os`."""


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            yield path.relative_to(ROOT).as_posix(), node


def test_what_some_systems_lack_is_used_where_it_is_handled() -> None:
    for file, node in nodes():
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert file in GUARDED.get(alias.name, {file}), f"{file} imports {alias.name}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert file in GUARDED.get(node.module or "", {file}), f"{file} imports {node.module}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            assert file in ONLY_UNIX.get(node.attr, {file}), f"{file} uses os.{node.attr}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "signal":
            assert not node.attr.startswith("SIG") or node.attr in {"SIGINT", "SIGTERM", "SIG_DFL", "SIG_IGN"}, file
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc/"):
            assert file in {"util/memory.py", "spark/files.py"}, f"{file} reads /proc"


def test_text_is_written_with_the_same_encoding_and_newlines() -> None:
    """By default, both depend on the system."""
    checked = 0
    for file, node in nodes():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
        if name == "write_text" or (name == "open" and {"w", "a", "x"} & {*modes}):
            given = {keyword.arg for keyword in node.keywords}
            assert {"encoding", "newline"} <= given, f"{file}:{node.lineno}: pass encoding and newline"
            checked += 1
    assert checked > 10


ELSEWHERE = """if True:
    import io, os, sys
    sys.modules.update(fcntl=None, resource=None)
    opened = io.open
    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *rest):
        if str(file).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", str(file))
        if "b" not in mode and encoding in (None, "locale"):
            encoding = "cp1252"
        if "w" in mode and "b" not in mode and newline is None:
            newline = "\\r\\n"
        return opened(file, mode, buffering, encoding, errors, newline, *rest)
    io.open = open
    del os.sysconf, os.sched_getaffinity
"""
"""Remove what only Linux has, and let text files have the newlines and the encoding of Windows by default."""
RUN = """if True:
    import sys
    from batchbpe import cli
    for command in sys.argv[1:]:
        sys.argv = ["batchbpe", *command.split()]
        assert cli.main() == 0, command
"""
FORMATS = ["tiktoken", "huggingface", "minbpe", "transformers", "gguf", "batchbpe-v1"]
COMMANDS = [
    "count book.txt -o counts.csv",
    "count book.txt -o counts.parquet --max-memory 0.5",
    f"train counts.csv -n 600 --special-token {END} --eos {END} -o mine",
    *(f"export mine.model --to {name} -o exported.{name} --allow-inexact" for name in FORMATS),
    *(f"encode mine.model book.txt --format {name} -o ids-{name}" for name in ("bin", "megatron", "olmo", "datatrove")),
    "edit mine.model --truncate 500 -o small",
    "diff mine.model small.model -o ids.json",
    "view mine.model --text book.txt --static page.html",
    "inspect mine.model",
]


@pytest.mark.skipif(sys.platform != "linux", reason="removes what only Linux has")
def test_the_files_are_the_same_elsewhere(tmp_path: Path) -> None:
    printed, written = [], []
    for name, code in {"here": RUN, "elsewhere": ELSEWHERE + RUN}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "book.txt").write_text(f"{TEXT} naïve 語", encoding="utf-8")
        done = subprocess.run([sys.executable, "-c", code, *COMMANDS], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (" of memory" in done.stderr) == (name == "here"), "it is omitted if it is unknown"
        printed.append(done.stdout)
        # shards.json contains paths and times.
        files = (path for path in folder.rglob("*") if path.is_file() and path.name != "shards.json")
        written.append({path.relative_to(folder): path.read_bytes() for path in files})
    here, elsewhere = written
    assert here.keys() == elsewhere.keys() and len(here) > 25
    assert [path for path in here if here[path] != elsewhere[path]] == []
    assert printed[0] == printed[1] != ""
