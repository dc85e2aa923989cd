"""`batchbpe train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from ..errors import plural, short
from .app import command, load, note, print_json
from .options import (
    PATTERN_HELP,
    Json,
    JsonlField,
    LimitBytes,
    MaxDocumentBytes,
    Quiet,
    ReplaceErrors,
    Sample,
    Seed,
    TextColumn,
    Threads,
    error_policy,
    option,
    sampled_share,
)
from .usage import UsageError, number, one_of

PolicyName = Literal["serial", "naive", "positional", "continue_search"]
"""The policies of the paper."""
Ties = Literal["ids", "huggingface"]
"""As in `training_options`."""


def _count_or_auto() -> dict[str, Any]:
    """Return the settings of an option whose value is a number or auto."""

    def parse(text: str) -> str:
        if text != "auto" and not text.isdecimal():
            raise typer.BadParameter(f"must be a number or auto, got {short(text)}")
        return text

    return {"parser": parse, "metavar": "N"}


@command
def train(
    inputs: Annotated[list[str], typer.Argument(help="Documents or files of chunk counts, as for `count`.")],
    output: Annotated[Path, option("Write NAME.model and NAME.vocab.", "--output", "-o", metavar="NAME")],
    vocab_size: Annotated[int, option("Total number of tokens.", "--vocab-size", "-n", **number(int))],
    stop_list_size: Annotated[
        int, option("Make the N most frequent chunks single tokens (stop words).", **number(int, least=0))
    ] = 0,
    freq_cutoff: Annotated[int, option("Ignore chunks that occur fewer than N times.", **number(int, least=0))] = 1,
    special_token: Annotated[
        list[str] | None, option("Special token to add; not counted as text. Can be repeated.", metavar="TOKEN")
    ] = None,
    pattern: Annotated[
        str | None, option(PATTERN_HELP, metavar="PATTERN", show_default="from the counts, or gpt4")
    ] = None,
    policy: Annotated[
        PolicyName,
        option(
            "How to choose the pairs of a batch: serial, naive, positional or continue_search.",
            metavar="POLICY",
            **one_of(get_args(PolicyName)),
        ),
    ] = "continue_search",
    cap_divisor: Annotated[
        int, option("Search at most (remaining merges / N) pairs per batch.", **number(int, least=1))
    ] = 2,
    max_batch_size: Annotated[
        int, option("Search at most N pairs per batch; 0 means no limit.", **number(int, least=0))
    ] = 0,
    overlapping: Annotated[bool, option("Count overlapping pairs, as QuickTokenizer does.", "--overlapping")] = False,
    ties: Annotated[
        Ties,
        option("Order of pairs with equal counts: ids or huggingface.", metavar="ORDER", **one_of(get_args(Ties))),
    ] = "ids",
    base: Annotated[Path | None, option("Model to extend.", metavar="MODEL")] = None,
    phrases: Annotated[
        str,
        option(
            'Number of tokens for phrases such as " of the", or auto to balance them with merges.', **_count_or_auto()
        ),
    ] = "0",
    phrase_chunks: Annotated[
        str,
        option(
            "Chunks of which phrases consist: letters, text (also punctuation), or a regular expression.",
            metavar="KIND",
        ),
    ] = "letters",
    max_words: Annotated[int, option("Largest number of chunks in a phrase.", **number(int, least=2))] = 4,
    phrase_sample: Annotated[
        float | None,
        option("Share of the text to learn phrases from.", show_default="up to 256 MiB of text", **number(float)),
    ] = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = None,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a tokenizer on documents or chunk counts.

    Example: batchbpe train counts.parquet --vocab-size 50304 -o mine
    """
    from ..data.options import MAX_DOCUMENT_BYTES
    from ..storage.atomic import check_writable
    from ..tokenizer import Tokenizer
    from ..util.memory import peak_memory
    from ..util.progress import format_size

    for place in inputs:
        if place.endswith((".model", ".tiktoken")):
            raise UsageError(f"{place} is a model, not data; to extend a model, use --base")
    if not output.name:
        raise UsageError("--output must be a file name")
    path = output if output.suffix == ".model" else output.with_name(output.name + ".model")
    check_writable(path)
    start = time.monotonic()
    counted = [start]
    sizes: list[int] = []
    tokenizer = Tokenizer.train(
        files=inputs,
        vocab_size=vocab_size,
        pattern=pattern,
        stop_list_size=stop_list_size,
        freq_cutoff=freq_cutoff,
        special_tokens=special_token or [],
        cap_divisor=cap_divisor,
        max_batch_size=max_batch_size,
        policy=policy,
        overlapping=overlapping,
        ties=ties,
        base=load(base) if base else None,
        phrases="auto" if phrases == "auto" else int(phrases),
        phrase_chunks=phrase_chunks,
        max_words=max_words,
        phrase_sample=phrase_sample,
        text_column=text_column,
        jsonl_field=jsonl_field,
        errors=error_policy(replace_errors),
        max_document_bytes=max_document_bytes or MAX_DOCUMENT_BYTES,
        sample=sampled_share(sample, seed),
        seed=seed,
        limit_bytes=limit_bytes,
        progress=not quiet,
        on_counts=lambda _: counted.append(time.monotonic()),
        on_batch=lambda batch: sizes.append(batch.size),
        threads=threads,
    )
    tokenizer.save(output)
    seconds = time.monotonic() - counted[-1]
    result = {
        "model": str(path), "tokens": len(tokenizer.vocab), "merges": len(tokenizer.merges),
        "phrases": len(tokenizer.phrases), "batches": len(sizes),
        "seconds_reading": round(counted[-1] - start, 3), "seconds": round(seconds, 3), "peak_memory": peak_memory(),
    }  # fmt: skip
    if json:
        print_json(result)
    mean = sum(sizes) / max(1, len(sizes))
    made = [plural(sum(sizes) - len(tokenizer.phrases), "merge")]
    made += [plural(len(tokenizer.phrases), "phrase")] * bool(tokenizer.phrases)
    note(
        f"trained {plural(len(tokenizer.vocab), 'token')}: {plural(len(tokenizer.stop_words), 'stop word')}, "
        f"{plural(len(tokenizer.special_tokens), 'special token')}, {' and '.join(made)} in "
        f"{plural(len(sizes), 'batch')} "
        f"(mean size {mean:.0f}); {counted[-1] - start:.1f} s reading, {seconds:.1f} s training, "
        f"{format_size(peak_memory())} of memory\n{path}",
        quiet or json,
    )
