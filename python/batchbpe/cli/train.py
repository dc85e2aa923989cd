"""The command that trains."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from .app import command, load, note, print_json
from .options import Json, Quiet, ReplaceErrors, SpecialTokens, TextColumn, Threads, option


@command
def train(
    inputs: Annotated[list[str], typer.Argument(help="A file of counts, or what `count` takes.")],
    output: Annotated[Path, option("Writes OUTPUT.model, and OUTPUT.vocab to read.", "--output", "-o")],
    vocab_size: Annotated[int, option("How many tokens, in all.", "--vocab-size", "-n")],
    stop_list_size: Annotated[int, option("How many of the commonest chunks get tokens of their own.")] = 0,
    freq_cutoff: Annotated[int, option("Leave out chunks seen fewer times.")] = 1,
    special_token: SpecialTokens = None,
    pattern: Annotated[str | None, option("gpt2, gpt4 (the default), cl100k, o200k, or a regular expression.")] = None,
    policy: Annotated[str, option("serial, naive, positional or continue_search.")] = "continue_search",
    cap_divisor: Annotated[int, option("Search at most one in so many of the remaining merges.")] = 2,
    max_batch_size: Annotated[int, option("Merge at most so many pairs at once; 0: any number.")] = 0,
    overlapping: Annotated[bool, option("Count pairs as QuickTokenizer does.", "--overlapping")] = False,
    base: Annotated[Path | None, option("A model to go on from.")] = None,
    text_column: TextColumn = "text",
    replace_errors: ReplaceErrors = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a vocabulary.

    Example: batchbpe train counts.parquet --vocab-size 50304 --stop-list-size 100 -o mine
    """
    from .. import policies
    from ..chunks import ChunkCounts
    from ..files import check_writable
    from ..progress import peak_memory, size, training_bar
    from ..tokenizer import Tokenizer
    from ..training import Batch

    if policy not in ("serial", "naive", "positional", "continue_search"):
        raise ValueError(f"--policy {policy}: give serial, naive, positional or continue_search")
    check_writable(output.with_name(output.name + ".model"))
    old = load(base) if base else None
    start = time.monotonic()
    special_tokens = special_token or []
    sizes: list[int] = []
    with training_bar(show=not quiet) as show:

        def on_batch(batch: Batch) -> None:
            sizes.append(batch.size)
            if show:
                show(batch)

        counts = ChunkCounts.count(
            [iter([sys.stdin.read()]) if place == "-" else Path(place) for place in inputs],
            pattern or (old.pattern if old else None),
            special_tokens=special_tokens,
            text_column=text_column,
            errors="replace" if replace_errors else "strict",
            progress=not quiet,
            threads=threads,
        )
        counted = time.monotonic()
        tokenizer = Tokenizer.train(
            counts,
            vocab_size,
            stop_list_size=stop_list_size,
            freq_cutoff=freq_cutoff,
            special_tokens=special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=getattr(policies, policy),
            overlapping=overlapping,
            base=old,
            on_batch=on_batch,
            threads=threads,
        )
    tokenizer.save(output)
    path = output if output.suffix == ".model" else output.with_name(output.name + ".model")
    seconds = time.monotonic() - counted
    result = {
        "model": str(path), "tokens": len(tokenizer.vocab), "merges": len(tokenizer.merges), "batches": len(sizes),
        "seconds_reading": round(counted - start, 3), "seconds": round(seconds, 3), "peak_memory": peak_memory(),
    }  # fmt: skip
    if json:
        print_json(result)
    mean = sum(sizes) / max(1, len(sizes))
    note(
        f"{result['tokens']:,} tokens: {len(tokenizer.stop_words)} stop words, {len(tokenizer.special_tokens)} special "
        f"tokens, {sum(sizes):,} merges in {len(sizes)} batches of {mean:.0f} on average; {seconds:.1f} s after "
        f"{counted - start:.1f} s of reading, {size(peak_memory())} of memory\n{path}",
        quiet or json,
    )
