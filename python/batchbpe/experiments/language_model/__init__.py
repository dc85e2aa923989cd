"""What a vocabulary is worth to a language model: bits per byte of small transformers on held-out documents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ...analysis.evaluator import Tokenizers, named_tokenizers
from ...analysis.plots import styled_with
from ...arguments import check_integer, check_threads
from ...data.corpus import Corpus, Data, Files
from ...data.options import ReadOptions
from ...errors import ArgumentError, ArgumentTypeError, DataError, plural
from ...storage.atomic import writing
from ...storage.locks import locked
from ...tokenizer import Tokenizer
from ...util.progress import bar
from ...util.surrogates import Errors
from ..data import HELDOUT_SHARE, DividedDocuments, ExperimentData, source_names
from ..grid import Combination, Grid, label
from ..result import Result
from ..sweep import check_trained, train_grid
from .batches import Encoder
from .figures import figures
from .options import Options, check_device, check_names
from .runs import SavedRuns
from .tables import Compared, findings, tables
from .texts import MORE_DOCUMENTS, Texts
from .training import train_model

SEEDS = 3
"""Default number of models for each vocabulary."""


@styled_with("lm")
def language_model(
    data: ExperimentData | Data | None = None,
    heldout: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    tokenizers: Tokenizers | None = None,
    grid: Mapping[str, Sequence[Any] | Mapping[str, Any]] | None = None,
    seeds: int = SEEDS,
    scale: float = 1.0,
    layers: int | None = None,
    width: int | None = None,
    context: int | None = None,
    training_bytes: int | None = None,
    heldout_bytes: int | None = None,
    step_bytes: int | None = None,
    learning_rate: float | None = None,
    device: str = "cpu",
    dtype: Literal["auto", "float32", "bfloat16"] = "auto",
    folder: str | os.PathLike[str] | None = None,
    resume: bool = True,
    heldout_share: float = HELDOUT_SHARE,
    seed: int = 0,
    text_column: str = "text",
    document: str = "file",
    errors: Errors = "strict",
    threads: int | None = None,
    progress: bool = False,
) -> Result:
    """Train a small transformer for each vocabulary and seed, and compare their bits per byte on held-out documents.

    The first vocabulary is the reference. Everything else is the same for all vocabularies: the documents and their
    order, the text of each training step, the learning rate, and the initial parameters other than embeddings.

    Parameters
    ----------
    data: documents; anything that `train` accepts and that can be read several times, except chunk counts.
    heldout: documents to evaluate on; by default, a fraction of the data is held out.
    texts, files: as in `train`, instead of `data`.
    tokenizers: vocabularies to compare: `Tokenizer` objects or paths, as a list or as a dict with names.
    grid: as in `sweep`: vocabularies to train on the training documents, after `tokenizers`.
    seeds: number of models for each vocabulary.
    scale: multiplies the parameters of the model and the bytes to train on, from which the options below follow.
    layers, width, context: number of blocks, width (a multiple of 64), and context in tokens.
    training_bytes: bytes to train on; by default at most six million, multiplied by `scale`.
    heldout_bytes: bytes to evaluate on, in whole documents that are chosen at random.
    step_bytes: bytes of text in each training step.
    learning_rate: of AdamW, the same for all vocabularies.
    device: "cpu", "cuda", "cuda:1" or "mps".
    dtype: number format of most computations; "auto" chooses the fastest.
    folder: folder in which the result of each model is saved. Two experiments cannot use it at the same time.
    resume: whether to reuse the results in the folder. If not, they are removed.
    heldout_share, seed, text_column, document, errors: as in `ExperimentData.of`.
    threads: number of threads for the models; all cores by default. It changes results slightly, by rounding.
    progress: whether to display a progress bar.

    """
    check_integer("seeds", seeds, 1)
    check_integer("seed", seed, 0)
    check_threads(threads)
    check_names(device, dtype)
    sizes = {"layers": layers, "width": width, "context": context, "step_bytes": step_bytes}
    amounts = {"training_bytes": training_bytes, "heldout_bytes": heldout_bytes, "learning_rate": learning_rate}
    options = Options.of(scale, **sizes, **amounts)
    if tokenizers is None and grid is None:
        raise TypeError("pass tokenizers, grid, or both")
    given = {} if tokenizers is None else _checked(named_tokenizers(tokenizers))
    named = None if grid is None else Grid.of(grid)
    reading = ReadOptions(text_column, document=document, errors=errors)
    documents = _documents(data, heldout, texts, files, reading, heldout_share, seed)
    combinations = {} if named is None else _combinations(named, given, documents)
    number_format = check_device(device, dtype)
    with ExitStack() as stack:
        path = None if folder is None else Path(folder)
        if path is not None:
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(path))
        used = Texts.of(documents, options, is_exact=training_bytes is not None, seed=seed, errors=errors)
        trained = {} if named is None else _trained(named, combinations, documents)
        encoders = {name: Encoder(name, each, threads) for name, each in (given | trained).items()}
        tokens = {name: each.tokens(used.heldout) for name, each in encoders.items()}
        for each in encoders.values():
            each.tokens(used.training)  # raises an error before anything is trained
        wanted = [(name, number) for number in range(seeds) for name in encoders]
        description = {"texts": used.digest, "options": options.recorded(), "dtype": number_format}
        saved = SavedRuns(path, description, encoders, resume)
        todo = [each for each in wanted if not saved.load(*each)]
        update = stack.enter_context(bar("training", len(wanted), show=progress))
        for done, (name, number) in enumerate(todo, len(wanted) - len(todo)):
            on_progress = partial(_show, update, done, name, number)
            checkpoint = saved.checkpoint(name, number)
            run = train_model(
                encoders[name], used, options, number, device, number_format, threads, checkpoint, on_progress
            )
            saved.add(name, number, run)
    compared = Compared(
        {name: [saved[name, number] for number in range(seeds)] for name in encoders}, used.heldout_sizes, tokens
    )
    trained_on = sum(len(text) for text in used.training)
    parameters = {
        "data": source_names(documents.corpus),
        "held-out text": f"{plural(len(used.heldout), 'document')}, {sum(used.heldout_sizes):,} bytes",
        "training text": f"{plural(len(used.training), 'document')}, {trained_on:,} bytes",
        **({"copies of held-out documents, not trained on": used.left_out} if used.left_out else {}),
        "seeds": seeds,
        "seed": seed,
        **options.recorded(),
        "device": device,
        "dtype": number_format,
    }
    return Result("language-model", parameters, tables(compared), figures(compared), findings(compared))


def _show(update: Any, done: int, name: str, number: int, part: float, bits: float | None) -> None:
    state = "" if bits is None else f", {bits:.3f} bits per byte"
    update(done + part, f"{name}, seed {number}{state}")


def _checked(tokenizers: Mapping[str, Any]) -> dict[str, Tokenizer]:
    """Return tokenizers, and raise unless all of them are of this package, whose encoding can be checked."""
    for name, each in tokenizers.items():
        if not isinstance(each, Tokenizer):
            reason = "must contain tokenizers of batchbpe, or paths"
            raise ArgumentTypeError("tokenizers", f"{name}: {type(each).__name__}", reason)
    return dict(tokenizers)


def _documents(
    data: Any, heldout: Any, texts: Any, files: Any, reading: ReadOptions, heldout_share: float, seed: int
) -> DividedDocuments:
    """Return the documents to train on, and those held out."""
    if isinstance(data, ExperimentData):
        documents = data.documents
        if documents is None:
            raise DataError("language models need documents, some of which are held out", remedy=MORE_DOCUMENTS)
        return documents
    corpus = Corpus(data, texts, files, reading)
    other = None if heldout is None else Corpus(heldout, options=reading)
    for each in filter(None, (corpus, other)):
        if any(source.is_counts for source in each.sources):
            raise DataError("language models need documents, not chunk counts", remedy="pass the documents")
        if each.read_once:
            reason = f"language models need to read the data twice, but {each.read_once} can be read only once"
            raise DataError(reason, remedy="save it to a file, or pass a list of texts")
    return DividedDocuments(corpus, other, heldout_share, seed)


def _combinations(named: Grid, given: Mapping[str, Any], documents: DividedDocuments) -> dict[str, Combination]:
    """Return the vocabularies to train by name. What can be wrong is checked before anything is read."""
    combinations = {label(each): each for each in named.combinations()}
    for name, each in combinations.items():
        named.found_tokens(each)  # invalid options raise an error
        if name in given:
            raise ArgumentError("tokenizers", name, "must have other names than the vocabularies of the grid")
        if named.data(each) is not None and documents.are_of_one_corpus:
            reason = "must be given if the grid contains data, so that all vocabularies are compared on the same text"
            raise ArgumentError("heldout", None, reason)
    return combinations


def _trained(named: Grid, combinations: Mapping[str, Combination], documents: DividedDocuments) -> dict[str, Tokenizer]:
    """Train the vocabularies of a grid on the training documents, or on data in the grid."""

    def counted(each: Combination) -> ExperimentData:
        own = named.data(each)
        corpus = None if own is None else Corpus(own, options=documents.corpus.options)
        return documents.counted(named.split(each), named.found_tokens(each), corpus)

    found = {}
    for each, trained in train_grid(named, combinations.values(), counted, lambda _: None):
        check_trained(trained)
        found[label(each)] = trained.tokenizer
    return {name: found[name] for name in combinations}
