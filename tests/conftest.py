"""Shared by several test files: text, characters that differ between Unicode versions, and the command line."""

import ctypes
import os
import random
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from batchbpe import PATTERNS, ChunkCounts, Model, reference, split
from batchbpe.cli import app
from batchbpe.experiments import trainings

collect_ignore = ["shims"]  # they have the names of other packages
HANG = 600
"""Seconds after which a process is considered to hang. No test takes this long on a slow or busy machine."""
FUZZ_SEED = int(os.environ.get("BATCHBPE_FUZZ_SEED", "0"))
"""0 for the same cases on every run. `make fuzz` sets another seed and prints it."""
FUZZ_FACTOR = int(os.environ.get("BATCHBPE_FUZZ_FACTOR", "1"))
"""How many times as many examples Hypothesis draws."""

settings.register_profile(
    "tests",
    derandomize=not FUZZ_SEED,
    database=None,
    deadline=None,
    max_examples=100 * FUZZ_FACTOR,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")

trainings.MIN_TIMED_SECONDS = 0  # tests do not look at times


def examples(number: int) -> settings:
    """Let Hypothesis draw another number of examples than 100."""
    return settings(max_examples=number * FUZZ_FACTOR)


CLASSES = ("Lu", "Ll", "Lt", "Lm", "Lo", "N", "M", "P", "S", "Han")


@cache
def every_character() -> str:
    return "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


@cache
def changed_characters() -> frozenset[str]:
    """Characters to which the core and the `regex` package, whose Unicode is newer, assign different classes."""
    changed: set[str] = set()
    for name in CLASSES:
        ours, theirs = (
            set("".join(find(rf"\p{{{name}}}+", every_character())))
            for find in (lambda pattern, text: split(text, pattern), regex.findall)
        )
        changed |= ours ^ theirs
    return frozenset(changed)


def without_changed(text: str) -> str:
    return "".join(c for c in text if c not in changed_characters())


_ANY = st.text(max_size=40).map(without_changed)
_NASTY = st.text("aAbsStTſlLvVeErR'’ \t\n\r\x0b\x85\xa0\u2028\u3000.,!/=_019٣Ⅷéßǅʰ\u0301\u200d語😀\0", max_size=40)
_RUNS = st.lists(
    st.tuples(
        st.sampled_from(["a", " ", "\n", "\r\n", "\r", "'", "7", "=", "é", "語", "ab", "\u0301"]), st.integers(1, 60)
    ),
    max_size=6,
).map(lambda runs: "".join(text * times for text, times in runs))

texts = st.lists(st.one_of(_ANY, _NASTY, _RUNS), max_size=4).map("".join)
"""Any Unicode, characters that matter to patterns, and long runs, concatenated."""


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


def reference_of(model: Model) -> tuple[dict[tuple[int, int], int], dict[str, int]]:
    """Return the arguments for the reference's `encode`."""
    return dict(model.merges), {word.decode(): token for word, token in model.stop_words.items()}


SCRIPTS = (
    "абвгдежзиклмнопрстуфхцчшщ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "的一是不了在人有我他这中大来上",
    "กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอ",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "あいうえおかきくけこさしすせそ",
    "กำาิีึืุู",
    "éèêëàâäôöûüç",
)


def multilingual(size: int, seed: int = 1) -> str:
    """Made-up words in many scripts."""
    chance = random.Random(seed)
    words = []
    while size > 0:
        script = chance.choice(SCRIPTS)
        words.append("".join(chance.choices(script, k=1 + int(chance.expovariate(0.4)))) + chance.choice(" .\n,"))
        size -= len(words[-1])
    return " ".join(words)


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Make file permissions apply to root too, by giving up the capabilities that override them."""
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


END = "<|endoftext|>"
TEXT = "To be, or not to be: that is the question. " * 20 + multilingual(2000)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text, counts and a model, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text(TEXT, encoding="utf-8")
    assert run("count book.txt -o counts.parquet --quiet").exit_code == 0
    assert run(["train", "counts.parquet", "-n", "600", "--special-token", END, "-o", "mine", "-q"]).exit_code == 0
    return tmp_path


def run(command: str | list[str], text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, command.split() if isinstance(command, str) else command, input=text)


def untouched() -> Iterator[str]:
    """Data that must not be read."""
    raise AssertionError("the data was read")
    yield ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark cluster on this machine: two executors of one core, each a process of its own."""
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
