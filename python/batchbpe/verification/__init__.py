"""Compare this core with every engine that reads the same files: `verify`.

>>> import tempfile
>>> from batchbpe import Tokenizer
>>> with tempfile.TemporaryDirectory() as folder:
...     Tokenizer.train("to be or not to be", 260).export(f"{folder}/tokenizer.json", "huggingface")
...     verification = verify(f"{folder}/tokenizer.json", against=["tokenizers"])
>>> verification.ok, [(result.engine, result.status) for result in verification.results]
(True, [('test file', 'equal'), ('tokenizers', 'equal')])
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from .. import __version__
from ..arguments import check_iterable, check_path
from ..choices import EngineName
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling
from ..errors import ArgumentError, DataError
from ..formats import format_of, golden
from ..formats.golden_texts import texts_for
from ..options import accepting
from ..patterns import Split
from ..tokenizer import Tokenizer
from ..util.progress import Meter, bar, format_size
from .adapters import FOLDER, Export
from .compare import Run, failure, golden_result
from .config import check_config
from .engines import ENGINES, Engine
from .reference import Reference
from .results import TEST_FILE, Result, Verification
from .results import Difference as Difference
from .texts import batches, document_texts, token_texts

if TYPE_CHECKING:
    from typing_extensions import Unpack


@accepting(ReadOptions, Sampling)
def verify(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    against: Iterable[str] = (),
    config: str | os.PathLike[str] | None = None,
    pattern: Split | str | None = None,
    data: Data | None = None,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> Verification:
    """Load files with every engine that is installed, and compare the ids with those of this core.

    The reference is the first file, loaded by this core. The texts are built-in hard cases, every token, and the given
    data. Special tokens in a text are tokens, and nothing is added.

    Parameters
    ----------
    paths: tokenizers in any format, and test files (`*.test.json`). A test file next to a tokenizer is used too.
    against: engines to compare with, such as "tokenizers"; by default all that are installed.
    config: the config.json of the model, for AutoTokenizer and for the size of the vocabulary; by default the one in
        the folder.
    pattern: split pattern of rank files, which do not store it; by default that of the published file with the same
        ranks, or of the reference.
    data: anything that `ChunkCounts.count` accepts, except chunk counts, to compare besides the built-in texts.
    texts: compare these strings, whatever they look like, instead of `data`.
    files: compare these paths, globs, folders or URLs instead of `data`; "-" is standard input.
    {reading}
    threads: number of threads of this core; all cores by default.
    progress: whether to display a progress bar.

    """
    given = _paths(paths)
    names = _names(against)
    engines = [engine for engine in ENGINES if engine.name in names] or [*ENGINES]
    corpus = None
    if not data is texts is files is None:
        corpus = Corpus.of(data, texts, files, reading)
        _ = corpus.sources  # a missing file is an error before anything else is done
    exports, test_files = _exports(given, config, pattern)
    tokenizer = exports[0].tokenizer
    assert tokenizer is not None
    problems, notes = _check_configs(exports, tokenizer, is_required=config is not None)
    if names:
        _check_used(engines, exports)
    reference = Reference(tokenizer, threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about text that is lost, and from other packages
        results = [golden_result(path, reference) for path in test_files]
        runs, others = _load(exports, engines, reference, asked=bool(names))
        built_in = texts_for(tokenizer.model)
        _compare(runs, built_in, token_texts(tokenizer.model), corpus, progress)
        results += [run.result(built_in) for run in runs] + others
    _check_results(exports, results, tokenizer, problems, notes)
    return Verification(
        str(exports[0].path), __version__, tokenizer.vocab_size, tokenizer.n_vocab, results, problems, notes
    )


def _paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    check_iterable("paths", paths, "must be a path, or several")
    given = [*paths]
    for path in given:
        check_path("paths", path)
    if not given:
        raise ArgumentError("paths", given, "must contain at least one path")
    repeated = next((path for path in given if given.count(path) > 1), None)
    if repeated is not None:
        raise ArgumentError("paths", str(repeated), "must contain each path once")
    return [*map(Path, given)]


def _names(against: Iterable[str]) -> list[str]:
    if isinstance(against, str):
        against = [against]
    check_iterable("against", against, "must be names of engines")
    names = [*against]
    for name in names:
        found = [engine for engine in ENGINES if engine.name == name]
        if not found:
            raise ArgumentError("against", name, f"must be one of {', '.join(get_args(EngineName))}")
        if found[0].version is None:
            remedy = f"run pip install {found[0].package}"
            raise ArgumentError("against", name, "must be an engine that is installed", remedy=remedy)
    return names


def _check_used(engines: Sequence[Engine], exports: Sequence[Export]) -> None:
    for engine in engines:
        same = [each for each in engines if each.name == engine.name]
        if not any(each.reads(export) for each in same for export in exports):
            reason = "must be an engine that reads one of the files"
            raise ArgumentError("against", engine.name, reason, remedy=f"it reads {engine.files}: export to one")


def _exports(
    paths: Sequence[Path], config: str | os.PathLike[str] | None, pattern: Split | str | None
) -> tuple[list[Export], list[Path]]:
    """Load every tokenizer with this core, and return them and the test files."""
    test_files = [path for path in paths if path.name.endswith(golden.SUFFIX)]
    tokenizers = [path for path in paths if path not in test_files]
    if paths[0] in test_files:
        reason = "must start with a tokenizer, which test files are compared with"
        raise ArgumentError("paths", str(paths[0]), reason)
    exports: list[Export] = []
    for path in tokenizers:
        exports.append(_export(path, config, pattern, exports[0].tokenizer if exports else None))
        beside = golden.path_beside(path)
        if beside.is_file() and not any(beside.samefile(each) for each in test_files if each.exists()):
            test_files.append(beside)
    return exports, test_files


def _export(
    path: Path, config: str | os.PathLike[str] | None, pattern: Split | str | None, reference: Tokenizer | None
) -> Export:
    inside = path / "config.json"
    found = Path(config) if config is not None else inside if inside.is_file() else None
    export = Export(path, _format_of(path), config=found)
    try:
        return replace(export, tokenizer=_tokenizer(export, pattern, reference))
    except (ValueError, NotImplementedError) as error:
        is_read = any(engine.reads(export) for engine in ENGINES if engine.name != "batchbpe")
        if reference is None or not is_read:
            raise
        return replace(export, problem=failure(error))


def _format_of(path: Path) -> str:
    if path.is_dir():
        return FOLDER
    if not path.is_file():
        return ""  # loading it raises an error
    return format_of(path) or ""


def _tokenizer(export: Export, pattern: Split | str | None, reference: Tokenizer | None) -> Tokenizer:
    """Load a file. If a rank file is not recognized, the reference or the test file has what it does not store."""
    path, beside = export.path, golden.path_beside(export.path)
    is_described = reference is not None or beside.is_file()
    if pattern is None or export.format != "tiktoken":
        try:
            return Tokenizer.from_file(path)
        except DataError:
            if export.format != "tiktoken" or not is_described:
                raise
    if reference is not None:
        return Tokenizer.from_tiktoken(path, pattern or reference.model.split, reference.special_tokens)
    if not is_described:
        return Tokenizer.from_tiktoken(path, pattern)
    test = golden.load(beside)
    return Tokenizer.from_tiktoken(path, pattern or test.split, test.special_tokens)


def _load(
    exports: Sequence[Export], engines: Sequence[Engine], reference: Reference, *, asked: bool
) -> tuple[list[Run], list[Result]]:
    """Load every file with every engine that reads it. Return what was loaded, and results for the rest."""
    runs: list[Run] = []
    others: dict[str, Result] = {}
    for export in exports:
        for engine in engines:
            if (engine.name == "batchbpe" and export is exports[0]) or not engine.reads(export):
                continue
            result = Result(engine.name, engine.version, str(export.path), "not installed", asked=asked)
            if engine.version is None:
                others.setdefault(engine.name, result)
                continue
            try:
                runs.append(Run(engine, export, engine.load(export), reference, asked))
            except BaseException as error:
                key = f"{engine.name} {export.path} {engine.load.__name__}"
                others[key] = replace(result, status="cannot load", reason=failure(error))
    return runs, [*others.values()]


def _compare(
    runs: Sequence[Run], built_in: list[str], tokens: list[str], corpus: Corpus | None, progress: bool
) -> None:
    for batch in (built_in, *batches(tokens)):
        _compare_batch(runs, batch, decoding=batch is built_in)
    if corpus is None:
        return
    meter = Meter(corpus.sources)
    with bar("comparing", meter.size, show=progress) as update:
        for batch in batches(document_texts(corpus)):
            _compare_batch(runs, batch)
            update(meter.done, format_size(meter.done))


def _compare_batch(runs: Sequence[Run], batch: list[str], *, decoding: bool = False) -> None:
    encoded: dict[bool, list[list[int]]] = {}
    for run in runs:
        parses_special = run.loaded.parses_special
        if parses_special not in encoded:
            encoded[parses_special] = run.reference.encode(batch, parses_special)
        run.compare(batch, encoded[parses_special], decoding=decoding)


def _check_configs(
    exports: Sequence[Export], tokenizer: Tokenizer, *, is_required: bool
) -> tuple[list[str], list[str]]:
    """Return problems and notes. Only an unusable configuration that was asked for is an error."""
    problems, notes = [], []
    for path in dict.fromkeys(export.config for export in exports if export.config):
        try:
            found = check_config(path, tokenizer.model, is_required=is_required)
        except (OSError, ValueError) as error:
            if is_required:
                raise
            found = [failure(error)], []
        problems += found[0]
        notes += found[1]
    return problems, notes


def _check_results(
    exports: Sequence[Export], results: Sequence[Result], tokenizer: Tokenizer, problems: list[str], notes: list[str]
) -> None:
    for export in exports[1:]:
        of_path = [result for result in results if result.file == str(export.path)]
        if of_path and not any(result.status in ("equal", "different") for result in of_path):
            problems.append(f"{export.path}: no engine could load it")
    sizes = (tokenizer.vocab_size, tokenizer.n_vocab)
    for result in results:
        if result.vocab_size not in (None, *sizes):
            notes.append(
                f"{result.engine} ({result.file}) has {result.vocab_size:,} tokens, and the reference {sizes[0]:,}"
            )
        if result.engine == TEST_FILE and result.status == "equal" and result.detail:
            notes.append(f"{result.file}: {result.detail}, although its texts have the same ids")
