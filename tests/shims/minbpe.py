"""minbpe's classes for batchbpe, so that its tests can run against this package; see CONTRIBUTING.md.

`GPT4Tokenizer` reads cl100k_base.tiktoken from the folder in the environment variable BATCHBPE_TEST_TIKTOKEN.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from batchbpe import QuickTokenizer as BatchTokenizer  # counts overlapping pairs, as minbpe does


class RegexTokenizer(BatchTokenizer):
    """Standard BPE: one merge at a time."""

    def train(self, *args: Any, **options: Any) -> int:
        """Train one pair at a time."""
        return super().train(*args, policy="serial", **options)


class BasicTokenizer(RegexTokenizer):
    """The same without splitting the text."""

    def __init__(self) -> None:
        """Create an untrained tokenizer."""
        super().__init__(r"(?s).+")


class GPT4Tokenizer(BatchTokenizer):
    """OpenAI's cl100k_base."""

    def __init__(self) -> None:
        """Load the rank file."""
        super().__init__()
        self.load(Path(os.environ["BATCHBPE_TEST_TIKTOKEN"], "cl100k_base.tiktoken"))


__all__ = ["BasicTokenizer", "BatchTokenizer", "GPT4Tokenizer", "RegexTokenizer"]
