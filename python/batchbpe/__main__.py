"""The command `batchbpe`, which is also `python -m batchbpe`."""

import sys


def main() -> None:
    """Run it; Ctrl-C while it starts ends it as quietly as later."""
    try:
        from . import cli

        cli.app(prog_name="batchbpe")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
