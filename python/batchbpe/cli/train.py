"""`batchbpe train`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import plural
from ..formats.roles import RoleOptions
from ..phrases.options import PhraseOptions
from ..training.options import TrainingOptions
from ..util.documentation import page
from .app import command
from .options import (
    PATTERN_HELP,
    ROLES,
    Json,
    NormalizationForm,
    Quiet,
    Threads,
    option,
    reads,
    takes,
)
from .output import note, print_json
from .policy import load_policy, policy_option
from .usage import UsageError, count_or, number, refuse


@command
@reads()
@takes(
    TrainingOptions,
    RoleOptions,
    PhraseOptions,
    vocab_size={"names": ["--vocab-size", "-n"], "type": int | None, **number(int)},
    add_tokens={"names": ["--add"], "type": int | None, **number(int, least=1)},
    **ROLES,
    policy=policy_option(),
    phrases=count_or("auto"),
    phrase_chunks={"metavar": "KIND"},
    phrase_sample={"type": float | None, **number(float)},
)
def train(
    output: Annotated[
        Path, option("Write NAME.model and NAME.vocab.", "--output", "-o", group="Output", metavar="NAME")
    ],
    *,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Documents or files of chunk counts, as for `count`.")
    ] = None,
    mix: Annotated[
        Path | None,
        option(f"Mixture file to train on instead of INPUTS ({page('mixtures')}).", group="Data", metavar="FILE"),
    ] = None,
    special_token: Annotated[
        list[str] | None,
        option("Special token to add; not counted as text. Can be repeated.", group="Special tokens", metavar="TOKEN"),
    ] = None,
    options: dict[str, Any],
    pattern: Annotated[
        str | None,
        option(PATTERN_HELP, group="Splitting", metavar="PATTERN", show_default="from the counts, or gpt4"),
    ] = None,
    normalization: NormalizationForm = None,
    base: Annotated[
        str | None, option("Tokenizer to extend; its tokens keep their ids.", group="Vocabulary", metavar="MODEL")
    ] = None,
    like: Annotated[
        str | None,
        option(
            "Tokenizer whose split, special tokens and settings to use with a new vocabulary.",
            group="Vocabulary",
            metavar="MODEL",
        ),
    ] = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a tokenizer on documents or chunk counts.

    Example: batchbpe train counts.parquet --vocab-size 50304 -o mine
    """
    from ..counts.mixture import Mixture
    from ..storage.atomic import check_writable
    from ..tokenizer import Tokenizer
    from ..util.memory import peak_memory
    from ..util.progress import memory_used

    refuse(
        {
            "missing argument INPUTS, or --mix; see 'batchbpe train --help'": not inputs and not mix,
            "--mix cannot be combined with INPUTS": inputs and mix,
        }
    )
    for each in inputs or []:
        if each.endswith((".model", ".tiktoken")):
            raise UsageError(f"{each} is a model, not data; to extend a model, use --base")
    if options["vocab_size"] is None and options["add_tokens"] is None:
        raise UsageError("--vocab-size is required, or --add with --base; see 'batchbpe train --help'")
    if not output.name:
        raise UsageError("--output must be a file name")
    path = output if output.suffix == ".model" else output.with_name(output.name + ".model")
    check_writable(path)
    options["policy"] = load_policy(options["policy"])
    start = time.monotonic()
    counted = [start]
    sizes: list[int] = []
    tokenizer = Tokenizer.train(
        Mixture.load(mix) if mix else None,
        files=inputs or None,
        pattern=pattern,
        normalization=normalization,
        special_tokens=special_token or [],
        base=base,
        like=like,
        **options,
        **reading,
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
    added = [plural(len(tokenizer.special_tokens), "special token")]
    added += [plural(len(tokenizer.model.added_tokens), "added token")] * bool(tokenizer.model.added_tokens)
    effort = [f"{counted[-1] - start:.1f} s reading", f"{seconds:.1f} s training", memory_used(peak_memory())]
    known = tokenizer.model.training.get("base_vocab_size")
    note(
        f"trained {plural(len(tokenizer.vocab), 'token')}{f' ({known:,} of the base)' if known else ''}: "
        f"{plural(len(tokenizer.stop_words), 'stop word')}, "
        f"{' and '.join(added)}, {' and '.join(made)} in "
        f"{plural(len(sizes), 'batch')} "
        f"(mean size {mean:.0f}); {', '.join(filter(None, effort))}\n{path}",
        quiet or json,
    )
