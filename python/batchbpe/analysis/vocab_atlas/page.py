"""The page of an atlas: self-contained HTML. It needs no network, and a script only for sorting its tables.

Everything on it comes from the content of the JSON file, and all text is escaped: names and tokens may be hostile.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, OutputExistsError, opening, plural
from ...storage.atomic import replacing_all, writing
from ...util.progress import format_size
from . import details
from .content import FORMAT
from .markup import SHADES, Cell, Column, Vocabulary, between, decimal, integer, meanings, percent, table, text

Content = Mapping[str, Any]
FOLDER = Path(__file__).parent
_START = f'{{"format": "{FORMAT}"'
"""How the JSON file starts."""


def write(content: Content, path: Path) -> list[Path]:
    """Write the page and, next to it, the content as JSON. Both are replaced together."""
    beside = json_beside(path)
    texts = [page(content), json.dumps(content) + "\n"]
    with replacing_all([path, beside]) as temporaries:
        for temporary, target, each in zip(temporaries, (path, beside), texts, strict=True):
            with writing(target):
                temporary.write_text(each, encoding="utf-8")
    return [path, beside]


def json_beside(path: Path) -> Path:
    """Return the path of the JSON file next to a page. Raise if it is another file, which would be replaced.

    >>> json_beside(Path("atlas.html")).name
    'atlas.json'
    """
    if path.suffix not in (".html", ".htm"):
        raise ArgumentError("output", str(path), "must end with .html")
    beside = path.with_suffix(".json")
    if beside.exists():
        with opening(beside), beside.open("rb") as file:
            is_atlas = file.read(len(_START)) == _START.encode()
        if not is_atlas:
            reason = f"{beside} exists and is not of an atlas, but the results are written to it"
            raise OutputExistsError(reason, remedy="choose another name for the page")
    return beside


def page(content: Content) -> str:
    """Return the page of the content of a JSON file.

    >>> from . import atlas
    >>> from ...tokenizer import Tokenizer
    >>> html = page(atlas({"</script>": Tokenizer.train("to be", 256)}).content)
    >>> html.count("</script>"), "http" in html.partition("<body>")[2]
    (1, False)
    """
    shades = "".join(f".h{shade}{{--k:{round(100 * shade / SHADES * 0.8)}%}}" for shade in range(SHADES + 1))
    style = (FOLDER / "page.css").read_text(encoding="utf-8") + shades
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'"
    found = [(id, title, body) for id, title, render in SECTIONS if (body := "".join(render(content)))]
    links = "".join(f'<a href="#{id}">{title}</a>' for id, title, _ in found)
    body = "".join(f'<section id="{id}"><h2>{title}</h2>{each}</section>' for id, title, each in found)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>Tokenizer atlas</title><style>{style}</style></head>\n<body><header><h1>Tokenizer atlas</h1>"
        f"<p>{_summary(content)}</p><nav>{links}</nav></header>\n<main>{body}</main>\n"
        f"<script>{script}</script></body></html>\n"
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _summary(content: Content) -> str:
    number = len(content["vocabularies"])
    parts = [f"{number:,} vocabular{'y' if number == 1 else 'ies'}"]
    if found := content["text"]:
        groups = found["groups"]
        among = f" in {plural(len(groups['sizes']), 'group')}" if groups else ""
        parts.append(f"{format_size(found['bytes'])} of text{among}")
    return text(" · ".join([*parts, f"batchbpe {content['batchbpe']}"]))


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
    values = [value for value in known if value is not None]

    def cell(each: Vocabulary) -> Cell:
        value = each["groups"][name][cost]
        heat = between(value, min(values, default=0), max(values, default=0), logarithmic=True)
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

        most = max(map(share, vocabularies))

        def cell(each: Vocabulary) -> Cell:
            number, fraction = each["contents"][name], share(each)
            shown = "" if not number else "·" if fraction < 0.0005 else f"{100 * fraction:.1f}"
            return Cell(number, shown, between(fraction, 0, most), f"{number:,} tokens")

        return Column(name, "", cell)

    yield (
        "<p>Percent of the ordinary tokens (without special and added tokens), by the script of the first letter. "
        "Tokens without letters are digits, only whitespace, symbols, or parts of characters, including single bytes. "
        "In each column, a stronger color is a larger fraction.</p>"
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
            cells.append(Cell(number, f"{100 * share:.0f}", None if other == index else share, title))
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
