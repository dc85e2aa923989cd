"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from ..choices import Normalization, Unit
from ..data.files import COMPRESSIONS
from ..data.readers import FORMATS
from ..formats.roles import RoleOptions
from ..options import HelpGroup, shell_options
from ..util.documentation import page
from ..util.surrogates import Errors
from .usage import UsageError, number, one_of, refuse

Command = Callable[..., None]
COUNTS = ".csv"
"""Suffix of files that can only contain chunk counts."""


def option(help: str, *names: str, group: HelpGroup | None = None, **rest: Any) -> Any:
    """Return an option, named after its parameter by default. Files are not checked here but when they are read."""
    return typer.Option(*names, help=help, readable=False, rich_help_panel=group, **rest)


def takes(*classes: type, **changes: dict[str, Any]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command an option for each field of some dataclasses.

    The command receives them as one dict, its parameter `options`. `changes` replaces settings of single options.
    """
    added = {}
    for options in classes:
        for each in shell_options(options):
            group = each.metadata["group"] or vars(options)["GROUP"]
            settings = {"group": group} | changes.get(each.name, {})
            added[each.name] = (_annotation(each, settings), _default(each))
    return with_options("options", added, lambda given: given)


def with_options(
    parameter: str, added: dict[str, tuple[Any, Any]], convert: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[[Command], Command]:
    """Return a decorator that replaces a parameter of a command with options: their types and defaults by name."""
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in added.items()
    ]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            values = {name: given.pop(name) for name in added}
            command(**given, **{parameter: convert(values)})

        parameters: list[Parameter] = []
        signature = inspect.signature(command, eval_str=True)
        for each in signature.parameters.values():
            replaced = options if each.name == parameter else [each.replace(kind=Parameter.KEYWORD_ONLY)]
            parameters += replaced
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call

    return decorate


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


def _annotation(field: Field[Any], changes: dict[str, Any]) -> Any:
    """Return the type of an option with its settings, from its default value."""
    kind: Any = type(field.default)
    least = field.metadata["least"]
    settings: dict[str, Any] = {"metavar": field.name.rpartition("_")[2].upper()}
    if field.default is MISSING or kind is int:
        kind, settings = int, number(int, least=least)
    elif field.default is None:
        kind = str | None
    elif kind is bool:
        settings = {"names": [f"--{field.name.replace('_', '-')}"]}
    elif field.metadata["choices"]:
        settings |= one_of(field.metadata["choices"])
    settings |= changes
    names, help = settings.pop("names", []), settings.pop("help", field.metadata["help"])
    return Annotated[settings.pop("type", kind), option(help, *names, **settings)]


Inputs = Annotated[
    list[str],
    typer.Argument(
        help=f"Files, folders, globs or URLs: {', '.join(suffix for suffix in FORMATS if suffix != COUNTS)}, or chunk "
        f"counts ({COUNTS}, .parquet), optionally compressed ({', '.join(COMPRESSIONS)}); - for standard input."
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(help="A .model, .tiktoken or tokenizer.json file, or a transformers folder.", readable=False),
]
PATTERN_HELP = f"Split pattern: a name, such as gpt4, o200k or llama3, or a regular expression ({page('patterns')})."
NormalizationForm = Annotated[
    Normalization | None,
    option(
        "Unicode normalization of the text before it is split: none, NFC, NFD, NFKC or NFKD.",
        "--normalization",
        group="Splitting",
        metavar="FORM",
        show_default="from the counts, or none",
        **one_of(get_args(Normalization)),
    ),
]
RankPattern = Annotated[
    str | None,
    option(
        "Split pattern of a .tiktoken file that is not from OpenAI.", "--pattern", group="Splitting", metavar="PATTERN"
    ),
]
TextColumn = Annotated[str, option("Table column or jsonl field that contains the text.", group="Data", metavar="NAME")]
JsonlField = Annotated[
    str | None,
    option("Like --text-column, for jsonl only. Standard input is then read as jsonl.", group="Data", metavar="NAME"),
]
Document = Annotated[
    str,
    option("Document in text files: file, line, blank-line, or a separator.", group="Data", metavar="SEPARATOR"),
]
LimitBytes = Annotated[
    int | None,
    option("Stop after N bytes of text; only whole text files are cut.", group="Data", **number(int, least=1)),
]
Sample = Annotated[
    float | None,
    option("Fraction of documents to use, e.g. 0.1.", group="Data", show_default="1.0", **number(float)),
]
Seed = Annotated[int, option("Random seed for --sample.", group="Data", **number(int, least=0))]


ROLES: dict[str, dict[str, Any]] = {each.name: {"metavar": "TOKEN"} for each in shell_options(RoleOptions)}
ROLES["chat_template"] = {"type": Path | None, "metavar": "FILE"}
"""Settings of the options for roles, for `takes`."""


ReplaceErrors = Annotated[bool, option("Replace invalid UTF-8 with U+FFFD.", "--replace-errors", group="Data")]


def error_policy(replace_errors: bool) -> Errors:
    """Return the value of `errors`."""
    return "replace" if replace_errors else "strict"


def document_limit(default: str) -> Any:
    """Return the option --max-document-bytes."""
    help = "Maximum size of a document, or of a piece of a text file that cannot be cut."
    return Annotated[int | None, option(help, group="Data", show_default=default, **number(int, least=1, most=1 << 40))]


def reads(**changes: Any) -> Callable[[Command], Command]:
    """Return a decorator that gives a command the options for reading documents.

    The command receives those that are set as one dict, its parameter `reading`, whose keys are those of
    `data.options.Reading`. `changes` replaces the types of single options.
    """
    types = {
        "text_column": TextColumn,
        "jsonl_field": JsonlField,
        "document": Document,
        "limit_bytes": LimitBytes,
        "sample": Sample,
        "seed": Seed,
        "replace_errors": ReplaceErrors,
        "max_document_bytes": document_limit("1 GiB"),
    }
    defaults = {"text_column": "text", "document": "file", "seed": 0, "replace_errors": False}
    return with_options("reading", {name: (each, defaults.get(name)) for name, each in (types | changes).items()}, _set)


def _set(given: dict[str, Any]) -> dict[str, Any]:
    if given["sample"] is None and given["seed"]:
        raise UsageError("--seed has no effect without --sample; remove it")
    errors = error_policy(given.pop("replace_errors"))
    return {name: value for name, value in given.items() if value is not None} | {"errors": errors}


GroupColumn = Annotated[str | None, option("Table column or jsonl field with the groups to compare.", metavar="NAME")]
ByFile = Annotated[bool, option("Compare files; each file is a group.", "--by-file")]
Parity = Annotated[
    str | None,
    option("Reference group.", metavar="GROUP", show_default="the cheapest for the first model"),
]
Per = Annotated[
    Unit | None,
    option(
        "Unit of comparison: byte, character, word, or text if all groups have the same content.",
        metavar="UNIT",
        show_default="character",
        **one_of(get_args(Unit)),
    ),
]


def check_groups(
    group_column: str | None, by_file: bool, parity: str | None, per: Unit | None, reading: dict[str, Any]
) -> None:
    """Raise a usage error if options for groups cannot be combined."""
    grouped = bool(group_column or by_file)
    refuse(
        {
            "--group-column cannot be combined with --by-file": group_column and by_file,
            "--parity needs --group-column or --by-file": parity is not None and not grouped,
            "--per needs --group-column or --by-file": per and not grouped,
            "--limit-bytes has no effect on groups, which are read completely; remove it": "limit_bytes" in reading
            and grouped,
            "--sample cannot be combined with --group-column": group_column and reading.get("sample", 1) != 1,
        }
    )


Resume = Annotated[bool, option("Continue an interrupted job.", "--resume", group="Execution")]
SkipErrors = Annotated[
    bool,
    option(
        "Continue past files that cannot be read, and list them at the end.", "--skip-errors/--strict", group="Data"
    ),
]
Threads = Annotated[
    int | None,
    option("Number of threads.", group="Execution", show_default="all cores", **number(int, least=1, most=1 << 16)),
]
Quiet = Annotated[bool, option("Do not print progress or a summary.", "--quiet", "-q", group="Output")]
Json = Annotated[bool, option("Print the result as JSON.", "--json", group="Output")]
EngineName = Literal["local", "spark"]
Engine = Annotated[
    EngineName,
    option(
        f"local, or spark to run on a cluster ({page('scale')}).",
        group="Execution",
        metavar="ENGINE",
        **one_of(get_args(EngineName)),
    ),
]
Master = Annotated[
    str | None,
    option(
        "Spark cluster, e.g. yarn or local[4].",
        group="Execution",
        metavar="URL",
        show_default="from Spark's configuration",
    ),
]


def is_spark(engine: EngineName, master: str | None, output: str | None, unsupported: dict[str, bool]) -> bool:
    """Return whether to use Spark, which writes a folder. Options that it does not support are an error."""
    if engine == "local" and master is not None:
        raise UsageError("--master needs --engine spark")
    for name, is_given in unsupported.items():
        if engine == "spark" and is_given:
            raise UsageError(f"{name} is not supported with --engine spark; remove it")
    if engine == "spark" and output and output.endswith((".csv", ".npy", ".bin")):
        raise UsageError(f"--output is a folder with --engine spark; {output} is the name of a file")
    return engine == "spark"
