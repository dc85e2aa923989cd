"""The limits of the viewer's server: requests in progress, work whose answer is no longer needed, and signals."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from batchbpe import Model, Tokenizer
from batchbpe.viewer import server, work
from batchbpe.viewer.work import Cancelled, Limit, Worker
from batchbpe.viewer.workspace import Workspace

SLOW = Tokenizer(Model(split="(?:(?!a*b)a)*c", merges={}))
TEXT = "a" * 50_000
"""A text on which the pattern of `SLOW` fails after ten seconds."""


async def never() -> Any:
    """Receive from a client that neither sends nor disconnects."""
    await asyncio.Event().wait()


def test_work_stops_when_the_client_disconnects() -> None:
    started, ended = threading.Event(), []

    def encode() -> None:
        started.set()
        try:
            SLOW.encode(TEXT)
        except BaseException as error:
            ended.append(type(error))
            raise

    async def receive() -> Any:
        await asyncio.to_thread(started.wait)
        return {"type": "http.disconnect"}

    async def ask() -> Any:
        worker = Worker()
        with pytest.raises(Cancelled):
            await worker.run(receive, encode)
        return await worker.run(never, len, ended)  # runs after the first

    assert asyncio.run(ask()) == 1
    assert ended == [KeyboardInterrupt]


def test_work_stops_when_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_SECONDS", 0.01)
    with TestClient(server.application(Workspace({"slow": SLOW})), base_url="http://127.0.0.1") as client:
        headers = {"content-type": "application/octet-stream"}
        response = client.post("/api/encode", content=TEXT.encode(), headers=headers)
    assert (response.status_code, response.json()["error"]) == (
        503,
        "this takes more than 20 seconds; use a shorter text",
    )


def test_queued_work_does_not_start_if_its_answer_is_not_needed() -> None:
    release, calls = threading.Event(), []

    async def ask() -> None:
        worker = Worker()
        first = asyncio.ensure_future(worker.run(never, release.wait))
        second = asyncio.ensure_future(worker.run(never, calls.append, 2))
        await asyncio.sleep(0)  # both are submitted
        second.cancel()
        await asyncio.wait({second})
        release.set()
        await first
        await worker.run(never, calls.append, 3)

    asyncio.run(ask())
    assert calls == [3]


def test_errors_reach_the_client() -> None:
    pattern = Tokenizer(Model(split=r"(?:a+)+(?=b)(?!b)", merges={}))
    with TestClient(server.application(Workspace({"bad": pattern})), base_url="http://127.0.0.1") as client:
        headers = {"content-type": "application/octet-stream"}
        response = client.post("/api/encode", content=b"a" * 4999 + b"b", headers=headers)
    assert response.status_code == 400 and "could not be matched at byte 0" in response.json()["error"]


def test_requests_in_progress_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is in progress until its answer was read."""
    monkeypatch.setattr(work, "MAX_REQUESTS", 2)
    monkeypatch.setattr(work, "PIECE", 4)
    answered: list[str] = []
    sent = [{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.request", "more_body": False}]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"0123456789"})
        answered.append("app")

    async def busy(scope: Any, receive: Any, send: Any) -> None:
        answered.append("busy")

    async def receive() -> Any:
        return sent.pop(0)

    async def ask() -> None:
        limit, read, pieces = Limit(app, busy), asyncio.Event(), []

        async def send(message: Any) -> None:
            pieces.append((message["body"], message["more_body"]))
            await read.wait()

        reading = [asyncio.ensure_future(limit({}, never, send)) for _ in range(2)]
        refused = asyncio.ensure_future(limit({}, receive, send))
        await asyncio.sleep(0)  # each has run until it waits
        assert (refused.done(), answered, sent) == (True, ["busy"], []), "what the client sends is read first"
        read.set()
        await asyncio.gather(*reading)
        assert sorted(pieces) == sorted(2 * [(b"0123", True), (b"4567", True), (b"89", False)])
        await limit({}, never, send)
        assert answered == ["busy", "app", "app", "app"]

    asyncio.run(ask())


def test_a_busy_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_REQUESTS", 0)
    client = TestClient(server.application(Workspace()), base_url="http://127.0.0.1")
    response = client.get("/api/workspace")
    assert (response.status_code, response.json()["error"]) == (
        503,
        "the server is busy with other requests; try again",
    )
    assert client.get("/").status_code == 200


ANNOUNCED = """
import signal
from batchbpe import __main__
from batchbpe.viewer import api

def announced(*given, encode=api.encode):
    print("started", flush=True)
    try:
        return encode(*given)
    except BaseException as error:
        print(type(error).__name__, flush=True)
        raise

api.encode = announced
signal.signal(signal.SIGINT, signal.default_int_handler)
__main__.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_a_signal_stops_slow_work(tmp_path: Path, number: int, code: int) -> None:
    SLOW.save(tmp_path / "slow")
    command = [sys.executable, "-c", ANNOUNCED, "view", str(tmp_path / "slow.model"), "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout
        host, port = serving.stdout.readline().strip().removeprefix("http://").removesuffix("/").split(":")
        head = "POST /api/encode HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\n"
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"{head}content-length: {len(TEXT)}\r\n\r\n{TEXT}".encode())
            assert serving.stdout.readline() == "started\n"
            serving.send_signal(number)
            try:
                output, errors = serving.communicate(timeout=60)
            finally:
                serving.kill()
    assert (output, serving.returncode) == ("KeyboardInterrupt\n", code), errors
    assert errors.splitlines() == ["press Ctrl-C to stop", *(["terminated"] if code else [])]
