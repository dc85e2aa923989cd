"""The examples in docstrings use `Tokenizer` without importing it, since modules below it cannot import it."""

from typing import Any

import pytest

from batchbpe import Tokenizer

collect_ignore = ["conftest.py"]


@pytest.fixture(autouse=True, scope="session")
def names_for_examples(doctest_namespace: dict[str, Any]) -> None:
    """Define the name."""
    doctest_namespace["Tokenizer"] = Tokenizer
