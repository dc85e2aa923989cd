"""The page of an atlas: self-contained HTML. It needs no network, and a script only for sorting its tables.

Everything on it comes from the content of the JSON file, and all text is escaped: names and tokens may be hostile.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

from ...errors import ArgumentError, OutputExistsError, listed, opening, plural
from ...storage.atomic import replacing_all, writing
from ...util.progress import format_size
from .content import FORMAT
from .markup import SHADES, text
from .sections import SECTIONS, Content

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
                temporary.write_text(each, encoding="utf-8", newline="\n")
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
        names = f" ({listed([Path(each).name for each in found['files']])})" if found["files"] else ""
        parts.append(f"{format_size(found['bytes'])} of text{among}{names}")
    return text(" · ".join([*parts, f"batchbpe {content['batchbpe']}"]))
