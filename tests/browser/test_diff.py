"""The view that compares two vocabularies, in a browser."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from viewer_page import ONE, TWO, serving

from batchbpe import Model, Tokenizer
from batchbpe.viewer import api
from batchbpe.viewer.workspace import Workspace

MAP = TWO.id_map(ONE)


def shown(page: Page) -> list[list[str]]:
    return [row.locator("[role=gridcell]").all_text_contents() for row in page.locator(".space .row").all()]


def test_tokens_of_one_model_only(page: Page, address: str) -> None:
    page.goto(f"{address}#view=diff")
    status, row = page.locator(".list .note"), page.locator(".space .row").first
    expect(status).to_have_text(f"{len(MAP.removed)} tokens")
    counts = [MAP.counts[change] for change in ("kept", "removed", "added", "moved")]
    assert page.locator(".stats dd").all_text_contents() == [str(count) for count in counts]
    assert page.locator(".stats dt").all_text_contents() == ["the same id", "only in one", "only in two", "another id"]
    first = int(MAP.removed[0])
    expect(row.locator(".number").first).to_have_text(str(first))
    parts = [TWO.vocab[part].decode().replace(" ", "·") for part in MAP.reverse.parts(first)]
    assert [text.replace("\u200b", "") for text in row.locator(".others .chip").all_text_contents()] == parts
    row.click()
    expect(page.locator("#panel .model")).to_have_text("Token of one")
    expect(page.locator("#panel .facts dd").first).to_have_text(str(first))
    page.get_by_role("button", name="Swap the models").click()
    expect(page.locator("#panel")).to_be_hidden()
    expect(page.locator(".stats dt").nth(1)).to_have_text("only in two")
    assert MAP.counts["added"] == 1
    expect(status).to_have_text("1 token")
    assert "token=" not in page.url


def test_tokens_with_another_id(page: Page, address: str) -> None:
    page.goto(f"{address}#view=diff")
    page.locator("#part").select_option("moved")
    status = page.locator(".list .note")
    moved = MAP.tokens[MAP.changes == "moved"].tolist()
    expect(status).to_have_text(f"{len(moved)} tokens")
    rows = [[row[0], row[4]] for row in shown(page)]
    assert rows == [[str(new), f"id {MAP.old_ids[new]}"] for new in moved[: len(rows)]] != []
    page.locator("#diff-search").fill(f"#{moved[-1]}")
    expect(status).to_have_text("1 token")
    page.reload()
    expect(status).to_have_text("1 token")
    expect(page.locator("#part")).to_have_value("moved")
    page.locator(".space .row").first.click()
    expect(page.locator("#panel .model")).to_have_text("Token of two")
    page.locator("#part").select_option("removed")
    expect(page.locator("#panel")).to_be_hidden()
    assert "token=" not in page.url


def test_the_first_list_is_not_empty(page: Page) -> None:
    longer = Tokenizer.train("aaabdaaabac", 259)
    with serving(Workspace({"short": Tokenizer.train("aaabdaaabac", 257), "long": longer})) as address:
        page.goto(f"{address}#view=diff")
        expect(page.locator("#part")).to_have_value("added")
        assert [row[0] for row in shown(page)] == ["257", "258"]


def test_the_diff_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}#view=diff")
    expect(page.locator(".list .note")).to_have_text(f"{len(MAP.removed)} tokens")
    table = page.get_by_role("grid", name="Different tokens")
    table.focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.locator("#panel .facts dd").first).to_have_text(str(MAP.removed[-1]))
    page.keyboard.press("Escape")
    expect(table).to_be_focused()
    page.get_by_role("button", name="bytes").press("Enter")
    expect(page.locator('[aria-sort="descending"]')).to_have_text("bytes")
    longest = max(len(ONE.vocab[token]) for token in MAP.removed.tolist())
    expect(page.locator(".space .row").first.locator(".number").nth(1)).to_have_text(str(longest))
    page.get_by_role("button", name="bytes").press("Enter")
    expect(page.locator('[aria-sort="ascending"]')).to_have_text("bytes")


def test_a_diff_needs_two_models(page: Page) -> None:
    with serving(Workspace({"one": ONE})) as address:
        page.goto(f"{address}#view=diff")
        expect(page.locator(".piece").first).to_be_visible()
        assert page.locator("#tab-diff").count() == 0


def test_a_token_that_many_replace(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "MAX_OTHERS", 3)
    long: Any = Model(r"a+", {(97, 97): 256, (256, 256): 257, (257, 257): 258})
    with serving(Workspace({"long": Tokenizer(long), "bytes": Tokenizer(Model(r"a+", {}))})) as address:
        page.goto(f"{address}#view=diff")
        expect(page.locator(".others").last).to_have_text("aaa and 5 more tokens")
