"""Strings → files: which strings are paths or URLs, and which files they mean."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from glob import glob, has_magic
from pathlib import Path, PurePath
from urllib.parse import urlsplit

from ..errors import ArgumentError, listed, opening
from ..util.similar import similar_names
from .files import URL, Location, split_suffix, urls
from .readers import FORMATS, SUFFIXES
from .readers.tables import is_counts_folder


def has_known_suffix(text: str) -> bool:
    """Return whether a string is a URL or path that ends in a known suffix.

    >>> has_known_suffix("data/*.parquet"), has_known_suffix("/etc/hostname")
    (True, False)
    """
    return looks_like_path(text) and split_suffix(text if re.match(URL, text) else Path(text))[0] in FORMATS


def looks_like_path(text: str) -> bool:
    """Return whether a string looks like a URL, path or glob, without touching the file system.

    >>> looks_like_path("notes.txt"), looks_like_path("and/or"), looks_like_path("a text")
    (True, True, False)
    """
    if len(text) >= 4096 or "\n" in text or "\r" in text or "\0" in text:
        return False
    is_separated = ("/" in text or os.sep in text) and text.split(None, 1) == [text]
    if re.match(URL, text):
        return is_separated
    if not is_separated and not text[-12:].lower().endswith(SUFFIXES):
        return False
    # Chinese and Japanese text has no spaces, but no file system has names of more than 255 bytes.
    return all(len(name.encode(errors="replace")) <= 255 for name in text.split("/"))


def could_be_name(text: str) -> bool:
    """Return whether a string is a single word, or a glob, that could be the name of a file or folder.

    >>> could_be_name("data"), could_be_name("my-corpus*"), could_be_name("data!"), could_be_name("生存")
    (True, True, False, False)
    """
    # Chinese, Japanese and Thai text has no spaces; the scripts before U+0E00 have.
    return 0 < len(text) <= 255 and max(text) < "\u0e00" and re.fullmatch(r"[\w.~+*-]+", text) is not None


def is_word(data: object) -> bool:
    """Return whether data is a string that would be a text if it could not be the name of a missing file.

    >>> is_word("aaabdaaabac"), is_word("notes.txt"), is_word("to be")
    (True, False, False)
    """
    return isinstance(data, str) and could_be_name(data) and not looks_like_path(data) and not exists(data)


def exists(text: str) -> bool:
    """Return whether a string is the path of a file or folder."""
    # Not with Path: its methods fail if the name is too long.
    return 0 < len(text) < 4096 and "\0" not in text and os.path.exists(text)  # noqa: PTH110


def files_at(text: str, hint: str = "") -> list[Location]:
    """Return the files at a path or URL, in a folder, or matching a glob. `hint` is for the error if there are none."""
    if not text:  # Path("") is the current folder
        raise ArgumentError("files", text, "must not contain an empty path")
    found: list[Location]
    if text.startswith("file://"):
        from urllib.request import url2pathname  # imports http

        text = url2pathname(urlsplit(text).path)
    if re.match(URL, text):
        found, problem = [*urls(text)], "no file matches the pattern"
    else:
        # Not with Path: its expanduser fails for an unknown user, and its glob matches hidden files.
        text = os.path.expanduser(text)  # noqa: PTH111
        with opening(text):
            found, problem = _files(text)
    if not found:
        raise FileNotFoundError(f"{problem}: {text}{_remedy(text)}{'' if Path(text).is_dir() else hint}")
    return sorted(found, key=_in_order)


def _in_order(location: PurePath | str) -> str:
    r"""Return what files are sorted by: samples depend on their order, which must be the same on all systems.

    >>> from pathlib import PureWindowsPath
    >>> sorted([PureWindowsPath("a1.txt"), PureWindowsPath("a\\b.txt")], key=_in_order)[0].name
    'b.txt'
    """
    return location if isinstance(location, str) else location.as_posix()


def _remedy(text: str) -> str:
    """Return what may be meant by a path without files, for a message: similar names, or other files in the folder."""
    if Path(text).is_dir():
        if not any(Path(text).iterdir()):
            return ""
        return f"; to read other files as text, name them or use a glob such as {text.rstrip('/' + os.sep)}/*"
    found = [] if has_magic(text) else similar_names(text)
    return f" (similar: {listed(found)})" if found else ""


def _files(text: str) -> tuple[list[Location], str]:
    """Return the files at a path, and what to say if there are none."""
    path = Path(text)
    if path.is_dir():
        return [*_in_folder(path)], f"no {', '.join(FORMATS)} file in the folder"
    if path.exists():
        return [path], ""
    if has_magic(text):
        files = [file for file in map(Path, glob(text, recursive=True)) if file.is_file()]  # noqa: PTH207
        return [*files], "no file matches the pattern"
    return [], "unsupported URL (use https, s3, hf, gs or az)" if "://" in text else "file not found"


def _in_folder(folder: Path) -> Iterator[Path]:
    """Yield the files with a known suffix that are not hidden, folders of counts, and folders that cannot be listed.

    Reading such a folder as a file raises the error, which names it and can be skipped like that of a file.
    """
    unreadable: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename))):
        if is_counts_folder(Path(parent)):
            folders.clear()
            yield Path(parent)
            continue
        folders[:] = [name for name in folders if name[0] != "."]
        files = (Path(parent, name) for name in names if name[0] != "." and split_suffix(Path(name))[0] in FORMATS)
        yield from filter(_is_file, files)
    yield from unreadable


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or may be one that cannot be read."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        return True
    except OSError:
        return False
