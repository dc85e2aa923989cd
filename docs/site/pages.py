"""Collect the pages of the documentation site in a folder for Sphinx, and adapt their links: `make site`.

The pages are written to be read on GitHub. In the site, a link to another page leads to that page, a link to any other
file of the repository leads to GitHub, and the name of a file as the text of a link becomes the title in contents.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

SITE = Path(__file__).parent
ROOT = SITE.parents[1]
PICTURES = (".png", ".svg")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s]+)\)")
PICTURE = re.compile(
    r'<picture>\s*<source[^>]*srcset="(?P<dark>[^"]+)">\s*'
    r'<img(?: width="(?P<width>\d+)")? src="(?P<light>[^"]+)" alt="(?P<alt>[^"]+)">\s*</picture>'
)


def sources() -> dict[Path, str]:
    """Return the files that are pages, with the addresses of their pages without a suffix."""
    pages = {ROOT / "README.md": "index", SITE / "notebooks.md": "notebooks/index"}
    pages |= {ROOT / f"{name.upper()}.md": name for name in ("contributing", "changelog")}
    names = {"README": "benchmarks", "RESULTS": "results", "MODELS": "models"}
    pages |= {ROOT / "benchmarks" / f"{name}.md": address for name, address in names.items()}
    pages |= {path: path.stem for path in sorted((ROOT / "docs").glob("*.md"))}
    pages |= {path: f"notebooks/{path.stem}" for path in sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))}
    return pages | {path: f"api/{path.stem}" for path in sorted((SITE / "api").glob("*.md"))}


def titles() -> dict[str, str]:
    """Return the titles of the pages in the table of contents, by address."""
    found = re.findall(r"(?m)^(.+) <(.+)>$", (SITE / "contents.md").read_text(encoding="utf-8"))
    return {address: title for title, address in found}


def address_of(name: str) -> str:
    """Return one of the addresses in pyproject.toml."""
    found = re.search(rf'(?m)^{name} = "(https://.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found, name
    return found[1]


class Collection:
    """The pages and pictures of the site: `files` has their contents by name."""

    def __init__(self) -> None:
        """Read and adapt all pages."""
        self.repository = address_of("Repository")
        self.sources, self.titles = sources(), titles()
        self.files: dict[str, str | bytes] = {}
        for path, address in self.sources.items():
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".ipynb":
                self.files[f"{address}.ipynb"] = self._notebook(text, path)
                continue
            if address == "index":
                text = text.partition("## Documentation\n")[0] + (SITE / "contents.md").read_text(encoding="utf-8")
            self.files[f"{address}.md"] = self._adapted(text, path)

    def write(self, folder: Path) -> None:
        """Write the files, and remove all others."""
        shutil.rmtree(folder, ignore_errors=True)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def _notebook(self, text: str, path: Path) -> str:
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = self._adapted("".join(cell["source"]), path)
        address = f"{self.repository}/blob/main/{path.relative_to(ROOT).as_posix()}"
        notebook["cells"][0]["source"] += f"\n\n[Open this notebook in the repository]({address})"
        return json.dumps(notebook)

    def _adapted(self, text: str, path: Path) -> str:
        """Adapt everything but blocks of code."""
        parts = re.split(r"(?ms)^(```.*?^```)$", text)
        parts[::2] = [self._links(PICTURE.sub(self._picture, part), path) for part in parts[::2]]
        return "".join(parts)

    @staticmethod
    def _picture(match: re.Match[str]) -> str:
        """Replace a picture that depends on the color scheme of the system: readers can choose one on the page."""
        width = f" width={match['width']}" if match["width"] else ""
        return "\n\n".join(f"![{match['alt']}]({match[mode]}){{.only-{mode}{width}}}" for mode in ("light", "dark"))

    def _links(self, text: str, path: Path) -> str:
        def adapt(match: re.Match[str]) -> str:
            label, link = match.groups()
            target, mark, anchor = link.partition("#")
            if "://" in target or not target:
                return match[0]
            file = (path.parent / target).resolve()
            if file.suffix in PICTURES:
                name = file.relative_to(ROOT).as_posix().removeprefix("docs/")
                self.files[name] = file.read_bytes()
                return f"[{label}]({self._relative(name, path)})"
            if file not in self.sources:
                kind = "tree" if file.is_dir() else "blob"
                return f"[{label}]({self.repository}/{kind}/main/{file.relative_to(ROOT).as_posix()}{mark}{anchor})"
            address = self.sources[file]
            if label in (target, file.relative_to(ROOT).as_posix()):
                label = self.titles[address]
            return f"[{label}]({self._relative(address + file.suffix, path)}{mark}{anchor})"

        return LINK.sub(adapt, text)

    def _relative(self, name: str, path: Path) -> str:
        return Path(os.path.relpath(name, Path(self.sources[path]).parent)).as_posix()


if __name__ == "__main__":
    Collection().write(Path(sys.argv[1]))
