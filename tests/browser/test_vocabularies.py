"""The views of vocabularies, trainings and chunk counts, in a browser."""

import re
from itertools import islice
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from viewer_page import COUNTS, ONE, TWO, pieces, serving, type_text

from batchbpe import Model, Tokenizer
from batchbpe.viewer import api
from batchbpe.viewer.workspace import SAMPLE, Workspace


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


def test_shortened_answers(page: Page, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says that something is missing, and still shows the sizes of all of it."""
    monkeypatch.setattr(api, "MAX_TOKENS", 30)
    monkeypatch.setattr(api, "MAX_BYTES", 2)
    page.goto(address)
    type_text(page, "to be or not to be " * 50)
    expect(page.locator(".shortened")).to_contain_text("Shortened: only the first")
    assert "".join(pieces(page)) == "".join(pieces(page, 1)) != "" and len(pieces(page)) + len(pieces(page, 1)) <= 30
    fold, total = page.locator(".ids").first, len(ONE.encode("to be or not to be " * 50))
    fold.locator("summary").click()
    fold.locator("button").click()
    expect(fold.get_by_role("status")).to_have_text(re.compile(rf"^copied the first \d+ ids of {total}$"))
    page.locator("#tab-vocabulary").click()
    page.locator("#search").fill("#" + str(max(ONE.merges.values(), key=lambda token: len(ONE.vocab[token]))))
    expect(page.locator(".list .note")).to_have_text("1 token")
    row = page.locator(".space .row")
    expect(row.locator(".chip")).to_have_text(re.compile("…$"))
    expect(row.locator(".hex")).to_have_text(re.compile("^[0-9A-F]{2}( [0-9A-F]{2})?…$"))
    expect(row.locator(".number").nth(1)).to_have_text(str(max(len(ONE.vocab[token]) for token in ONE.merges.values())))
