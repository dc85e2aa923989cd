"""The viewer in a browser, as a person uses it. These tests are skipped if there is no chromium."""

import os
import re
import shutil
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from helpers import TEXT
from playwright.sync_api import Page, expect, sync_playwright

from batchbpe import ChunkCounts, Model, Tokenizer
from batchbpe.viewer import api, server, static_page
from batchbpe.viewer.workspace import SAMPLE, Workspace

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed; run make tools, or install it")
TIMEOUT = 120_000
"""Milliseconds after which a browser that does not react counts as broken. Other programs may be running."""
expect.set_options(timeout=TIMEOUT)
ONE = Tokenizer.train(TEXT, 600, stop_list_size=5, special_tokens=["<|endoftext|>"])
TWO = Tokenizer.train(TEXT, 270)
COUNTS = ChunkCounts.count(TEXT)


@pytest.fixture(scope="module")  # a running playwright prevents asyncio.run in other modules
def tab() -> Iterator[Page]:
    """A tab for all tests: opening one takes longer than most of them."""
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox, timeout=TIMEOUT)
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Workspace({"one": ONE, "two": TWO}, {"counts": COUNTS})) as address:
        yield address


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


def test_typing_and_comparing(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.locator("#text")).to_have_value(SAMPLE)
    type_text(page, "to be, or not to be")
    for model, tokenizer in enumerate((ONE, TWO)):
        assert pieces(page, model) == [tokenizer.decode([token]) for token in tokenizer.encode("to be, or not to be")]
    # Both begin with t, o and " be"; then one has " or", the other " ", o and r.
    assert page.locator(".block .piece:nth-child(3).differs").count() == 0
    assert page.locator('.block[data-model="1"] .differs').all_text_contents()[:3] == [" ", "o", "r"]
    numbers = page.locator(".summary dl").first.locator("dd").all_text_contents()
    size = len(ONE.encode("to be, or not to be"))
    assert numbers == [str(size), f"{19 / size:.2f}", f"{19 / size:.2f}"]
    assert page.locator('.block[data-model="0"] .c0').first.text_content() == pieces(page)[0]
    legend = page.locator(".legend")
    expect(legend).not_to_contain_text("special token", use_inner_text=True)
    type_text(page, "")
    assert pieces(page) == []
    assert page.locator(".summary dl").first.locator("dd").all_text_contents() == ["0", "–", "–"]
    type_text(page, "a<|endoftext|>")
    assert pieces(page) == ["a", "<|endoftext|>"]
    assert page.locator(".block .special").all_text_contents() == ["<|endoftext|>"]
    expect(legend).to_contain_text("special token", use_inner_text=True)
    expect(legend).not_to_contain_text("dropped", use_inner_text=True)


def test_every_script_stays_readable(page: Page, address: str) -> None:
    page.goto(address)
    words = ["日本語", "اللغة", "हिन्दी", "é", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "한국", "e\u0301"]
    text = "".join(f"{word} \n" for word in words)
    type_text(page, text)
    for model in (0, 1):
        shown = pieces(page, model)
        assert "".join(shown) == text
        for cluster in ("日", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "e\u0301"):
            assert any(cluster in piece for piece in shown), cluster
    several = page.locator('.block[data-model="1"] .several', has_text="👩‍👩‍👧‍👦")
    assert int(several.evaluate("element => element.style.getPropertyValue('--tokens')")) > 10
    assert page.locator(".block").first.evaluate("block => getComputedStyle(block).unicodeBidi") == "plaintext"
    # Neighbors have different colors, whatever the number of tokens in each.
    colors = page.locator('.block[data-model="1"] .piece').evaluate_all("all => all.map(each => each.classList[1])")
    assert all(one != two for one, two in pairwise(colors))
    # A character with many tokens has no room for gaps in its underline, but still has one.
    dash = """piece => {
        const probe = piece.appendChild(document.createElement("i"));
        piece.style.cssText += "; display: inline-block; width: 20px; --tokens: 22";
        probe.style.cssText = "display: block; width: calc(var(--dash) - var(--gap))";
        return probe.getBoundingClientRect().width;
    }"""
    assert several.evaluate(dash) == pytest.approx(20 / 22, abs=0.05)


def test_a_long_line_without_spaces(page: Page, address: str) -> None:
    """It is cut where all models have a boundary, between characters and their marks."""
    text = "ภาษาไทยที่ไม่มีช่องว่าง" * 450
    page.goto(address)
    type_text(page, text)
    for model in (0, 1):
        blocks = page.locator(f'.block[data-model="{model}"]')
        assert blocks.count() > 10
        assert text.startswith("".join(blocks.all_text_contents()[:4]))
        assert not any(unicodedata.category(block[0]) == "Mn" for block in blocks.all_text_contents() if block)


def test_spaces_and_control_characters(page: Page, address: str) -> None:
    page.goto(address)
    type_text(page, "a b\tc\x07\u202ed")
    assert "\\u202e" in "".join(pieces(page)), "a direction would reorder the text, so it is always shown"
    assert "a b\tc\x07" in "".join(pieces(page))
    page.locator("#spaces").check()
    assert "".join(pieces(page)).replace("\u200b", "") == "a·b→\tc\\x07\\u202ed"
    assert page.locator('.block[data-model="1"] [aria-label="tab"]').count() == 1, "whitespace has a spoken name"
    page.locator("#dim").check()
    expect(page.locator(".columns.dim")).to_be_visible()


def test_text_is_never_markup(page: Page, address: str) -> None:
    text = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">&lt;"
    page.goto(address)
    type_text(page, text)
    assert "".join(pieces(page)) == "".join(pieces(page, 1)) == text
    page.locator(".piece").first.click()
    assert page.locator("main script, main img, #panel script, #panel img").count() == 0
    assert page.title() == "batchbpe"


def test_hovering_and_the_merge_tree(page: Page, address: str) -> None:
    page.goto(address)
    texts = {token: TWO.vocab[token].decode("utf-8", "ignore") for token in TWO.merges.values()}
    merged = max(texts, key=lambda token: len(texts[token]))
    text = texts[merged]
    type_text(page, text)
    piece = page.locator('.block[data-model="1"] .piece')
    assert piece.all_text_contents() == [text]
    piece.hover()
    tip = page.locator("#tip")
    expect(tip).to_contain_text(f"id {merged} · merge · rank {merged - 256}")
    expect(tip).to_contain_text(TWO.vocab[merged].hex(" ").upper())
    expect(tip).to_contain_text("1×")
    assert page.locator('.block[data-model="0"] .linked').count() > 0
    piece.click()
    panel = page.locator("#panel")
    tree = TWO.merge_tree(merged)
    expect(panel.locator(".tree summary").first).to_contain_text(str(merged))
    for part in tree.parts:
        expect(panel.locator(".facts button", has_text=part.value.decode().replace(" ", "·")).first).to_be_visible()
    panel.locator(".facts button").first.click()
    expect(panel.locator(".facts dd").first).to_have_text(str(tree.parts[0].token))
    expect(panel.locator("h3", has_text="Part of")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_part_of_a_character(page: Page, address: str) -> None:
    page.goto(address)
    type_text(page, "☃")
    page.locator('.block[data-model="1"] .piece').click()
    expect(page.locator("#panel")).to_contain_text("3 tokens share this character")
    page.locator("#panel .chips button").nth(1).click()
    expect(page.locator("#panel .facts dd").first).to_have_text(str("☃".encode()[1]))
    page.locator("#panel").press("Escape")
    type_text(page, "👩‍👩‍👧")  # several of its tokens are equal
    page.locator('.block[data-model="1"] .piece').click()
    expect(page.locator('#panel [aria-pressed="true"]')).to_have_count(1)


def test_the_panel_follows_the_text_and_the_model(page: Page, address: str) -> None:
    page.goto(f"{address}#text=x")
    page.locator('.block[data-model="1"] .piece').click()
    panel = page.locator("#panel")
    expect(panel).to_contain_text("1 in the text")
    type_text(page, "xx")
    expect(panel).to_contain_text("2 in the text")
    covered = "() => document.querySelector('main').getBoundingClientRect().right > innerWidth - 400"
    assert not page.evaluate(covered)
    page.locator("#text").press("Escape")
    expect(panel).to_be_hidden()
    assert page.evaluate("document.activeElement.id") == "text"
    page.locator("#tab-vocabulary").click()
    page.locator(".space .row").first.click()
    expect(panel.locator(".facts")).to_be_visible()
    page.locator("select").first.select_option("1")
    expect(panel).to_be_hidden()
    assert "token=" not in page.url


def test_vocabulary(page: Page, address: str) -> None:
    page.goto(f"{address}#view=vocabulary&model=1")
    status = page.locator(".list .note")
    expect(status).to_have_text("270 tokens")
    page.locator("#search").fill("t")
    expected = [token for token, value in TWO.vocab.items() if b"t" in value]
    expect(status).to_have_text(f"{len(expected)} tokens")
    assert page.locator(".space .row > :first-child").all_text_contents() == list(map(str, expected))
    page.locator("#search").fill("#269")
    expect(status).to_have_text("1 token")
    page.locator("#search").fill("")
    page.locator("#kind").select_option("merge")
    expect(status).to_have_text("14 tokens")
    page.get_by_role("button", name="bytes").click()
    longest = max(len(TWO.vocab[token]) for token in TWO.merges.values())
    expect(page.locator(".space .row").first.locator(".number").nth(1)).to_have_text(str(longest))
    page.locator("#kind").select_option("")
    page.locator("#unused").select_option("text")
    expect(status).to_have_text(f"{270 - len({*TWO.encode(SAMPLE)})} tokens")
    page.locator(".space .row").first.click()
    expect(page.locator("#panel .facts")).to_contain_text("0 in the text")


def test_long_lists_have_few_rows(page: Page, address: str) -> None:
    page.goto(f"{address}#view=vocabulary")
    expect(page.locator(".list .note")).to_have_text("600 tokens")
    page.locator(".table").evaluate("table => table.scrollTop = table.scrollHeight")
    expect(page.locator(".space .row").last).to_contain_text("<|endoftext|>")
    assert page.locator(".space .row").count() < 60


def test_scrubbing_through_training(page: Page, address: str) -> None:
    page.goto(f"{address}#view=training&text=to+be,+or+not+to+be")
    slider = page.locator("#step")
    batches = ONE.model.training["batches"]["size"]
    expect(slider).to_have_attribute("max", str(len(batches)))
    assert page.locator(".chart").count() == 4
    for step in (0, len(batches) // 2, len(batches)):
        slider.fill(str(step))
        merges = dict(islice(ONE.merges.items(), sum(batches[:step])))
        then = Tokenizer(Model(ONE.pattern, merges, ONE.model.stop_words))
        ids = then.encode("to be, or not to be")
        expect(page.locator(".summary dl dd").first).to_have_text(str(len(ids)))
        assert pieces(page) == [then.decode([token]) for token in ids]
        expect(page.locator(".readout")).to_contain_text(f"{len(merges):,} of {len(ONE.merges):,} merges")
    slider.press("Home")
    expect(page.locator(".readout")).to_contain_text(f"0 of {len(ONE.merges):,} merges")
    slider.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text(f"{batches[0]} merged of")
    page.locator("#play").click()
    expect(slider).to_have_value(str(len(batches)))
    page.locator("#play").click()
    page.locator("select").select_option("1")
    expect(page.locator("#play")).to_have_text("Play")
    expect(page.locator(".readout")).to_contain_text(f"{len(TWO.merges)} of {len(TWO.merges)} merges")


def test_phrases_and_data(page: Page, tmp_path: Path) -> None:
    phrases = Tokenizer(Model(r" ?\w+", {(32, 98): 256}, phrases={(97, 256): 257}))
    space = Workspace({"phrases": phrases}, text="a b")
    (tmp_path / "data.txt").write_text("b")
    space.count_data([str(tmp_path)])
    with serving(space) as address:
        page.goto(f"{address}#view=training")
        readout, slider = page.locator(".readout"), page.locator("#step")
        for step, merges, found, expected in [(0, 0, 0, "a| |b"), (1, 1, 0, "a| b"), (2, 1, 1, "a b")]:
            slider.fill(str(step))
            expect(readout).to_have_text(f"{merges} of 1 merges · {found} of 1 phrase")
            expect(page.locator(".piece")).to_have_text(expected.split("|"), use_inner_text=False)
        page.goto(f"{address}#view=vocabulary")
        expect(page.locator(".list .note")).to_have_text("258 tokens")
        heading = page.locator('[data-sort="count"]')
        expect(heading).to_have_text("in data")
        page.locator("#unused").select_option("text")
        expect(heading).to_have_text("in text")


def test_counts(page: Page, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page.goto(f"{address}#view=counts")
    chunk, count = COUNTS.most_common(1)[0]
    row = page.locator(".space .row").first
    expect(row).to_contain_text(chunk.replace(" ", "·"))
    expect(row.locator(".count")).to_have_text(str(count))
    assert page.locator(".chart path").get_attribute("d")
    page.locator("#chunk").fill("quest")
    expect(page.locator(".list .note")).to_have_text("1 chunk")
    expect(row).to_contain_text("·question")
    monkeypatch.setattr(api, "MAX_FOUND", 2)
    page.locator("#chunk").fill("o")
    expect(page.locator(".list .note")).to_have_text("the first 2 chunks")


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


def test_a_megabyte(page: Page, address: str, tmp_path: Path) -> None:
    """Only what is visible is drawn. The same text stays side by side."""
    text = TEXT * (1_000_000 // len(TEXT.encode()) + 1) + "\nthe very end"
    (tmp_path / "long.txt").write_text(text, encoding="utf-8", newline="")
    page.goto(address)
    page.locator("#file").set_input_files(tmp_path / "long.txt")
    expect(page.locator("#text")).to_have_attribute(
        "placeholder", re.compile(f"^The text has {len(text):,} characters")
    )
    expect(page.locator(".summary dl dd").first).to_have_text(f"{len(ONE.encode(text)):,}")
    assert 0 < page.locator(".piece").count() < 20_000
    # Rows above change their height when they are filled, so that the end moves.
    page.wait_for_function("""() => {
        scrollTo(0, document.body.scrollHeight);
        return document.querySelector(".aligned:last-child").textContent;
    }""")
    last = page.locator(".aligned").last
    expect(last.locator(".block").last).to_contain_text("the very end")
    expect(last.locator(".block").first).to_contain_text("the very end")
    assert 0 < page.locator(".piece").count() < 20_000
    page.locator("#text").fill("short")
    expect(page.locator(".summary dl dd").first).to_have_text(str(len(ONE.encode("short"))))


def test_shortened_answers(page: Page, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that something is missing, and still shows the sizes of all of it."""
    monkeypatch.setattr(api, "MAX_TOKENS", 30)
    monkeypatch.setattr(api, "MAX_BYTES", 2)
    page.goto(address)
    type_text(page, "to be or not to be " * 50)
    expect(page.locator(".shortened")).to_contain_text("Shortened: only the first")
    assert "".join(pieces(page)) == "".join(pieces(page, 1)) != "" and len(pieces(page)) + len(pieces(page, 1)) <= 30
    page.locator("#tab-vocabulary").click()
    page.locator("#search").fill("#" + str(max(ONE.merges.values(), key=lambda token: len(ONE.vocab[token]))))
    expect(page.locator(".list .note")).to_have_text("1 token")
    row = page.locator(".space .row")
    expect(row.locator(".chip")).to_have_text(re.compile("…$"))
    expect(row.locator(".hex")).to_have_text(re.compile("^[0-9A-F]{2}( [0-9A-F]{2})?…$"))
    expect(row.locator(".number").nth(1)).to_have_text(str(max(len(ONE.vocab[token]) for token in ONE.merges.values())))


def test_a_narrow_window(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 420, "height": 800})
    for view in ("compare", "vocabulary", "training", "counts"):
        page.goto(f"{address}#view={view}")
        page.reload()
        expect(page.locator(".piece, .space .row").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 420, view
    scale = page.locator(".chart").evaluate(
        "chart => chart.getBoundingClientRect().width / chart.viewBox.baseVal.width"
    )
    assert scale > 0.99, "labels keep their size"


def test_other_sites_cannot_read(failing_page: Page, address: str) -> None:
    page = failing_page
    page.route("http://evil.example/", lambda route: route.fulfill(body="<!doctype html>"))
    page.goto("http://evil.example/")
    script = "url => fetch(url).then(answer => answer.text()).catch(error => 'refused')"
    assert page.evaluate(script, f"{address}api/workspace") == "refused"


def test_a_static_page(page: Page, tmp_path: Path) -> None:
    text = "to be </script><script>document.title = 'hacked'</script> 日本"
    static_page.write(Workspace({"one": ONE, "two": TWO}, text=text), tmp_path / "page.html")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())
    assert (tokens(page, 0), tokens(page, 1)) == (len(ONE.encode(text)), len(TWO.encode(text)))
    assert "".join(pieces(page)) == text
    page.locator(".piece").first.hover()
    expect(page.locator("#tip")).to_contain_text("id ")
    page.locator(".piece").first.click()
    expect(page.locator("#panel .facts")).to_be_visible()
    page.locator("#theme").click()
    page.locator("#dim").check()
    assert page.title() == "batchbpe" and page.locator("#text").count() == 0
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    page.goto((tmp_path / "page.html").as_uri() + "#text=other&token=0-999999")
    page.reload()
    expect(page.locator("#failure")).to_have_text("The text does not contain the token 0-999999.")
    assert "".join(pieces(page)) == text


@pytest.mark.filterwarnings("ignore:the pattern does not match")
def test_text_that_a_pattern_drops(page: Page, tmp_path: Path) -> None:
    words = Tokenizer(Model(split=r"\w+", merges={(97, 98): 256}))
    text = "– ab, ab c!\n" * 200
    static_page.write(Workspace({"words": words, "one": ONE}, text=text), tmp_path / "page.html")
    page.goto((tmp_path / "page.html").as_uri())
    row = page.locator('.block[data-model="0"]').first.locator("span").all_text_contents()
    assert row[:7] == ["– ", "ab", ", ", "ab", " ", "c", "!\n– "]
    expect(page.locator(".legend")).to_contain_text("dropped by the pattern", use_inner_text=True)
    assert page.locator('.block[data-model="0"] .dropped').all_text_contents()[:2] == ["– ", ", "]
    blocks = page.locator('.block[data-model="0"]').all_text_contents()
    assert len(blocks) > 1 and text.startswith("".join(blocks[:3]))
