"""The command `batchbpe`: parse arguments, call one function of the package per command, and print the result."""

from .app import app, main
from .atlas import atlas
from .count import count
from .decode import decode
from .diff import diff
from .edit import edit
from .encode import encode
from .evaluate import evaluate
from .experiments import experiments, report
from .inspect import export, inspect
from .train import train
from .usage import Command
from .verify import verify
from .view import view

__all__ = ["app", "main"]

for _command in (count, train, encode, decode, inspect, diff, edit, view, evaluate, atlas, export, verify):
    app.command(cls=Command)(_command)
app.add_typer(experiments, name="experiment")
app.command(cls=Command)(report)
