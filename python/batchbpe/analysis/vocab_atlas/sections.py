"""The sections of the page: what each shows of the content of the JSON file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import details
from .markup import Cell, Column, Vocabulary, between, decimal, integer, meanings, percent, table, text

Content = Mapping[str, Any]


def _failures(content: Content) -> Iterator[str]:
    if content["failures"]:
        rows = "".join(f"<li><b>{text(each['name'])}</b> {text(each['error'])}</li>" for each in content["failures"])
        yield f'<ul class="failures">{rows}</ul>'


def _columns(content: Content, columns: list[Column], **options: Any) -> str:
    """Render a table with a row for each vocabulary."""
    rows = [
        (f'<a href="#v{index}">{text(each["name"])}</a>', [column.cell(each) for column in columns])
        for index, each in enumerate(content["vocabularies"])
    ]
    header = [("vocabulary", ""), *((column.label, column.meaning) for column in columns)]
    return table(rows, header, **options)


def _number_of(kind: str) -> Callable[[Vocabulary], Cell]:
    return lambda each: integer(each[kind]["number"])


def _overview(content: Content) -> Iterator[str]:
    columns = [
        Column("split", "How text is split: the name of the pattern, and what happens before.", _split),
        Column("tokens", "Tokens of all kinds.", lambda each: integer(each["numbers"]["tokens"])),
        Column(
            "special",
            "Special and added tokens, which are found before text is split.",
            lambda each: integer(each["numbers"]["special tokens"] + each["numbers"]["added tokens"]),
        ),
        Column("mean length", "Mean length of the ordinary tokens in bytes.", lambda each: decimal(each["mean_bytes"])),
        Column(
            "longest",
            "Length of the longest token in bytes.",
            lambda each: integer(each["longest"][0]["bytes"] if each["longest"] else None),
        ),
        Column(
            "unreachable",
            "Tokens whose own text is encoded to other tokens; of invalid UTF-8, whose bytes as one chunk are.",
            _number_of("unreachable"),
        ),
        Column(
            "partial UTF-8",
            "Tokens of several bytes that start or end inside a character.",
            _number_of("partial_utf8"),
        ),
        Column(
            "missing bytes",
            "Bytes that UTF-8 text can contain and that are not tokens: text with them cannot be encoded.",
            lambda each: integer(len(each["missing_utf8_bytes"])),
        ),
        Column("duplicates", "Tokens with the same bytes as another token.", _number_of("duplicates")),
    ]
    if content["text"]:
        columns[6:6] = [
            Column(
                "residues",
                "Tokens that encoding the text makes, but merges further more than nine times out of ten.",
                _number_of("residues"),
            ),
            Column("unused", "Tokens that the text does not contain.", _number_of("unused")),
        ]
    yield _columns(content, columns) + meanings(columns)


def _split(each: Vocabulary) -> Cell:
    name = each["split"]
    return Cell(name, name if len(name) <= 24 else f"{name[:23]}…", title=name)


def _three_digits(value: float | None) -> Cell:
    return decimal(value, 3)


_METRICS: dict[str, tuple[str, Callable[[Any], Cell]]] = {
    "tokens": ("Number of tokens in the encoded text.", integer),
    "change": ("Change in the number of tokens relative to the first vocabulary, in percent.", decimal),
    "bytes_per_token": ("Compression; higher is better.", decimal),
    "tokens_per_word": ("Fertility; words are separated by whitespace.", decimal),
    "single_token_word_rate": ("Fraction of words that are one token after a space.", percent),
    "vocabulary_used": ("Number of different tokens in the text.", integer),
    "renyi_efficiency": ("Rényi entropy of order 2.5 divided by its maximum; higher is more even.", _three_digits),
    "dropped": ("Bytes that the pattern does not match, and that encoding drops.", integer),
}
_LABELS = {
    "change": "change, %",
    "bytes_per_token": "bytes per token",
    "tokens_per_word": "tokens per word",
    "single_token_word_rate": "single-token words",
    "vocabulary_used": "vocabulary used",
    "renyi_efficiency": "Rényi efficiency",
    "dropped": "bytes dropped",
}


def _on_text(content: Content) -> Iterator[str]:
    if not content["text"]:
        return
    is_lossy = any(each["metrics"]["dropped"] for each in content["vocabularies"])

    def column(name: str) -> Column:
        meaning, show = _METRICS[name]
        return Column(_LABELS.get(name, name), meaning, lambda each: show(each["metrics"][name]))

    columns = [column(name) for name in _METRICS if is_lossy or name != "dropped"]
    yield _columns(content, columns) + meanings(columns)


def _by_group(content: Content) -> Iterator[str]:
    if not content["text"] or not (groups := content["text"]["groups"]):
        return
    unit, cost, names = groups["unit"], groups["cost"], list(groups["sizes"])
    vocabularies = content["vocabularies"]
    label = "Tokens" if unit == "text" else f"Tokens per {unit}"
    yield f"<p>{label}. In each column, a stronger color is a vocabulary that needs more tokens.</p>"
    yield _columns(content, [_cost_column(vocabularies, name, cost) for name in names], tint="cost")
    if groups["empty"]:
        yield f"<p>Without text, and left out: {text(', '.join(groups['empty']))}.</p>"
    if groups["reference"] is None:
        return
    known = [each["groups"][name]["parity"] for each in vocabularies for name in names]
    most = max((value for value in known if value is not None), default=1.0)
    reference = text(groups["reference"])
    yield f"<p>The same relative to <b>{reference}</b> with the same vocabulary; {reference} is 1.</p>"

    def parity(name: str) -> Column:
        def cell(each: Vocabulary) -> Cell:
            value = each["groups"][name]["parity"]
            return decimal(value, heat=between(value, 1, max(most, 2), logarithmic=True))

        return Column(name, "", cell)

    gini = Column(
        "Gini",
        "Gini coefficient of the costs of the groups: 0 if text costs the same in all of them.",
        lambda each: decimal(each["gini"], 3),
    )
    yield _columns(content, [*map(parity, names), gini], tint="parity")


def _cost_column(vocabularies: list[Vocabulary], name: str, cost: str) -> Column:
    known = [each["groups"][name][cost] for each in vocabularies]
    least = min((value for value in known if value is not None), default=0)
    most = max([2 * least, *(value for value in known if value is not None)])  # similar costs get similar colors

    def cell(each: Vocabulary) -> Cell:
        value = each["groups"][name][cost]
        heat = between(value, least, most, logarithmic=True)
        if cost == "tokens_per_text":
            return integer(each["groups"][name]["tokens"], heat)
        return decimal(value, 3, heat)

    return Column(name, "", cell)


def _contents(content: Content) -> Iterator[str]:
    vocabularies = content["vocabularies"]
    totals = [sum(each["contents"].values()) for each in vocabularies]
    shares = {
        name: sum(each["contents"][name] / max(1, total) for each, total in zip(vocabularies, totals, strict=True))
        for name in vocabularies[0]["contents"]
    }
    names = sorted((name for name, share in shares.items() if share), key=lambda name: -shares[name])

    def column(name: str) -> Column:
        def share(each: Vocabulary) -> float:
            part: float = each["contents"][name] / max(1, sum(each["contents"].values()))
            return part

        def cell(each: Vocabulary) -> Cell:
            number, fraction = each["contents"][name], share(each)
            shown = "" if not number else "·" if fraction < 0.0005 else f"{100 * fraction:.1f}"
            return Cell(number, shown, fraction, f"{number:,} tokens")

        return Column(name, "", cell)

    yield (
        "<p>Percent of the ordinary tokens (without special and added tokens), by the script of the first letter. "
        "Tokens without letters are digits, only whitespace, symbols, or parts of characters, including single bytes. "
        "A stronger color is a larger fraction.</p>"
    )
    yield _columns(content, list(map(column, names)), tint="contents", tall=True)


def _overlap(content: Content) -> Iterator[str]:
    vocabularies, shared = content["vocabularies"], content["shared"]
    if len(vocabularies) < 2:
        return
    yield (
        "<p>Percent of the different ordinary tokens of the <b>row</b> whose bytes are also a token of the "
        "<b>column</b>. The matrix is not symmetric: a small vocabulary can be contained in a large one.</p>"
    )
    rows = []
    for index, each in enumerate(vocabularies):
        cells = []
        for other, number in enumerate(shared[index]):
            share = number / max(1, shared[index][index])
            title = f"{number:,} tokens of {each['name']} in {vocabularies[other]['name']}"
            shown = "100" if share == 1 else ">99" if share > 0.995 else f"{100 * share:.0f}"
            cells.append(Cell(number, shown, None if other == index else share, title))
        rows.append((f'<a href="#v{index}">{text(each["name"])}</a>', cells))
    header = [("vocabulary", ""), *((each["name"], "") for each in vocabularies)]
    yield table(rows, header, tint="overlap", tall=True)


def _engines(content: Content) -> Iterator[str]:
    yield (
        "<p>Whether batchbpe can export the vocabulary so that the engine gives the same ids: found by trying the "
        "export, not by running the engine. <code>batchbpe verify</code> runs engines and compares their ids. "
        "● exact, ◐ with a condition, ○ not exact; the reasons are with each vocabulary below.</p>"
    )

    def column(engine: str) -> Column:
        def cell(each: Vocabulary) -> Cell:
            export = each["exports"][engine]
            sign = "○" if not export["exact"] else "◐" if export["reason"] else "●"
            heat = (0.5 if export["reason"] else 1) * export["exact"]
            return Cell(int(export["exact"]), sign, heat, export["reason"])

        return Column(engine, "", cell)

    yield _columns(content, list(map(column, content["vocabularies"][0]["exports"])), tint="engines")


def _each(content: Content) -> Iterator[str]:
    for index, each in enumerate(content["vocabularies"]):
        yield details.details(index, each)


SECTIONS: tuple[tuple[str, str, Callable[[Content], Iterator[str]]], ...] = (
    ("failures", "Not loaded", _failures),
    ("overview", "Overview", _overview),
    ("text", "On the text", _on_text),
    ("groups", "Tokens by group", _by_group),
    ("contents", "Contents", _contents),
    ("overlap", "Overlap", _overlap),
    ("engines", "Engines", _engines),
    ("each", "Each vocabulary", _each),
)
