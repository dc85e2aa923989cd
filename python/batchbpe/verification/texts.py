"""The texts to compare: built-in cases, the tokens themselves, and documents cut into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..analysis.counted_text import texts_of
from ..data.corpus import Corpus
from ..data.documents import Counts, Documents, TextFile, invalid_utf8
from ..data.sampling import Selection
from ..data.text_files import read_blocks
from ..model import Model
from ..util.surrogates import Errors

PIECE = 1 << 13
"""Maximum number of characters of a text. Some engines are slow for long texts, and llama.cpp crashes at 40,000."""
_LEADS = (b"", b"\xc3", b"\xe4", b"\xe4\xb8", b"\xf0", b"\xf0\x9f", b"\xf0\x9f\x98")
_TAILS = (b"", b"\x80", b"\xa0", b"\x80\x80", b"\xa0\x80", b"\x80\x80\x80", b"\x90\x80\x80")
"""Beginnings and ends of characters."""
BATCH = 1 << 17
"""Number of characters that are compared at once, so that Ctrl-C does not have to wait."""


def token_texts(model: Model) -> list[str]:
    """Return every token as a text, so that each merge is used. Parts of characters are completed.

    >>> token_texts(Model(r"\\w+", {(97, 98): 256}))[-1]
    'ab'
    """
    return list(dict.fromkeys(filter(None, map(_text_with, model.vocab.values()))))


def _text_with(token: bytes) -> str | None:
    """Return a text that contains the bytes of a token.

    >>> _text_with(b"ab"), _text_with("é".encode()[:1]), _text_with(bytes([255]))
    ('ab', 'À', None)
    """
    for before in _LEADS:
        for after in _TAILS:
            try:
                return (before + token + after).decode()
            except UnicodeDecodeError:
                continue
    return None


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield lists of texts of bounded size.

    >>> [len(batch) for batch in batches(["a" * 100_000] * 3)]
    [2, 1]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 16  # a short text takes time too
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def document_texts(corpus: Corpus) -> Iterator[str]:
    """Yield the documents of a corpus. Long ones are cut, after a line end if there is one."""
    selection = Selection(corpus.sampling)
    for source in corpus.sources:
        with source.blamed():
            for documents in selection.of(source):
                yield from _pieces_of(documents, corpus.options.errors)


def _pieces_of(documents: Documents, errors: Errors) -> Iterator[str]:
    if isinstance(documents, Counts):
        documents.sizes()  # raises an error
    if not isinstance(documents, TextFile):
        for text in texts_of(documents, errors):
            yield from pieces(text)
        return
    blocks: list[str] = []

    def use(block: bytes, offset: int, last: bool) -> int:
        used = len(block) if last else block.rfind(b"\n") + 1
        try:
            blocks.append(block[:used].decode())
        except UnicodeDecodeError as error:
            raise invalid_utf8(f"invalid UTF-8 at byte {offset + error.start} of the text") from None
        return used

    for _ in read_blocks(documents, errors, use):
        yield from pieces(blocks.pop())


def pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces of at most `PIECE` characters, after a line end if there is one.

    >>> [len(piece) for piece in pieces("a" * 8_000 + chr(10) + "b" * 2_000)]
    [8001, 2000]
    """
    start = 0
    while start < len(text):
        end = min(start + PIECE, len(text))
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end
