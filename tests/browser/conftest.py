"""The viewer in a browser, as a person uses it. These tests are skipped if there is no chromium."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright
from viewer_page import CHROMIUM, COUNTS, ONE, SANDBOX, TIMEOUT, TWO, serving

from batchbpe.viewer.workspace import Workspace

collect_ignore = ["conftest.py"]


@pytest.fixture(scope="module")  # a running playwright prevents asyncio.run in other modules
def tab() -> Iterator[Page]:
    """A tab that all tests of a module share, since opening one takes longer than most tests."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; run make tools, or install it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SANDBOX, timeout=TIMEOUT)
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Workspace({"one": ONE, "two": TWO}, {"counts": COUNTS})) as address:
        yield address


@pytest.fixture
def failing_page(tab: Page) -> Iterator[Page]:
    """A page that may report errors. The state of the viewer is in the address, so that an empty page has none."""
    tab.set_viewport_size({"width": 1200, "height": 800})
    yield tab
    tab.unroute_all()
    tab.goto("about:blank")


@pytest.fixture
def page(failing_page: Page) -> Iterator[Page]:
    """A page that must not report errors, such as violations of the Content-Security-Policy."""
    problems: list[str] = []

    def report(problem: Any) -> None:
        if getattr(problem, "type", "error") == "error":  # messages on the console have a type
            problems.append(str(problem))

    for event in ("pageerror", "console"):
        failing_page.on(event, report)
    yield failing_page
    for event in ("pageerror", "console"):
        failing_page.remove_listener(event, report)
    assert problems == []
