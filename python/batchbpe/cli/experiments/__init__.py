"""`batchbpe experiment` and `batchbpe report`: one subcommand for each experiment."""

import typer

from ..usage import Command, Group
from .common import report
from .grids import mixture, sweep
from .language_model import language_model
from .mixture_inference import mixture_inference
from .paper import batching, chunks, freq_cutoff, phrases, stop_words

__all__ = ["experiments", "report"]

experiments = typer.Typer(
    cls=Group,
    help="Run an experiment.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (chunks, stop_words, freq_cutoff, batching, phrases, mixture, mixture_inference, sweep, language_model):
    experiments.command(cls=Command)(_command)
