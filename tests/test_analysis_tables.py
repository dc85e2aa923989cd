"""What `repr` and a notebook show of results: tables, and never pages of raw data."""

import pickle
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from typing import Any

from helpers import examples
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt  # a dependency of rich

from batchbpe import BatchTokenizer, ChunkCounts, Mixture, PairTable, Tokenizer, evaluate, policies
from batchbpe.analysis import (
    atlas,
    audit,
    batching_signs,
    bound,
    changes,
    find_tokens,
    inspect_counts,
    inspect_model,
    ngram_bits,
)
from batchbpe.analysis.tables import markdown_table
from batchbpe.analysis.tree_html import MAX_LINES
from batchbpe.model import Model
from batchbpe.verification.results import Result, Verification

WORDS = [f"{first}{last}" for first in ("to", "be", "or", "not", "sein") for last in ("", "ing", "<b>", "ed", " &")]
TEXTS = [" ".join(WORDS[:number]) * 9 for number in range(5, len(WORDS))]


class Balance(HTMLParser):
    """Checks that elements are closed in order; those of tables need no end tag in HTML."""

    optional = ("tr", "td", "th")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.depth = 0
        self.feed(html)
        assert not self.stack

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.optional:
            self.stack.append(tag)
            self.depth = max(self.depth, self.stack.count("details"))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


class Recorded:
    """A policy that keeps what it receives."""

    def __call__(self, candidates: policies.Candidates) -> policies.Candidates:
        self.candidates = candidates
        return policies.continue_search(candidates)

    def revise(self, batch: policies.MergedBatch) -> None:
        self.batch = batch


def results() -> Iterator[Any]:
    counts, policy = ChunkCounts.count(texts=TEXTS), Recorded()
    tokenizer = Tokenizer.train(counts, 290, special_tokens=[f"<{number}>" for number in range(30)], policy=policy)
    small, paper = Tokenizer.train(counts, 257), BatchTokenizer()
    paper.train(counts, 257)
    table = evaluate({"one": tokenizer, "two": small}, texts={"a": TEXTS[0], "b": TEXTS[1]}, audit=True)
    yield from [tokenizer, paper, tokenizer.model, counts, PairTable(counts), policy.candidates, policy.batch]
    yield from [table, table[0], table.groups, table.audits["one"], audit(tokenizer), atlas(tokenizer, data=TEXTS)]
    yield from [inspect_model(tokenizer), inspect_counts(counts), find_tokens(tokenizer, longest=3)]
    yield from [bound(small, counts, max_steps=1), batching_signs(tokenizer), ngram_bits(small, TEXTS[1:], TEXTS[:1])]
    yield from [tokenizer.id_map(small), changes(small, tokenizer, texts=TEXTS), tokenizer.view(WORDS[2])]
    yield from [tokenizer.compare(WORDS[2], small), tokenizer.merge_tree(258), tokenizer.merges, policy.batch.vocab]
    yield Mixture({"a": TEXTS, "b": TEXTS}, {"a": 0.5, "b": 0.5})


def test_results_are_readable() -> None:
    displayed = set()
    for result in results():
        name, text = type(result).__name__, repr(result)
        assert len(text) < 2500 and max(map(len, text.splitlines())) < 400, name
        assert not re.search(r"array\(|object at 0x", text), name
        if hasattr(result, "_repr_html_"):
            displayed.add(name)
            html = result._repr_html_()
            Balance(html)
            assert "<b>" not in re.sub(r"<b>batchbpe[^<]*</b>", "", html), f"{name}: names and text are escaped"
    assert len(displayed) == 21


def test_groups_are_rows_sorted_by_cost_and_models_are_columns() -> None:
    one, two = Tokenizer.train("to be or not to be", 264), Tokenizer.train("sein oder nicht sein", 264)
    result = evaluate({"one": one, "a|b": two}, {"en": "to be", "de": "nicht sein", "fr": "ou pas"}, parity="de")
    cost, parity, tokens, _ = (part.splitlines() for part in result.to_markdown().split("\n\n"))
    assert cost[:2] == ["| tokens per character | one | a\\|b |", "|---|---:|---:|"]
    costs = {group: f"{number:.4f}" for group, number in result.groups.tokenizers["one"].costs.items()}
    rows = [line.strip("| ").split(" | ") for line in cost[2:]]
    assert [row[:2] for row in rows[:-1]] == [*map(list, sorted(costs.items(), key=lambda each: each[1]))]
    assert [row[0] for row in rows] == ["en", "de", "fr", "Gini coefficient"]
    assert all(re.fullmatch(r"\d\.\d{4}", cell) for row in rows for cell in row[1:])
    assert parity[3] == "| de | 1.0000 | 1.0000 |" and tokens[0].startswith("| tokens |")
    shown = [line.split() for line in repr(result).splitlines()[1:4]]
    assert shown == rows[:3]
    assert re.findall(r"<tr><td>(\w\w)<", result._repr_html_()) == ["en", "de", "fr"] * 3


@examples(300)
@given(
    st.lists(st.text(st.sampled_from("ab_*`\\\\|<>&;!#[]()~$ "), max_size=12).map(str.strip), min_size=1, max_size=3)
)
def test_hyp_text_is_never_markup_in_markdown(cells: list[str]) -> None:
    rows = [["1", *cells], ["2", *reversed(cells)]]
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown_table((["n", *cells], rows)))
    shown = [re.findall(r"(?s)<t[hd].*?>(.*?)</t", row) for row in page.split("<tr>")[1:]]
    assert [[unescape(cell) for cell in row] for row in shown] == [["n", *cells], *rows]


def test_a_notebook_shows_the_cells_of_the_text() -> None:
    """Numbers are aligned in both, and spaces in tokens are kept."""
    found = audit(Tokenizer.train("a  a  a", 258, pattern=".+"))
    html = found._repr_html_()
    assert "<th class=number>tokens" in html and "white-space:pre-wrap" in html
    assert [row.split("<td")[1] for row in html.split("<tr>")[2:]] == [
        ">unreachable",
        ">duplicates",
        ">partial UTF-8",
        ">longest",
    ]
    assert "unused" not in repr(found), "no frequencies were given"


def test_an_audit_can_be_pickled_and_displayed_again() -> None:
    found = audit(Tokenizer.train("to be or not to be", 258))
    again = pickle.loads(pickle.dumps(found))
    assert again == found and repr(again) == repr(found)


def test_candidates_show_the_first_pairs_and_how_many_there_are() -> None:
    policy = Recorded()
    Tokenizer.train(texts=TEXTS, vocab_size=260, policy=policy)
    lines = repr(policy.candidates.more(12)).splitlines()
    assert lines[0].split() == ["first", "last", "count"]
    assert len(lines) == 12 and lines[-1] == "… 2 more pairs"
    first, last = policy.candidates.more(1).tuples[0]
    assert lines[1].startswith(f"{first} ") and f"  {last} " in lines[1]
    token, *rest = repr(policy.batch[:1]).splitlines()[1].split()
    assert (int(token), int(rest[0])) == (policy.batch.token[0], policy.batch.first[0])


def test_a_merge_tree_is_nested_html() -> None:
    tree = Tokenizer.train("aaabdaaabac", 259).merge_tree(258)
    html = tree._repr_html_()
    assert Balance(html).depth == 2
    assert re.findall(r">([^<>]+)</span> (\d+)", html) == [
        ("&#x27;aaab&#x27;", "258"),
        ("&#x27;aa&#x27;", "256"),
        ("&#x27;a&#x27;", "97"),
        ("&#x27;a&#x27;", "97"),
        ("&#x27;ab&#x27;", "257"),
        ("&#x27;a&#x27;", "97"),
        ("&#x27;b&#x27;", "98"),
    ]


def test_a_merge_tree_is_bounded() -> None:
    doubling = {(97, 97): 256} | {(token, token): token + 1 for token in range(256, 279)}
    chain = {(97, 97): 256} | {(token, 97): token + 1 for token in range(256, 1255)}
    for merges, token in ((doubling, 279), (chain, 1255)):
        html = Model(split="a+", merges=merges).merge_tree(token)._repr_html_()
        Balance(html)
        assert html.count("</span>") <= MAX_LINES and "more tokens" in html


def test_a_verification_shows_what_each_engine_gave() -> None:
    results = [Result("tiktoken", "0.14.0", "a.tiktoken", "equal", texts=1234, tokens=9)]
    text = repr(Verification("mine.model", "0.1.0", 600, 600, results, ["config.json is too small"]))
    assert re.search(r"\ntiktoken +0\.14\.0 +a\.tiktoken +1,234 +9 +equal\n", text)
    assert text.splitlines()[-2].split(maxsplit=1) == ["problem", "config.json is too small"]
    assert text.splitlines()[-1].startswith("conclusion  The files do not fit together")


def test_ipython_draws_a_merge_tree() -> None:
    tree = Tokenizer.train("aaabdaaabac", 257).merge_tree(256)
    shown: list[str] = []
    tree._repr_pretty_(type("Printer", (), {"text": lambda self, text: shown.append(text)})(), False)
    assert shown == ["256 'aa'\n├─ 97 'a'\n└─ 97 'a'"]
