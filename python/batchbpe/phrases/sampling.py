"""Use a fraction of the text: of its documents, or of the blocks of lines in text files and long strings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..data.documents import Documents, TextFile, Texts, UseBlock
from ..data.sampling import DocumentSampler

BLOCK = 1 << 16
"""A block has about this many bytes or characters, and ends with a newline, which runs do not cross."""


def fraction_of(documents: Documents, fraction: float, sampler: DocumentSampler) -> Documents:
    """Return a fraction of the documents, or of the blocks of a text file or of long strings."""
    if isinstance(documents, TextFile):
        start = sampler.start()
        return replace(documents, select_blocks=lambda use: _SampledBlocks(use, fraction, start))
    if isinstance(documents, Texts) and documents.has_longer_than(BLOCK):
        documents = Texts([block for text in documents.strings for block in blocks_of(text)])
    return documents.select(sampler.draw(documents, fraction))


class _SampledBlocks:
    """Passes a fraction of the blocks of a text file to `use`, evenly distributed."""

    def __init__(self, use: UseBlock, fraction: float, start: float) -> None:
        self._use, self._fraction, self._due = use, fraction, start

    def __call__(self, block: bytes, offset: int, last: bool) -> int:
        start, end = 0, len(block) if last else block.rfind(b"\n") + 1
        while start < end:
            stop = block.find(b"\n", start + BLOCK, end) + 1 or end
            self._due += self._fraction
            if self._due >= 1:
                self._due -= 1
                self._use(block[start:stop], offset + start, True)
            start = stop
        return end


def blocks_of(text: str) -> Iterator[str]:
    """Cut a long string into blocks.

    >>> [len(block) for block in blocks_of("to be or not to be\\n" * 10_000)]
    [65550, 65550, 58900]
    """
    start = 0
    while len(text) - start > BLOCK:
        end = text.find("\n", start + BLOCK) + 1
        if not end:
            break
        yield text[start:end]
        start = end
    yield text[start:]
