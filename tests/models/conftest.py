"""Fixtures of the tests with published tokenizers."""

from functools import lru_cache

import pytest
from published import PUBLISHED, Published, is_byte_level, params

collect_ignore = ["oracle.py"]  # it runs in another virtual environment
loaded = lru_cache(1)(Published)


@pytest.fixture(params=params(PUBLISHED), scope="session")
def published(request: pytest.FixtureRequest) -> Published:
    if not is_byte_level(request.param):
        pytest.skip("not byte-level; see test_other_models_are_refused")
    return loaded(request.param)
