"""Text files, read block by block."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from ..util.surrogates import Errors
from .documents import TextFile, UseBlock, too_large

BLOCK = 1 << 22
"""Number of bytes read at once."""


def read_blocks(file: TextFile, errors: Errors, use: UseBlock, skip: int = 0) -> Iterator[int]:
    """Pass a text to `use` block by block, without its first `skip` bytes, and yield how many bytes have been used.

    What `use` has not used is passed again with the next block.
    """
    use = file.select_blocks(use)
    decoder = codecs.getincrementaldecoder("utf-8")("replace") if errors == "replace" else None
    done, rest, last, limit = 0, b"", False, file.max_document_bytes
    with file.open() as stream:
        while not last:
            # Doubling the unused rest keeps reading linear, even if the text cannot be cut.
            block = stream.read(max(BLOCK, min(len(rest), limit + 1 - len(rest))))
            last = not block
            rest += decoder.decode(block, last).encode() if decoder else block
            is_skipping = done < skip
            used = min(len(rest), skip - done) if is_skipping else use(rest, done, last)
            done, rest = done + used, rest[used:]
            if len(rest) > limit:
                raise too_large(f"{len(rest)} bytes at byte {done} cannot be split", limit)
            if not is_skipping:
                yield done
