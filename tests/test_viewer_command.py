"""`batchbpe view`: static pages, errors, and serving until Ctrl-C."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from helpers import run

from batchbpe import Tokenizer


def test_static_page(place: Path) -> None:
    Path("text.txt").write_text("To be </script><b> 日本", encoding="utf-8")
    result = run("view mine.model --static page.html --text text.txt")
    assert (result.exit_code, result.stderr) == (0, "page.html\n")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count("</script>") == 2 and not re.search(r"\b(?:src|href)=(?!\"data:)", page.partition("<body>")[0])
    data = json.loads(re.search('id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    tokenizer = Tokenizer.from_file("mine.model")
    assert data["encoded"]["models"][0]["ids"] == tokenizer.encode("To be </script><b> 日本")
    tokens = data["tokens"][0]
    assert {*map(str, tokenizer.encode("To be </script><b> 日本"))} <= {*tokens}
    assert all(str(part) in tokens for token in tokens.values() for part in token["parts"])


WRONG_COMMANDS = [
    ("broken.model", 1, "error: broken.model: not a batchbpe model file, or damaged: invalid JSON at character 33"),
    ("nowhere.model", 1, "error: model file not found: nowhere.model"),
    ("mine.model broken.csv", 1, "error: broken.csv"),
    ("mine.model --text nowhere.txt", 1, "error: cannot read nowhere.txt: no such file or directory"),
    ("mine.model --text broken.txt", 1, "error: broken.txt: invalid UTF-8 at byte 1"),
    ("mine.model --data nowhere.txt", 1, "error: file not found: nowhere.txt"),
    ("counts.parquet --static page.html", 2, "error: --static needs a model; counts.parquet contains chunk counts"),
    ("mine.model counts.parquet --static page.html", 2, "error: --static has no view of chunk counts; remove counts"),
    ("counts.parquet --data book.txt", 2, "error: --data needs a model; counts.parquet contains chunk counts"),
    ("mine.model " * 5, 1, "error: at most 4 models fit side by side, got 5"),
    ("mine.model --host a..b", 2, "error: --host must be a host name or address of this machine"),
    ("mine.model --host 192.0.2.1", 2, "error: --host must be a host name or address of this machine"),
    ("mine.model --port 70000", 2, "must be at most 65535, got 70000"),
]


def test_wrong_commands(place: Path) -> None:
    Path("broken.model").write_text('{"format": "batchbpe", "version":')
    Path("broken.csv").write_text("a,b,c\n1")
    Path("broken.txt").write_bytes(b"a\xff")
    for command, code, error in WRONG_COMMANDS:
        result = run(f"view {command} --no-open")
        assert (result.exit_code, error in result.stderr) == (code, True), result.stderr


def test_a_port_in_use(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        result = run(f"view mine.model --no-open --port {port}")
    assert result.exit_code == 1
    assert result.stderr == (
        f"error: cannot listen on 127.0.0.1, port {port}: address already in use; use --port 0 for any free port\n"
    )


def test_without_the_extra(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("view mine.model --no-open")
    assert result.stderr == ("error: the viewer requires starlette and uvicorn; run pip install 'batchbpe[viewer]'\n")
    assert run("view mine.model --static page.html -q").exit_code == 0


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_serve_until_ctrl_c(place: Path) -> None:
    code = "import signal; from batchbpe import __main__; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{code}; __main__.main()", "view", "mine.model", "counts.parquet"]
    options = ["--no-open", "--port", "0", "--data", "book.txt"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout
        address = serving.stdout.readline().strip()
        with urllib.request.urlopen(f"{address}api/workspace") as response:
            assert [model["name"] for model in json.load(response)["models"]] == ["mine.model"]
        # A client that goes away, and one that has not sent everything, are not errors.
        host, port = address.removeprefix("http://").removesuffix("/").split(":")
        head = "POST /api/encode HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n"
        for wait in (False, True):
            with socket.create_connection((host, int(port))) as half:
                half.sendall(f"{head}expect: 100-continue\r\ncontent-length: 9\r\n\r\na".encode())
                assert half.recv(100).startswith(b"HTTP/1.1 100"), "the server waits for the rest"
                if wait:
                    serving.send_signal(signal.SIGINT)
                    serving.wait(timeout=30)
        assert serving.communicate(timeout=30)[1] == "press Ctrl-C to stop\n"
    assert serving.returncode == 0
