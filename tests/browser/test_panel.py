"""The details of a token, in a browser."""

from playwright.sync_api import Page, expect
from viewer_page import TWO, type_text


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


def test_the_panel_names_the_model(page: Page, address: str) -> None:
    page.goto(f"{address}#text=x")
    for model, name in enumerate(("one", "two")):
        page.locator(f'.block[data-model="{model}"] .piece').click()
        expect(page.locator("#panel .model")).to_have_text(f"Token of {name}")
        expect(page.get_by_role("complementary", name=f"Token of {name}")).to_be_focused()
