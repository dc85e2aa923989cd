"""The command `batchbpe`, which is also `python -m batchbpe`."""

import io
import os
import sys


def main() -> None:
    """Run it; Ctrl-C while it starts ends it as quietly as later."""
    failed: int | str | None = None
    try:
        _streams()
        from . import cli

        try:
            cli.app(prog_name="batchbpe")
        except SystemExit as end:
            failed = end.code
        sys.stdout.flush()
    except KeyboardInterrupt:
        failed = 130
    except OSError as error:  # which no command could say: it was --help, or is said already
        _silence()
        failed = failed or (1 if isinstance(error, BrokenPipeError) else f"error: standard output: {error.strerror}")
    sys.exit(failed)


def _streams() -> None:
    """Have all three streams, though the caller may have closed some, and lose nothing that is written."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    # Without a buffer (PYTHONUNBUFFERED), Python drops what does not fit on a disk, and says nothing.
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        buffered = io.BufferedWriter(sys.stdout.buffer)
        sys.stdout = io.TextIOWrapper(buffered, sys.stdout.encoding, sys.stdout.errors, write_through=True)


def _silence() -> None:
    """Have nothing more written where nothing can be: Python tries again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
