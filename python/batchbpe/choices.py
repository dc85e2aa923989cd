"""Options whose value is one of a few names. The command line needs them at start-up, when numpy is not imported."""

from typing import Literal

PolicyName = Literal["serial", "naive", "positional", "continue_search", "exact"]
"""Name of a policy."""
Dependents = Literal["hide", "rebuild", "remove"]
"""What happens to the tokens that are merged from a removed token; see `Model.without`."""
Ties = Literal["ids", "huggingface"]
"""Order of pairs with equal counts."""
TokenFormat = Literal["bin", "npy", "llm.c", "nanogpt", "megatron", "datatrove", "olmo", "parquet"]
"""Format of token files."""
EngineName = Literal["batchbpe", "tokenizers", "transformers", "tiktoken", "llama.cpp", "mistral-common", "gigatoken"]
"""Name of an engine that `verify` compares with."""
Unit = Literal["text", "byte", "character", "word"]
"""Unit of text whose cost in tokens is compared between groups."""
Objective = Literal["total", "worst", "gini", "bytes-per-token"]
"""What the search for a mixture optimizes."""
MergeOrder = Literal["auto", "serial", "batches"]
"""How the pairs of a vocabulary were chosen: one at a time or in batches; auto detects it."""
Normalization = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]
"""Unicode normalization form of a text before it is split."""
Behavior = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
"""What a step does with the matches of its regular expression; see `patterns.Step`."""
