"""Write one self-contained page: the comparison of a text, with all data and code in the file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from pathlib import Path

from ..storage.atomic import replacing, writing
from . import api
from .server import STATIC
from .workspace import Workspace

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


def write(space: Workspace, path: str | os.PathLike[str]) -> None:
    """Write the page. It needs no network, and its Content-Security-Policy allows none."""
    content = page(space)
    with replacing(path) as temporary, writing(Path(path)):
        temporary.write_text(content, encoding="utf-8", newline="\n")


def page(space: Workspace) -> str:
    """Return the page as html.

    >>> from batchbpe import Tokenizer
    >>> html = page(Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)}, text="</script>"))
    >>> html.count("</script>"), "src=" in html
    (2, False)
    """
    style, code = (STATIC / "style.css").read_text(encoding="utf-8"), script()
    # Inside a script element, "<" could only start the end of the element, or a comment.
    data = json.dumps(_data(space), separators=(",", ":")).replace("<", "\\u003c")
    policy = f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data:"
    html = (STATIC / "index.html").read_text(encoding="utf-8")
    parts = {
        '<meta charset="utf-8">\n': (
            f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        ),
        '<link rel="stylesheet" href="/static/style.css">': f"<style>{style}</style>",
        '<script type="module" src="/static/main.js"></script>': (
            f'<script type="application/json" id="data">{data}</script>\n<script type="module">{code}</script>'
        ),
    }
    for old, new in parts.items():
        assert html.count(old) == 1, old
        html = html.replace(old, new)
    return html


def script(name: str = "main") -> str:
    """Return a module and the modules that it imports as one module. No two of them declare the same name.

    >>> "import " in script() or "export " in script()
    False
    """
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        source = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        for imported in _IMPORT.findall(source):
            if imported not in modules:
                add(imported)
        modules.setdefault(name, re.sub(r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE))

    add(name)
    return "\n".join(modules.values())


def _data(space: Workspace) -> api.Answer:
    key, comparison = space.compare(space.text)
    corpus = "data" if "data" in space.token_counts else key
    tokens: list[dict[str, api.Answer]] = []
    for index, ids in enumerate(comparison.ids.values()):
        found: dict[str, api.Answer] = {}
        for token in dict.fromkeys(ids.tolist()):
            if str(token) not in found:
                found |= api.token(space, {"model": index, "id": token, "corpus": corpus})["parts"]
        tokens.append(found)
    return {"workspace": api.workspace(space), "encoded": api.encoded(comparison), "tokens": tokens}


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
