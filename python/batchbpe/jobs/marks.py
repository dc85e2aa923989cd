"""Marks: special tokens before and after each document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, listed
from ..tokenizer import Tokenizer

Ids = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Mark = bool | str
"""Whether there is a mark: the special token with the role bos or eos, or the one with this name."""


@dataclass(frozen=True)
class Marks:
    """The ids of the tokens before and after each document, or None.

    >>> ids, offsets = Marks(bos=1, eos=2).added(np.array([7, 8, 9], np.uint32), np.array([0, 1, 1, 3]))
    >>> ids.tolist(), offsets.tolist()
    ([1, 7, 2, 1, 2, 1, 8, 9, 2], [0, 3, 5, 9])
    """

    bos: int | None = None
    eos: int | None = None

    def added(self, ids: Ids, offsets: Offsets) -> tuple[Ids, Offsets]:
        """Return the ids of whole documents with marks, and the offset of each document."""
        places = [(self.bos, offsets[:-1]), (self.eos, offsets[1:])]
        marks = [mark for mark, _ in places if mark is not None]
        if not marks:
            return ids, offsets
        before = np.stack([positions for mark, positions in places if mark is not None], axis=1).ravel()
        positions = before + np.arange(len(before))
        added = np.empty(len(ids) + len(positions), ids.dtype)
        is_id = np.ones(len(added), bool)
        is_id[positions] = False
        added[is_id] = ids
        added[positions] = np.tile(np.array(marks, ids.dtype), len(offsets) - 1)
        return added, offsets + len(marks) * np.arange(len(offsets))

    def around(self, block: Ids, *, is_first: bool, is_last: bool) -> Ids:
        """Return a block of a document with the marks at the beginning and the end of the document.

        >>> Marks(bos=1, eos=2).around(np.array([7], np.uint32), is_first=True, is_last=False).tolist()
        [1, 7]
        """
        bos = [self.bos] if is_first and self.bos is not None else []
        eos = [self.eos] if is_last and self.eos is not None else []
        if not bos and not eos:
            return block
        return np.concatenate([np.array(bos, np.uint32), block, np.array(eos, np.uint32)])


NO_MARKS = Marks()


def marks_of(tokenizer: Tokenizer, append_eos: Mark, prepend_bos: Mark) -> Marks:
    """Return the marks that the options name.

    >>> marks_of(Tokenizer.train("aaabdaaabac", 260, special_tokens=["</s>"]), append_eos=True, prepend_bos=False)
    Marks(bos=None, eos=259)
    >>> marks_of(Tokenizer.train("aaabdaaabac", 260, special_tokens=["<x>"]), append_eos=True, prepend_bos=False)
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: append_eos=True needs a special token with the role eos; name one of the model's special tokens (<x>) with append_eos="TOKEN"
    """  # noqa: E501  the last line is an error message
    return Marks(_id(tokenizer, "bos", "prepend_bos", prepend_bos), _id(tokenizer, "eos", "append_eos", append_eos))


def check_mark(option: str, mark: Mark) -> None:
    """Raise unless an option is True, False or a string."""
    if not isinstance(mark, bool | str):
        raise ArgumentTypeError(option, mark, "must be True, False or the name of a special token")


def _id(tokenizer: Tokenizer, role: str, option: str, mark: Mark) -> int | None:
    check_mark(option, mark)
    if mark is False:
        return None
    names = tokenizer.special_tokens
    name = tokenizer.roles.get(role) if mark is True else mark
    if name is not None and name in names:
        return names[name]
    if mark is not True:
        none = "must be a special token, but the model has no special tokens"
        reason = f"must be a special token of the model ({listed(names)})" if names else none
        raise ArgumentError(option, mark, reason)
    problem = (Setting(option, True), f" needs a special token with the role {role}")
    if not names:
        remedy = "the model has no special tokens: ", "train with ", Setting("special_tokens")
        raise DataError(problem, remedy=remedy)
    setting = Setting(role, "TOKEN", call=f'{option}="TOKEN"')
    raise DataError(problem, remedy=(f"name one of the model's special tokens ({listed(names)}) with ", setting))
