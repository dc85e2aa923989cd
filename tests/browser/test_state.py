"""Keyboard, address, files, errors and narrow windows, in a browser."""

from itertools import product
from typing import Any

from playwright.sync_api import Page, expect
from viewer_page import ONE, TWO, pieces, serving, type_text

from batchbpe.viewer.workspace import Workspace


def test_keyboard_only(page: Page, address: str) -> None:
    page.goto(f"{address}#text=to+be")
    expect(page.locator(".piece").first).to_be_visible()

    def focused(script: str) -> Any:
        return page.evaluate(f"() => document.activeElement.{script}")

    page.keyboard.press("Tab")
    assert focused("textContent") == "Compare"
    for _ in range(10):
        page.keyboard.press("Tab")
        if focused("matches('.piece')"):
            break
    assert focused("textContent") == pieces(page)[0]
    expect(page.locator("#tip")).to_be_visible()
    page.keyboard.press("ArrowRight")
    assert focused("textContent") == pieces(page)[1]
    page.keyboard.press("Enter")
    expect(page.locator("#panel .facts")).to_be_visible()
    page.keyboard.press("Escape")
    assert focused("textContent") == pieces(page)[1]
    type_text(page, "ש, ל")  # from right to left
    page.locator(".piece").first.focus()
    page.keyboard.press("ArrowLeft")
    assert focused("textContent") == pieces(page)[1] != pieces(page)[0]
    page.locator("#tab-compare").focus()
    page.keyboard.press("End")
    expect(page.locator("#tab-counts")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Counts")).to_be_visible()
    page.keyboard.press("Home")
    expect(page.locator("#tab-compare")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-vocabulary")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".list .note")).to_have_text("600 tokens")
    while not focused("matches('.table')"):
        page.keyboard.press("Tab")
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.locator("#panel .facts dd").first).to_have_text("598")


def test_the_state_is_in_the_address(page: Page, address: str) -> None:
    page.goto(address)
    type_text(page, "né & <b> 日本")
    page.locator("#spaces").check()
    page.locator("#theme").click()
    page.locator("#tab-vocabulary").click()
    page.locator("#search").fill("t")
    found = sum(b"t" in value for value in ONE.vocab.values())
    expect(page.locator(".list .note")).to_have_text(f"{found} tokens")
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    expect(page.locator("#search")).to_have_value("t")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.locator("#tab-compare").click()
    expect(page.locator("#text")).to_have_value("né & <b> 日本")
    expect(page.locator("#spaces")).to_be_checked()
    page.go_back()
    expect(page.locator("#search")).to_be_visible()
    page.locator(".space .row").first.click()
    expect(page.locator("#panel .facts")).to_be_visible()
    chosen = page.locator("#panel .facts dd").first.text_content() or ""
    page.reload()
    expect(page.locator("#panel .facts dd").first).to_have_text(chosen)


def test_going_back_to_a_text(page: Page, address: str) -> None:
    """Also to one that is too long for the address, and to none."""
    long = "to be or not to be\n" * 250
    page.goto(address)
    page.locator("#file").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": long.encode()})
    expect(page.locator(".tools .note")).to_contain_text("4,750 characters")
    expect(page.locator(".tools .note")).to_contain_text("too long for the address")
    page.locator("#tab-counts").click()
    page.locator("#tab-compare").click()
    type_text(page, "")
    page.go_back()
    page.go_back()
    expect(page.locator("#text")).to_have_value(long)
    page.go_forward()
    page.go_forward()
    expect(page.locator("#text")).to_have_value("")
    page.reload()
    expect(page.locator(".summary dd").first).to_have_text("0")
    expect(page.locator("#text")).to_have_value("")


def test_files_keep_their_bytes(page: Page, address: str) -> None:
    page.goto(address)

    def open_file(content: bytes) -> None:
        page.locator("#file").set_input_files({"name": "text.txt", "mimeType": "text/plain", "buffer": content})

    open_file("\ufeffa\r\n".encode())
    status = page.locator(".tools .note")
    expect(status).to_contain_text("4 characters, 6 bytes")
    expect(status).to_contain_text(r"typing turns \r\n into \n")
    open_file(b"a\xff")
    expect(page.locator("#failure")).to_have_text("text.txt is not valid UTF-8")


def test_wrong_addresses(page: Page, address: str) -> None:
    for state, shown in [
        ("theme=constructor&view=training&model=-1", ".chart"),
        ("view=counts&counts=-1", ".space .row"),
        ("view=vocabulary&least=-3&most=1e99", ".space .row"),
    ]:
        page.goto(f"{address}#{state}")
        expect(page.locator(shown).first).to_be_visible()
        expect(page.locator("#failure")).to_be_hidden()


def test_failures_are_shown(failing_page: Page, address: str) -> None:
    page = failing_page
    page.goto(f"{address}#token=0-99999")
    expect(page.locator("#failure")).to_have_text("id must be the id of a token of one, got 99999")
    page.route("**/api/encode", lambda route: route.abort())
    page.locator("#text").fill("a")
    expect(page.locator("#failure")).to_have_text("The server does not respond. Is batchbpe view still running?")
    page.unroute("**/api/encode")
    page.locator("#text").fill("ab")
    expect(page.locator("#failure")).to_be_hidden()
    page.route("**/api/vocabulary*", lambda route: route.fulfill(status=500, body="Internal Server Error"))
    page.locator("#tab-vocabulary").click()
    expect(page.locator("#failure")).to_have_text("The server failed (500). The terminal shows why.")


def test_a_narrow_window(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 800})
    for view in ("compare", "vocabulary", "diff", "training", "counts"):
        page.goto(f"{address}#view={view}")
        page.reload()
        expect(page.locator(".piece, .space .row").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, view
    scale = page.locator(".chart").evaluate(
        "chart => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width"
    )
    assert scale > 0.99, "labels keep their size"


def test_hostile_names_of_models(page: Page) -> None:
    """They are text, and the page is not wider than the window."""
    name = "<img src=x onerror=\"document.title = 'hacked'\">" * 9
    with serving(Workspace({name: ONE, f"{name}\u202e": TWO}, text="to be")) as address:
        for width, view in product((1200, 420), ("compare", "vocabulary", "diff", "training")):
            page.set_viewport_size({"width": width, "height": 800})
            page.goto("about:blank")
            page.goto(f"{address}#view={view}")
            expect(page.locator(".piece, .space .row").first).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        page.goto(f"{address}#token=0-116")
        expect(page.locator("#panel .model")).to_have_text(f"Token of {name}")
        assert (page.locator("img").count(), page.title()) == (0, "batchbpe")


def test_other_sites_cannot_read(failing_page: Page, address: str) -> None:
    page = failing_page
    page.route("http://evil.example/", lambda route: route.fulfill(body="<!doctype html>"))
    page.goto("http://evil.example/")
    script = "url => fetch(url).then(answer => answer.text()).catch(error => 'refused')"
    assert page.evaluate(script, f"{address}api/workspace") == "refused"
