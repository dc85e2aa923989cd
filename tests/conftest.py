"""Settings and fixtures of all tests."""

import ctypes
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import END, FUZZ_FACTOR, FUZZ_SEED, TEXT, run, without_changed
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from batchbpe import PATTERNS, ChunkCounts, reference
from batchbpe.experiments import trainings

collect_ignore = ["conftest.py", "shims"]  # the shims have the names of other packages

settings.register_profile(
    "tests",
    derandomize=not FUZZ_SEED,
    database=None,
    deadline=None,
    max_examples=100 * FUZZ_FACTOR,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")
# Hypothesis also draws constants of the modules that are loaded, which depend on the tests that ran before.
providers.is_local_module_file = lambda _: False

trainings.MIN_TIMED_SECONDS = 0  # tests do not look at times


@pytest.fixture(scope="session")
def library() -> list[str]:
    """About 10 MB of real text that every machine has: the source of the standard library, without its tests."""
    folder, left_out = Path(sysconfig.get_path("stdlib")), {"site-packages", "test", "tests", "idle_test"}
    paths = [path for path in sorted(folder.rglob("*.py")) if left_out.isdisjoint(path.relative_to(folder).parts)]
    found = [path.read_bytes().decode("utf-8", "replace") for path in paths]
    return [without_changed(text) if not text.isascii() else text for text in found]


@pytest.fixture(scope="session")
def reference_counts(library: list[str]) -> dict[str, int]:
    return reference.count_chunks(library, PATTERNS["gpt4"])


@pytest.fixture(scope="session")
def counts(library: list[str]) -> ChunkCounts:
    return ChunkCounts.count(iter(library))


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Make file permissions apply to root too, by giving up the capabilities that override them."""
    if not hasattr(os, "geteuid"):
        pytest.skip("file permissions are posix")
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    header, before = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    if not hasattr(libc, "capset") or libc.capget(header, before):
        pytest.skip("capabilities are not supported")
    without = type(before)(*before)
    without[0] &= ~0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, in the effective set
    assert libc.capset(header, without) == 0
    yield
    assert libc.capset(header, before) == 0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text, counts and a model, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text(TEXT, encoding="utf-8")
    assert run("count book.txt -o counts.parquet --quiet").exit_code == 0
    assert run(["train", "counts.parquet", "-n", "600", "--special-token", END, "-o", "mine", "-q"]).exit_code == 0
    return tmp_path


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark cluster on this machine: two executors of one core, each a separate process."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java: make tools")
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    quick_start = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.driver.extraJavaOptions": quick_start,
        "spark.executor.extraJavaOptions": quick_start,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.local.dir": str(tmp_path_factory.mktemp("local")),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    logs = Path(pyspark.__file__).parent / "work" / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(logs, ignore_errors=True)
