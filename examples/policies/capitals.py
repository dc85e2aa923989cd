"""Capital letters as modifiers (after capcode, github.com/alasdairforsythe/capcode): "The NASA" becomes "Cthe Wnasa".

C makes the next letter a capital letter, W all letters that follow. No other capital letters remain that could be
confused with them. Both are letters, so the split pattern keeps them in the same chunk as the word.
"""

from __future__ import annotations

import argparse
import re
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from batchbpe import Tokenizer, evaluate

CAPITALS = [c for c in map(chr, range(0x10000)) if c != c.lower() and len(c.lower()) == 1 and c.lower().upper() == c]
"""Capital letters that can be restored. Others, such as İ, whose lowercase form is two characters, are left alone.

So are those after U+FFFF, such as Deseret: Python's regular expressions are 20 times slower with them.
"""
TO_LOWER = {ord(c): c.lower() for c in CAPITALS}
TO_UPPER = {ord(c.lower()): c for c in CAPITALS}
_UPPER, _LOWER = f"[{''.join(CAPITALS)}]", f"[{''.join(TO_LOWER.values())}]"
_TO_MARK = re.compile(f"{_UPPER}(?:{_UPPER}+(?!{_LOWER}))?")
_MARKED = re.compile(f"C{_LOWER}|W{_LOWER}+")


def fold(text: str) -> str:
    """Replace capital letters by lowercase letters after a marker.

    >>> fold("The NASA runs an HTTPServer")
    'Cthe Wnasa runs an WhttpCserver'
    """
    return _TO_MARK.sub(lambda found: "CW"[len(found[0]) > 1] + found[0].translate(TO_LOWER), text)


def unfold(text: str) -> str:
    """Undo `fold`."""
    return _MARKED.sub(lambda found: found[0][1:].translate(TO_UPPER), text)


class Capitals:
    """A tokenizer of folded text. Train the one inside on texts that were folded."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wrap a tokenizer."""
        self.tokenizer, self.vocab_size = tokenizer, tokenizer.vocab_size

    def encode(self, text: str) -> list[int]:
        """Encode a text."""
        return self.tokenizer.encode(fold(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Decode ids to the original text."""
        return unfold(self.tokenizer.decode(ids))


def main() -> None:
    """Compare plain training with folded text, on every tenth document, which they were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", help="parquet file with the column text")
    parser.add_argument("--language", help="value of the column language")
    parser.add_argument("--vocab-size", type=int, default=4096)
    given = parser.parse_args()
    if given.data:
        rows = pq.read_table(given.data).to_pylist()
        texts = [row["text"] for row in rows if given.language in (None, row.get("language"))]
    else:
        paths = Path(sysconfig.get_path("stdlib")).rglob("*.py")
        texts = [path.read_text("utf-8", "replace") for path in sorted(paths) if "site-packages" not in path.parts]
    held_out = texts[::10]
    del texts[::10]
    plain = Tokenizer.train(texts=texts, vocab_size=given.vocab_size)
    folded = Tokenizer.train(texts=map(fold, texts), vocab_size=given.vocab_size)
    print(evaluate({"plain": plain, "capitals": Capitals(folded)}, texts=held_out))


if __name__ == "__main__":
    main()
