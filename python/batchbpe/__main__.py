"""Entry point of `batchbpe` and `python -m batchbpe`."""

import io
import os
import sys


def main() -> None:
    """Run the command line. Ctrl-C during start-up ends it without a traceback, as it does later."""
    exit_code: int | str | None = None
    try:
        _prepare_streams()
        from . import cli

        exit_code = cli.main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        exit_code = 130
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise  # about a file, with --debug
        # Standard output cannot be written, which a command may have reported already.
        _discard_output()
        from .errors import os_error

        message = f"error: {os_error(error, 'cannot write standard output')}"
        exit_code = exit_code or (1 if isinstance(error, BrokenPipeError) else message)
    sys.exit(exit_code)


def _prepare_streams() -> None:
    """Open the standard streams that the caller has closed, and make sure that everything is written or reported."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
    # With PYTHONUNBUFFERED, Python silently drops output that does not fit on the disk.
    if isinstance(sys.stdout.buffer, io.RawIOBase):
        buffered = io.BufferedWriter(sys.stdout.buffer)
        sys.stdout = io.TextIOWrapper(buffered, sys.stdout.encoding, sys.stdout.errors, write_through=True)
    # On Windows, and in the C locale, the encoding does not have all characters. Other programs read files and pipes,
    # and expect UTF-8; a terminal shows `\u8a9e`.
    for stream in (sys.stdout, sys.stderr):
        assert isinstance(stream, io.TextIOWrapper)
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _discard_output() -> None:
    """Redirect standard output to the null device: Python would try to flush it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
