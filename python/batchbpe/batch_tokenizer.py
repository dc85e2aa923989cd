"""`BatchTokenizer` and `QuickTokenizer`: the paper's classes, with its names and parameters.

Thin shells over `ChunkCounts.count` and `training.train`: `train`, `load` and `register_special_tokens` replace the
model they hold, in one step.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from . import policies, training
from .counts import ChunkCounts
from .data import corpus
from .errors import short
from .loaded import Loaded
from .model import Model, check_special_tokens
from .patterns import pattern_of
from .tokenizer import Tokenizer
from .training import Batch


class BatchTokenizer(Tokenizer):
    """The paper's tokenizer: made first, then trained.

    `multiprocess=False` uses one thread. `store_dict` saves the chunk counts that `train` made: True as a csv in the
    current folder, named by the time as the paper's program does; a path there, as csv or parquet.

    >>> tokenizer = BatchTokenizer()
    >>> tokenizer.train("aaabdaaabac", 259)
    259
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    """

    _overlapping = False
    _not_allowed = ()  # the paper takes special tokens that are not named for text

    def __init__(
        self,
        pattern: str | None = None,
        multiprocess: bool = True,
        store_dict: bool | str | os.PathLike[str] = False,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
    ) -> None:
        """Make an untrained tokenizer, which encodes to bytes."""
        super().__init__(Model(pattern=pattern_of("gpt4" if pattern is None else pattern), merges={}))
        self._pattern = pattern
        self.multiprocess = multiprocess
        self.store_dict = store_dict
        self.stop_list_size = stop_list_size
        self.freq_cutoff = freq_cutoff

    def train(  # type: ignore[override]
        self,
        data: corpus.Data,
        vocab_size: int,
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        verbose: bool = False,
        *,
        policy: policies.Policy = policies.continue_search,
        base: Tokenizer | None = None,
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        progress: Callable[[int], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
    ) -> int:
        """Train a vocabulary of `vocab_size` tokens in all, special tokens registered before included.

        Returns the size that was reached, which is less if no pairs were left. `verbose` writes a line for each batch
        to stderr. Until all is done the tokenizer stays as it was.
        """
        threads = None if self.multiprocess else 1
        options = training.Options(
            vocab_size=vocab_size,
            stop_list_size=self.stop_list_size,
            freq_cutoff=self.freq_cutoff,
            special_tokens=self.special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=self._overlapping,
            base=base.model if isinstance(base, Tokenizer) else base,
        )
        counts = ChunkCounts.count(
            data,
            base.pattern if base and self._pattern is None else self._pattern,
            special_tokens=list(options.all_special_tokens),
            text_column=text_column,
            errors=errors,
            progress=progress,
            threads=threads,
        )
        if self.store_dict:
            name = time.strftime("%Y-%m-%d-%H_%M-dataset-dict.csv") if self.store_dict is True else self.store_dict
            counts.save(name)

        def told(batch: Batch) -> None:
            if verbose:
                sys.stderr.write(
                    f"batch {batch.number}: merged {batch.size} of {batch.searched} pairs searched, "
                    f"{batch.merges_wanted - batch.merges_done} merges remaining, {batch.seconds:.2f} s\n"
                )
            if on_batch:
                on_batch(batch)

        model = training.train_on(counts, options, on_batch=told, threads=threads)
        self._loaded = Loaded(model)
        return len(model.vocab)

    def register_special_tokens(self, special_tokens: Mapping[str, int]) -> None:
        """Set the special tokens and their ids, in place of any before.

        >>> tokenizer = BatchTokenizer()
        >>> tokenizer.register_special_tokens({"<|endoftext|>": 256})
        >>> tokenizer.encode("a<|endoftext|>", allowed_special="all")
        [97, 256]
        """
        if not isinstance(special_tokens, Mapping):
            raise TypeError(f"special_tokens={short(special_tokens)}: give a dict of texts and their ids")
        check_special_tokens(special_tokens)
        self._loaded = Loaded(replace(self.model, special_tokens=dict(special_tokens)))

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Become the tokenizer that was saved in a file, by this program, the paper's, or another."""
        loaded = Tokenizer.from_file(model_file)._loaded
        self._pattern, self._loaded = loaded.model.pattern, loaded


class QuickTokenizer(BatchTokenizer):
    """A BatchTokenizer that counts a pair in a run of one token at every place: "aaaaa" has four "aa", not two.

    >>> tokenizer = QuickTokenizer()
    >>> tokenizer.train("aaaaa abab", 257)
    257
    >>> tokenizer.vocab[256]
    b'aa'
    """

    _overlapping = True
