"""`batchbpe view`."""

from __future__ import annotations

import sys
import threading
import warnings
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError
from .app import command, contains_counts, load
from .options import Quiet, RankPattern, option
from .output import note
from .usage import UsageError, number


@command
def view(
    files: Annotated[
        list[Path],
        typer.Argument(help="One to four models in any format, and chunk count files.", readable=False),
    ],
    text: Annotated[Path | None, option("Initial text.", metavar="FILE")] = None,
    data: Annotated[
        list[str] | None,
        option("Documents or chunk counts to count tokens in. Can be repeated.", metavar="PATH"),
    ] = None,
    static: Annotated[
        Path | None, option("Write one self-contained page instead of starting a server.", metavar="FILE")
    ] = None,
    pattern: RankPattern = None,
    host: Annotated[
        str, option("Address to listen on; by default, only this machine can reach the page.", metavar="HOST")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port (0 picks a free one).", **number(int, least=0, most=65535))] = 8765,
    open_page: Annotated[bool, option("Open the page in a browser.", "--open/--no-open")] = True,
    quiet: Quiet = False,
) -> None:
    """Look at tokens and vocabularies on a local page.

    Example: batchbpe view mine.model other.tiktoken
    """
    from ..analysis.comparison import unique_names
    from ..counts import ChunkCounts
    from ..viewer import server, static_page
    from ..viewer.workspace import SAMPLE, Workspace

    if static is None:
        server.check_installed()
    counts = [path for path in files if contains_counts(path)]
    models = [path for path in files if path not in counts]
    if not models and (static or data):
        raise UsageError(f"--{'static' if static else 'data'} needs a model; {files[0]} contains chunk counts")
    if static and counts:
        raise UsageError(f"--static has no view of chunk counts; remove {counts[0]}, or pass it to --data")
    tokenizers = [load(path, pattern, needed=len(models) == 1) for path in models]
    space = Workspace(
        dict(zip(unique_names([path.name for path in models]), tokenizers, strict=True)),
        dict(zip(unique_names([path.name for path in counts]), map(ChunkCounts.load, counts), strict=True)),
        SAMPLE if text is None else _read(text),
    )
    if data:
        space.count_data(data, progress=not quiet)
    if static:
        static_page.write(space, static)
        note(str(static), quiet)
        return
    with server.listen(host, port) as listening:
        page = server.addresses(listening)[0]
        sys.stdout.write(f"{page}\n")
        sys.stdout.flush()
        for other in server.addresses(listening)[1:]:
            note(f"from other machines: {other}", quiet)
        note("press Ctrl-C to stop", quiet)
        if open_page:  # a browser in the terminal would not return
            threading.Thread(target=webbrowser.open, args=[page], daemon=True).start()
        warnings.simplefilter("ignore")  # the page marks text that a pattern drops
        try:
            server.serve(space, listening, host)
        except KeyboardInterrupt as interrupt:
            if type(interrupt) is not KeyboardInterrupt:
                raise  # SIGTERM


def _read(path: Path) -> str:
    from ..errors import opening
    from ..viewer.workspace import MAX_TEXT

    with opening(path):
        content = path.read_bytes()
    if len(content) > MAX_TEXT:
        raise DataError(f"the text must have at most {MAX_TEXT >> 20} MiB", where=str(path))
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"invalid UTF-8 at byte {error.start}", where=str(path)) from None
