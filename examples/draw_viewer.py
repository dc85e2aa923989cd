"""Take docs/viewer.png, the screenshot of `batchbpe view` in the README: `python examples/draw_viewer.py`.

It needs chromium. The tokenizers are trained on the source of Python's standard library.
"""

import shutil
import sysconfig
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.viewer import static_page
from batchbpe.viewer.workspace import SAMPLE, Workspace

PICTURE = Path(__file__).parent.parent / "docs" / "viewer.png"


def main() -> None:
    """Compare two vocabularies of Python's standard library on the sample text."""
    folder = Path(sysconfig.get_path("stdlib"))
    paths = [path for path in folder.rglob("*.py") if "site-packages" not in path.parts]
    counts = ChunkCounts.count(files=paths, errors="replace")
    tokenizers = {f"{size:,} tokens": Tokenizer.train(counts, size) for size in (1000, 32000)}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        page = Path(temporary) / "page.html"
        static_page.write(Workspace(tokenizers, text=SAMPLE), page)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1160, "height": 560}, device_scale_factor=1.2, color_scheme="light")
        view.goto(page.as_uri())
        view.locator('.block[data-model="1"] .piece').nth(1).hover()
        view.locator("#tip").wait_for()
        view.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
