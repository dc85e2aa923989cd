"""The command that trains."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from .app import command, load, note, print_json, sources_of
from .options import (
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


class Policy(str, Enum):
    """The policies of the package."""

    serial = "serial"
    naive = "naive"
    positional = "positional"
    continue_search = "continue_search"


@command
def train(
    inputs: Annotated[list[str], typer.Argument(help="A file of counts, or what `count` takes.")],
    output: Annotated[Path, option("Writes OUTPUT.model, and OUTPUT.vocab to read.", "--output", "-o")],
    vocab_size: Annotated[int, option("How many tokens, in all.", "--vocab-size", "-n", min=1)],
    stop_list_size: Annotated[int, option("How many of the commonest chunks get tokens of their own.", min=0)] = 0,
    freq_cutoff: Annotated[int, option("Leave out chunks seen fewer times.", min=0)] = 1,
    special_token: SpecialTokens = None,
    pattern: Annotated[str | None, option("gpt2, gpt4 (the default), cl100k, o200k, or a regular expression.")] = None,
    policy: Annotated[Policy, option("Which of the commonest pairs are merged at once.")] = Policy.continue_search,
    cap_divisor: Annotated[int, option("Search at most one in so many of the remaining merges.", min=1)] = 2,
    max_batch_size: Annotated[int, option("Merge at most so many pairs at once; 0: any number.", min=0)] = 0,
    overlapping: Annotated[bool, option("Count pairs as QuickTokenizer does.", "--overlapping")] = False,
    base: Annotated[Path | None, option("A model to go on from.")] = None,
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
    from .. import policies
    from ..counting import Counter
    from ..data.sampling import Selection
    from ..memory import peak_memory
    from ..progress import counting_bar, size, training_bar
    from ..storage.atomic import check_writable
    from ..tokenizer import Tokenizer
    from ..training import Batch, Options, train_on

    for place in inputs:
        if place.endswith((".model", ".tiktoken")):
            raise ValueError(f"{place} is a model, no data: --base goes on from one; as a text, rename it")
    if not output.name:
        raise ValueError("--output is empty: give a name")
    check_writable(output.with_name(output.name + ".model"))
    old = load(base) if base else None
    options = Options(
        vocab_size=vocab_size,
        stop_list_size=stop_list_size,
        freq_cutoff=freq_cutoff,
        special_tokens=special_token or [],
        cap_divisor=cap_divisor,
        max_batch_size=max_batch_size,
        policy=getattr(policies, policy.value),
        overlapping=overlapping,
        base=old.model if old else None,
    )
    start = time.monotonic()
    errors, selection = "replace" if replace_errors else "strict", Selection(sample, seed, limit_bytes)
    sources = sources_of(inputs, text_column, jsonl_field, errors, max_document_bytes)
    counter = Counter(pattern or (old.pattern if old else None), list(options.all_special_tokens), errors, threads)
    with counting_bar(counter, sources, show=not quiet):
        for source in sources:
            with source.named():
                for documents in selection.of(source):
                    counter.add(documents)
    sizes: list[int] = []
    with training_bar(show=not quiet) as show:

        def on_batch(batch: Batch) -> None:
            sizes.append(batch.size)
            if show:
                show(batch)

        counts = [counter.finish()]
        counted = time.monotonic()
        # Nobody else holds them, so that training can let them go.
        tokenizer = Tokenizer(train_on(counts.pop(), options, on_batch=on_batch, threads=threads))
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
