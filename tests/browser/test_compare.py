"""The view that compares the tokens of a text, and the page without a server, in a browser."""

import json
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from helpers import TEXT
from playwright.sync_api import Page, expect
from viewer_page import ONE, TWO, pieces, serving, tokens, type_text

from batchbpe import Model, Tokenizer
from batchbpe.viewer import static_page
from batchbpe.viewer.workspace import SAMPLE, Workspace


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


def test_ids_can_be_copied(page: Page, address: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    text = "to be, or not to be"
    page.goto(address)
    type_text(page, text)
    fold = page.locator(".ids").nth(1)
    expect(fold.locator(".id-list")).to_be_hidden()
    fold.locator("summary").click()
    expect(fold.get_by_role("group", name="Ids of two")).to_have_text(", ".join(map(str, TWO.encode(text))))
    fold.get_by_role("button", name="Copy the ids of two").press("Enter")
    expect(fold.get_by_role("status")).to_have_text(f"copied {len(TWO.encode(text))} ids")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == TWO.encode(text)
    type_text(page, text * 900)
    number = len(TWO.encode(text * 900))
    expect(fold.locator(".id-list")).to_have_text(re.compile(rf", \d+ … and {number - 2000:,} more$"))
    # Without the clipboard, which only pages of this machine have, the text is copied as a selection.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    fold.locator("button").click()
    expect(fold.get_by_role("status")).to_have_text(f"copied {number:,} ids")
    page.evaluate("document.execCommand = () => false")
    fold.locator("button").click()
    expect(fold.get_by_role("status")).to_have_text("The browser refused to copy.")
    page.evaluate("delete navigator.clipboard, delete document.execCommand")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == TWO.encode(text * 900)
    type_text(page, "")
    expect(page.locator(".ids")).to_have_count(0)


def test_differences_are_underlined_between_two_models_or_on_demand(page: Page, address: str) -> None:
    underline = "piece => getComputedStyle(piece).backgroundImage !== 'none'"

    def check(*, legend: bool) -> None:
        expect(page.locator(".block .differs").first).to_be_visible()
        assert page.locator("#underline").is_checked() == legend == page.locator(".legend .differs").is_visible()
        assert set(page.locator(".block .differs").evaluate_all(f"all => all.map({underline})")) == {legend}

    page.goto(f"{address}#text=to+be,+or")
    check(legend=True)
    page.locator("#underline").uncheck()
    check(legend=False)
    page.reload()
    check(legend=False)
    with serving(Workspace({"one": ONE, "two": TWO, "three": ONE}, text="to be, or")) as three:
        page.goto(three)
        check(legend=False)
        page.locator("#underline").check()
        check(legend=True)
    with serving(Workspace({"one": ONE}, text="to be, or")) as one:
        page.goto(one)
        expect(page.locator(".piece").first).to_be_visible()
        assert page.locator("#underline").count() == 0 and page.locator(".legend .differs").is_hidden()


def test_text_is_never_markup(page: Page, address: str) -> None:
    text = "<script>document.title = 'hacked'</script><img src=x onerror=\"document.title='hacked'\">&lt;"
    page.goto(address)
    type_text(page, text)
    assert "".join(pieces(page)) == "".join(pieces(page, 1)) == text
    page.locator(".piece").first.click()
    assert page.locator("main script, main img, #panel script, #panel img").count() == 0
    assert page.title() == "batchbpe"


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
    expect(page.locator("#panel .model")).to_have_text("Token of one")
    page.locator(".ids summary").first.click()
    expect(page.locator(".id-list").first).to_have_text(", ".join(map(str, ONE.encode(text, "all"))))
    page.locator("#theme").click()
    page.locator("#dim").check()
    page.locator("#underline").uncheck()
    assert page.locator("[role=tab]").count() == 1
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
