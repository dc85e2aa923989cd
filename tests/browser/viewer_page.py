"""What the browser tests share: models, a server, and functions that read the page."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from helpers import TEXT
from playwright.sync_api import Page, expect

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.viewer import server
from batchbpe.viewer.workspace import Workspace

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
SANDBOX = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
TIMEOUT = 120_000
"""Milliseconds after which a browser that does not react counts as broken. Other programs may be running."""
expect.set_options(timeout=TIMEOUT)
ONE = Tokenizer.train(TEXT, 600, stop_list_size=5, special_tokens=["<|endoftext|>"])
TWO = Tokenizer.train(TEXT, 270)
COUNTS = ChunkCounts.count(TEXT)


@contextmanager
def serving(space: Workspace) -> Iterator[str]:
    listening = server.listen("127.0.0.1", 0)
    running = uvicorn.Server(uvicorn.Config(server.application(space), log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield server.addresses(listening)[0]
    finally:
        running.should_exit = True
        thread.join()
        listening.close()


def pieces(page: Page, model: int = 0) -> list[str]:
    return page.locator(f'.block[data-model="{model}"] .piece').all_text_contents()


def tokens(page: Page, model: int = 0) -> int:
    number = page.locator(".summary dl").nth(model).locator("dd").first.text_content()
    return int((number or "").replace(",", ""))


def type_text(page: Page, text: str, *expected: Tokenizer) -> None:
    page.locator("#text").fill(text)
    for model, tokenizer in enumerate(expected or (ONE, TWO)):
        number = f"{len(tokenizer.encode(text, 'all')):,}"
        expect(page.locator(".summary dl").nth(model).locator("dd").first).to_have_text(number)
