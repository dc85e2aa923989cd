"""`atlas`: one page about any number of vocabularies, which need not be evaluated on a text.

Each file that can be loaded is described; the others are listed with the reason. `page` renders the result as HTML.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...choices import Unit
from ...data.corpus import Data, Files
from ...data.options import Reading, ReadOptions, Sampling
from ...errors import ArgumentError, DataError, Setting, plural
from ...formats import Loadable, is_rank_file, load_any, tiktoken
from ...options import accepting
from ...patterns import Split
from ...tokenizer import Tokenizer
from ...util.lazy import lazy
from ...util.progress import bar
from ..auditing import audit
from ..evaluation import evaluate
from ..evaluation_table import EvaluationTable
from ..evaluator import unique_names
from ..tables import Table, Tabular, formatted
from .content import content_of
from .exports import ENGINES
from .facts import Facts, Union, facts_of, ordinary
from .page import write

if TYPE_CHECKING:
    from typing_extensions import Unpack

COMMON = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json")
"""Names of files that many models have: a file with one of these is named after its folder."""
_DEFAULTS = {"by_file": False, "per": "character", **asdict(ReadOptions()), **asdict(Sampling())}


@accepting(ReadOptions, Sampling)
def atlas(
    tokenizers: Mapping[str, Loadable] | Loadable | Iterable[Loadable],
    data: Mapping[str, Data] | Data | None = None,
    *,
    texts: Mapping[str, str | Iterable[str]] | str | Iterable[str] | None = None,
    files: Mapping[str, Files] | Files | None = None,
    group_column: str | None = None,
    by_file: bool = False,
    per: Unit = "character",
    parity: str | None = None,
    pattern: str | None = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> Atlas:
    """Describe vocabularies side by side, and evaluate them on a text if there is one.

    A file that cannot be loaded is listed in `Atlas.failures`. If none can be loaded, the first error is raised.

    Parameters
    ----------
    tokenizers: paths of tokenizers in any format, tokenizers, models, or a dict of names and these.
    data, texts, files, group_column, by_file, per, parity: as in `evaluate`; all of them can be omitted.
    pattern: split pattern of rank files that are not known by their ranks.
    {reading}
    threads: number of threads; all cores by default.
    progress: whether to display progress bars.

    >>> one, two = (Tokenizer.train("to be or not to be", size) for size in (256, 258))
    >>> found = atlas({"one": one, "two": two}, {"en": "to be", "de": "zu sein"})
    >>> found.shared.tolist(), found.evaluation["two"].tokens
    ([[256, 256], [256, 258]], 10)
    >>> found.facts["two"].longest[0].text
    ' b'

    """
    has_text = any(each is not None for each in (data, texts, files))
    needing_text = {"group_column": group_column, "by_file": by_file, "per": per, "parity": parity, **reading}
    for name, value in needing_text.items():
        if value != _DEFAULTS.get(name) and not has_text:
            raise ArgumentError(name, value, "needs a text", remedy=("pass ", Setting("data")))
    given = _named(tokenizers)
    sources = {name: Path(each) for name, each in given.items() if isinstance(each, str | os.PathLike)}
    failures: dict[str, Exception] = {}
    facts: dict[str, Facts] = {}
    union = Union()
    evaluation = None
    if files is not None and not isinstance(files, str | os.PathLike | Mapping):
        files = list(files)
    tokenizers_by_name = _loaded(given, pattern, failures)
    if has_text:
        with bar("loading", len(given), show=progress) as update:
            together: dict[str, Tokenizer] = {}
            for name, tokenizer in tokenizers_by_name:
                together[name] = tokenizer
                update(len(together) + len(failures), name)
        _check_some(together, failures)
        evaluation = evaluate(
            together,
            data,
            texts=texts,
            files=files,
            group_column=group_column,
            by_file=by_file,
            per=per,
            parity=parity,
            audit=True,
            threads=threads,
            progress=progress,
            **reading,
        )
        tokenizers_by_name = iter(together.items())
    with bar("describing", len(given), show=progress) as update:
        for name, tokenizer in tokenizers_by_name:
            update(len(facts) + len(failures), name)
            contents = union.add(ordinary(tokenizer.model).values())
            audited = evaluation.audits[name] if evaluation else audit(tokenizer)
            facts[name] = facts_of(tokenizer, audited, contents, sources.get(name))
    _check_some(facts, failures)
    return Atlas(facts, union.shared(), failures, evaluation, sources, _paths(files))


def _loaded(
    given: Mapping[str, Loadable], pattern: str | None, failures: dict[str, Exception]
) -> Iterator[tuple[str, Tokenizer]]:
    """Load one after another, so that not all need to be in memory."""
    for name, source in given.items():
        try:
            tokenizer = Tokenizer(_load(source, pattern))
        except (DataError, OSError) as error:
            failures[name] = error
            continue
        yield name, tokenizer


def _paths(files: Any) -> list[str]:
    if isinstance(files, Mapping):
        return [path for each in files.values() for path in _paths(each)]
    several = [files] if isinstance(files, str | os.PathLike) else files or ()
    return [os.fspath(each) for each in several]


def _check_some(loaded: Mapping[str, object], failures: Mapping[str, Exception]) -> None:
    """Raise unless something was loaded."""
    if not loaded:
        first = next(iter(failures.values()))
        if len(failures) == 1:
            raise first
        raise DataError(f"none of the {plural(len(failures), 'file')} can be loaded; the first: {first}")


def _named(given: Mapping[str, Loadable] | Loadable | Iterable[Loadable]) -> dict[str, Loadable]:
    if isinstance(given, Mapping):
        named = {str(name): each for name, each in given.items()}
    else:
        is_one = isinstance(given, str | os.PathLike) or hasattr(given, "encode") or not isinstance(given, Iterable)
        several: list[Any] = [given] if is_one else list(given)  # type: ignore[arg-type]
        named = dict(zip(short_names(several), several, strict=True))
    if not named:
        raise ArgumentError("tokenizers", given, "must contain at least one tokenizer")
    return named


def short_names(given: Sequence[Any]) -> list[str]:
    """Return names for paths and tokenizers: of files with a common name, the folder; as many folders as needed.

    >>> short_names(["m/gpt2/tokenizer.json", "m/qwen/tokenizer.json", "a/x.model", "b/x.model"])
    ['gpt2', 'qwen', 'a/x.model', 'b/x.model']
    """
    unique = unique_names(given)
    parts = [
        Path(each).absolute().parts if isinstance(each, str | os.PathLike) else (name,)
        for each, name in zip(given, unique, strict=True)
    ]
    parts = [each[:-1] if len(each) > 2 and each[-1] in COMMON else each for each in parts]
    for size in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(each[-size:]) for each in parts]
        if len({*names}) == len(names):
            repeated = [each[-1] for each in parts]
            return [name if repeated.count(each[-1]) > 1 else each[-1] for name, each in zip(names, parts, strict=True)]
    return unique


def _load(source: Loadable, pattern: str | None) -> Any:
    try:
        return load_any("tokenizers", source, remedy="")
    except DataError:
        if pattern and isinstance(source, str | os.PathLike) and Path(source).is_file() and is_rank_file(Path(source)):
            return tiktoken.load(source, Split.of(pattern))
        raise


@dataclass(frozen=True, repr=False, eq=False)
class Atlas(Tabular):
    """Facts about vocabularies, by name; see `atlas`."""

    facts: Mapping[str, Facts]
    shared: npt.NDArray[np.int64]
    """How many different ordinary tokens, by their bytes, the vocabularies of a row and a column have in common."""
    failures: Mapping[str, Exception]
    """The files that cannot be loaded, and why."""
    evaluation: EvaluationTable | None = None
    """Metrics on the text, by group if there are groups, and audits."""
    sources: Mapping[str, Path] = field(default_factory=dict)
    """The paths of those that were files."""
    text_files: Sequence[str] = ()
    """The paths of the text, if it was given as `files`."""

    @lazy
    def content(self) -> dict[str, Any]:
        """All results, JSON-ready: what `write` writes, and what the page shows."""
        return content_of(self.facts, self.shared, self.failures, self.evaluation, self.sources, self.text_files)

    def tables(self) -> Iterator[Table]:
        """Yield the overview, the tokens per group, the overlap in percent and the engines as tables of text."""
        content = self.content
        described = content["vocabularies"]
        kinds = ("unreachable", "partial_utf8", "duplicates", "residues")
        yield (
            ["vocabulary", "tokens", *(kind.replace("_", " ") for kind in kinds), "missing bytes", "bytes per token"],
            [
                [
                    each["name"],
                    f"{each['numbers']['tokens']:,}",
                    *formatted(each[kind] and each[kind]["number"] for kind in kinds),
                    f"{len(each['missing_utf8_bytes']):,}",
                    *formatted([each["metrics"]["bytes_per_token"] if each["metrics"] else None]),
                ]
                for each in described
            ],
        )
        if self.evaluation and self.evaluation.groups:
            yield from self.evaluation.groups.tables()
        names = list(self.facts)
        shares = 100 * self.shared / np.maximum(1, self.shared.diagonal())[:, None]
        rows = [[name, *(f"{share:.1f}" for share in row)] for name, row in zip(names, shares.tolist(), strict=True)]
        yield ["tokens of … in …, %", *names], rows
        yield (
            ["exact export for", *ENGINES],
            [
                [name, *("yes" if each.exports[engine].exact else "no" for engine in ENGINES)]
                for name, each in self.facts.items()
            ],
        )
        if self.failures:
            yield ["not loaded", "because"], [[each["name"], each["error"]] for each in content["failures"]]

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write a self-contained page, and next to it the same results as JSON; return both paths.

        An existing JSON file is replaced only if it is of an atlas.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in atlas(Tokenizer.train("to be", 256)).write(f"{folder}/a.html")]
        ['a.html', 'a.json']
        """
        return write(self.content, Path(path))
