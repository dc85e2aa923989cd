"""`batchbpe train`."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

from .app import UsageError, command, find_sources, load, note, print_json
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
    SpecialTokens,
    TextColumn,
    Threads,
    option,
)


class PolicyName(str, Enum):
    """The policies of the paper."""

    serial = "serial"
    naive = "naive"
    positional = "positional"
    continue_search = "continue_search"


@command
def train(
    inputs: Annotated[list[str], typer.Argument(help="A file of counts, or documents as for `count`.")],
    output: Annotated[Path, option("Name of the model: writes OUTPUT.model and OUTPUT.vocab.", "--output", "-o")],
    vocab_size: Annotated[int, option("Total number of tokens.", "--vocab-size", "-n", min=1)],
    stop_list_size: Annotated[int, option("Number of stop words: most frequent chunks as whole tokens.", min=0)] = 0,
    freq_cutoff: Annotated[int, option("Ignore chunks that occur fewer times.", min=0)] = 1,
    special_token: SpecialTokens = None,
    pattern: Annotated[str | None, option(f"{PATTERN_HELP} Default: gpt4, or that of the counts.")] = None,
    policy: Annotated[PolicyName, option("How pairs are chosen for a batch.")] = PolicyName.continue_search,
    cap_divisor: Annotated[int, option("Search at most MERGES_REMAINING / CAP_DIVISOR pairs per batch.", min=1)] = 2,
    max_batch_size: Annotated[int, option("Search at most this many pairs per batch; 0 for no limit.", min=0)] = 0,
    overlapping: Annotated[bool, option("Count pairs as QuickTokenizer does.", "--overlapping")] = False,
    base: Annotated[Path | None, option("Model to extend.")] = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a vocabulary.

    Example: batchbpe train counts.parquet --vocab-size 50304 --stop-list-size 100 -o mine
    """
    from ..memory import peak_memory
    from ..progress import format_size
    from ..storage.atomic import check_writable
    from ..tokenizer import Tokenizer

    for place in inputs:
        if place.endswith((".model", ".tiktoken")):
            raise UsageError(f"{place} is a model, not data; to extend a model, use --base")
    if not output.name:
        raise UsageError("--output must not be empty")
    path = output if output.suffix == ".model" else output.with_name(output.name + ".model")
    check_writable(path)
    start = time.monotonic()
    counted = [start]
    sizes: list[int] = []
    errors: Literal["strict", "replace"] = "replace" if replace_errors else "strict"
    tokenizer = Tokenizer.train(
        find_sources(inputs, text_column, jsonl_field, errors, max_document_bytes),
        vocab_size,
        pattern=pattern,
        stop_list_size=stop_list_size,
        freq_cutoff=freq_cutoff,
        special_tokens=special_token or [],
        cap_divisor=cap_divisor,
        max_batch_size=max_batch_size,
        policy=policy.value,
        overlapping=overlapping,
        base=load(base) if base else None,
        errors=errors,
        sample=sample,
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
        "model": str(path), "tokens": len(tokenizer.vocab), "merges": len(tokenizer.merges), "batches": len(sizes),
        "seconds_reading": round(counted[-1] - start, 3), "seconds": round(seconds, 3), "peak_memory": peak_memory(),
    }  # fmt: skip
    if json:
        print_json(result)
    mean = sum(sizes) / max(1, len(sizes))
    note(
        f"trained {result['tokens']:,} tokens: {len(tokenizer.stop_words)} stop words, "
        f"{len(tokenizer.special_tokens)} special tokens, {sum(sizes):,} merges in {len(sizes)} batches "
        f"(mean size {mean:.0f}); {counted[-1] - start:.1f} s reading, {seconds:.1f} s training, "
        f"{format_size(peak_memory())} of memory\n{path}",
        quiet or json,
    )
