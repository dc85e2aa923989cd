"""Shards: where token files end, and how they are put into a folder.

A shard has one token file, or two: for training and for validation. Both end at the same position in the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..storage.atomic import replacing_all, writing
from .encoded import Encoded
from .token_files import Part, TokenFile


@dataclass(frozen=True)
class Layout:
    """Which files a folder contains, and what is in them.

    >>> from batchbpe.jobs.token_files import FORMATS
    >>> layout = Layout(Path("out"), FORMATS["megatron"], np.dtype("<u2"), ("train", "validation"))
    >>> layout.names(3, "validation")
    ['validation/shard_000003.bin', 'validation/shard_000003.idx']
    """

    folder: Path
    format: type[TokenFile]
    dtype: np.dtype[Any]
    parts: tuple[Part, ...]
    """The parts of each shard, in the order of `Encoded.parts`."""

    def names(self, number: int, part: Part) -> list[str]:
        """Return the names of the files of a shard. The first one contains the ids."""
        return [f"{self.format.stem(part, number)}{suffix}" for suffix in self.format.suffixes]

    def paths(self, number: int, part: Part) -> list[Path]:
        """Return the paths of the files of a shard."""
        return [self.folder / name for name in self.names(number, part)]

    def entries(self) -> Iterator[Path]:
        """Yield what is in the folder and in its folders for training and validation."""
        folders = [self.folder / part for part in self.parts if part and self.format.is_sharded]
        for folder in (self.folder, *folders):
            if folder.is_dir():
                yield from (path for path in folder.iterdir() if path not in folders)

    def remove_partial(self) -> None:
        """Remove the files that grow, before anything about them is recorded."""
        for part in self.parts if not self.format.is_sharded else ():
            for path in self.paths(0, part):
                partial_path(path).unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """Return the name that a file has while it grows.

    >>> partial_path(Path("train.bin")).name
    'train.bin.partial'
    """
    return path.with_name(f"{path.name}.partial")


class Shard:
    """The files with one number, which are created when they are needed. They get their names at the end.

    >>> import tempfile
    >>> from batchbpe.jobs.token_files import FORMATS
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Shard(Layout(Path(folder), FORMATS["bin"], np.dtype("<u2"), ("",)), 0) as shard:
    ...         shard.add(Encoded(np.array([7, 8], np.uint32), np.array([2])))
    ...     [path.name for path in Path(folder).iterdir()], shard.tokens
    (['shard_000000.bin'], 2)
    """

    def __init__(self, layout: Layout, number: int) -> None:
        """Start without files."""
        self.layout, self.number = layout, number
        self.files: dict[Part, TokenFile] = {}

    def __enter__(self) -> Shard:
        """Create nothing yet."""
        self._names, self._opened = ExitStack(), ExitStack()
        return self

    def __exit__(self, *failure: Any) -> None:
        """Close all files, and rename them if no error was raised. The first shard has files even without documents."""
        try:
            with self._names, self._opened:  # all files are closed before one is renamed
                if failure[1]:
                    raise failure[1]
                for part in self.layout.parts if self.number == 0 else ():
                    self._file(part)
        except BaseException:
            if self.number == 0:
                self.layout.remove_partial()
            raise

    def _file(self, part: Part) -> TokenFile:
        if part not in self.files:
            layout = self.layout
            paths = layout.paths(self.number, part)
            if part and layout.format.is_sharded:
                with writing(paths[0].parent):
                    paths[0].parent.mkdir(exist_ok=True)
            if layout.format.is_sharded:
                paths = self._names.enter_context(replacing_all(paths))
            else:
                paths = [*map(partial_path, paths)]
                self._names.enter_context(writing(paths[0]))
            file = layout.format(paths, layout.dtype)
            self.files[part] = self._opened.enter_context(file)
        return self.files[part]

    def add(self, encoded: Encoded) -> None:
        """Add documents to their files."""
        for part, some in zip(self.layout.parts, encoded.parts(), strict=True):
            if some.size:
                self._file(part).add(some)

    @property
    def tokens(self) -> int:
        """The number of tokens in all files."""
        return sum(file.tokens for file in self.files.values())

    @property
    def is_inside(self) -> bool:
        """Whether a document has begun and not ended."""
        return any(file.open_tokens for file in self.files.values())

    def end(self, encoded: Encoded, limit: int, *, split_documents: bool) -> int | None:
        """Return the position in `encoded` at which this shard ends, or None if there is room for all of it.

        A shard ends before a token, once one of its files has `limit` tokens; unless documents may be split, before the
        first token of a document. Documents without tokens belong to the shard before them.
        """
        lengths = encoded.lengths()
        starts = np.concatenate([[0], encoded.ends])
        masks: list[Any] = [True] if encoded.is_validation is None else [~encoded.is_validation, encoded.is_validation]
        full = min(
            _first_full(lengths * mask, starts, limit - (self.files[part].tokens if part in self.files else 0))
            for part, mask in zip(self.layout.parts, masks, strict=True)
        )
        if not split_documents and (full or self.is_inside):
            after = int(np.searchsorted(encoded.ends, full))
            full = int(encoded.ends[after]) if after < len(encoded.ends) else len(encoded.ids)
        if full >= len(encoded.ids):
            return None
        return full + int(np.searchsorted(encoded.ends, full, "right"))


def _first_full(lengths: Any, starts: Any, left: int) -> int:
    """Return the offset after which `left` tokens of a file have been added; past the end if there are fewer."""
    if left <= 0:
        return 0
    sums = np.cumsum(lengths)
    document = int(np.searchsorted(sums, left))
    if document == len(sums):
        return 1 << 63
    return int(starts[document] + lengths[document] - (sums[document] - left))
