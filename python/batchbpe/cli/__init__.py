"""The command `batchbpe`: arguments only. Each command calls one function of the package."""

from __future__ import annotations

from .app import app
from .count import count
from .encode import decode, encode
from .inspect import evaluate, export, inspect
from .train import train

for _command in (count, train, encode, decode, inspect, evaluate, export):
    app.command()(_command)


def main() -> None:
    """Run the command line."""
    app(prog_name="batchbpe")
