"""The command `batchbpe`: parse arguments, call one function of the package per command, and print the result."""

from .app import app, main
from .atlas import atlas
from .count import count
from .decode import decode
from .diff import diff
from .edit import edit
from .encode import encode
from .evaluate import evaluate
from .experiment import experiment, report
from .inspect import export, inspect
from .train import train
from .usage import Command
from .verify import verify
from .view import view

__all__ = ["app", "main"]

_commands = (
    count,
    train,
    encode,
    decode,
    inspect,
    diff,
    edit,
    view,
    evaluate,
    atlas,
    export,
    verify,
    experiment,
    report,
)
for _command in _commands:
    app.command(cls=Command)(_command)
