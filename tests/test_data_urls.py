"""Documents from URLs: over http, and through fsspec."""

import gzip
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import documents, texts

from batchbpe.data.documents import TextFile

PAGES = {
    "/a.txt": "ein text ü".encode(),
    "/plain": b"plain",
    "/a.txt.gz": gzip.compress(b"zipped"),
    "/a.jsonl": b'{"text": "line"}\n',
    "/broken.txt.gz": gzip.compress(b"zipped")[:-9],
}


@pytest.fixture
def server() -> Iterator[SimpleNamespace]:
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            requested.append(path)
            body = PAGES.get(path, b"cut")
            self.send_response(404 if path == "/absent.txt" else 200)
            self.send_header("Content-Length", str(len(body) + 100 * (path == "/cut.txt")))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", requested=requested)
        server.shutdown()
        thread.join()


def test_url(server: SimpleNamespace) -> None:
    stream = documents([f"{server.url}/a.txt"])
    (item,) = stream
    assert isinstance(item, TextFile)
    assert item.name == f"{server.url}/a.txt"
    assert server.requested == []
    assert texts(item.name) == ["ein text ü"]
    assert texts(f"{server.url}/plain?a={'b' * 300}") == ["plain"]
    assert texts([f"{server.url}/a.txt?a={'b' * 300}", f"{server.url}/a.txt.gz?x=1"]) == ["ein text ü", "zipped"]
    assert texts(f"{server.url}/a.jsonl") == ["line"]


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("absent.txt", "the server responded 404 Not Found; check the URL and your access to it, or download the file"),
        ("cut.txt", "the connection was closed 100 bytes before the end"),
        ("broken.txt.gz", "not a gzip file, or damaged$"),
    ],
)
def test_url_errors(page: str, problem: str, server: SimpleNamespace) -> None:
    with pytest.raises(OSError, match=f"cannot read {server.url}/{page}: {problem}"):
        texts(f"{server.url}/{page}")


def test_urls_that_cannot_be_read() -> None:
    with pytest.raises(OSError, match=r"cannot read http://127\.0\.0\.1:1/a\.txt: [^<]+; check the URL"):
        texts("http://127.0.0.1:1/a.txt")
    with pytest.raises(OSError, match=r"cannot read http://127\.0\.0\.1:x/a\.txt: nonnumeric port: 'x'; check the URL"):
        texts("http://127.0.0.1:x/a.txt")
    with pytest.raises(FileNotFoundError, match=r"unsupported URL \(use https, .*\): ftp://host/a\.txt"):
        texts("ftp://host/a.txt")


def test_url_of_a_table(server: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"a\.csv: chunk counts cannot be read from a URL; download the file first"):
        documents(f"{server.url}/a.csv")
    assert server.requested == []
    table = pa.BufferOutputStream()
    pq.write_table(pa.table({"text": ["one", "zwei ü"]}), table)
    monkeypatch.setitem(PAGES, "/a.parquet", table.getvalue().to_pybytes())
    assert texts(f"{server.url}/a.parquet") == ["one", "zwei ü"]


def test_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/data/b.txt", b"two")
    memory.pipe("/data/a.jsonl.gz", gzip.compress(b'{"text": "one"}\n'))
    with memory.open("/data/c.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["three"]}), file)
    with (
        memory.open("/data/d.arrow", "wb") as file,
        pa.ipc.new_stream(file, pa.schema({"text": pa.string()})) as writer,
    ):
        writer.write_table(pa.table({"text": ["four"]}))
    assert texts("memory://data/*") == ["one", "two", "three", "four"]
    assert texts(["memory://data/b.txt"]) == ["two"]
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern: memory://data/\*\.md"):
        documents("memory://data/*.md")
    with pytest.raises(OSError, match=r"cannot read memory://data/absent\.txt: not found; check the URL"):
        documents("memory://data/absent.txt")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    for url in ("s3://b/a.txt", "s3://b/*.txt"):
        with pytest.raises(ImportError, match=rf"reading {re.escape(url)} requires s3fs; run pip install s3fs"):
            documents(url)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"requires fsspec; run pip install 'batchbpe\[remote\]'"):
        documents("s3://b/a.txt")
