"""The core handles forks, hash flooding, interrupts and lack of memory."""

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import HANG

from batchbpe import ChunkCounts, Model, Tokenizer, _core
from batchbpe.counts.counter import load_counts
from batchbpe.errors import DataError

FORKS = int(os.environ.get("BATCHBPE_FUZZ_FORKS", "60"))
posix = pytest.mark.skipif(os.name != "posix", reason="fork, signals and limits are posix")


def run(script: str, *arguments: object, input: str | None = None) -> str:
    """Run a script in a separate process, and return its output."""
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG + FORKS, check=False, input=input)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


WAIT = """
    import os, signal, sys, threading
    def child_ends(work):
        "Fork, run work in the child, and return whether it succeeded."
        child = os.fork()
        if not child:
            signal.alarm(300)
            os._exit(0 if work() else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@posix
def test_fork_while_other_threads_encode() -> None:
    run(
        WAIT
        + """
    from batchbpe import Tokenizer
    text = " to be or not to be, that is the question" * 200
    tokenizer = Tokenizer.train(text, 300, special_tokens=["<s>", "<t>"])
    expected = tokenizer.encode(text, {"<s>"})
    done = threading.Event()
    def encode():
        while not done.is_set():
            tokenizer.encode(text, {"<s>"})
    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    same = lambda: tokenizer.encode(text, {"<s>"}) == tokenizer.encode_batch([text] * 9, {"<s>"})[8] == expected
    ended = all(child_ends(same) for _ in range(int(sys.argv[1])))
    done.set()
    assert ended
    """,
        FORKS,
    )


@posix
def test_fork_while_other_threads_count() -> None:
    """The counting threads never free a Python string: the lock that PyO3 takes would stay locked in the child."""
    run(
        WAIT
        + """
    from batchbpe import ChunkCounts, Tokenizer
    text = " to be or not to be, that is the question"
    tokenizer = Tokenizer.train(text, 280)
    expected, counts = tokenizer.encode(text), ChunkCounts.count([text])
    done = threading.Event()
    def count(end):
        while not done.is_set():
            ChunkCounts.count((text + end for _ in range(20_000)), threads=2)
    threads = [threading.Thread(target=count, args=[end]) for end in ("", " \u00e9")]
    for thread in threads:
        thread.start()
    same = lambda: tokenizer.encode(text) == expected and ChunkCounts.count([text]) == counts
    ended = all(child_ends(same) for _ in range(int(sys.argv[1])))
    done.set()
    assert ended
    """,
        FORKS,
    )


@posix
def test_fork_while_a_property_is_computed() -> None:
    """Before Python 3.12, `functools.cached_property` holds a lock during the computation."""
    run(
        WAIT
        + """
    import time
    from batchbpe.util.lazy import lazy
    class Slow:
        @lazy
        def value(self):
            started.set()
            time.sleep(1)
            return 1
    started = threading.Event()
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    started.wait()
    assert child_ends(lambda: Slow().value == 1)
    """
    )


@posix
def test_a_count_does_not_continue_in_a_forked_process() -> None:
    run(
        WAIT
        + """
    from batchbpe import PATTERNS, _core
    def refused():
        for call in (lambda: table.add_strings(["to be"]), table.finish):
            try:
                call()
                return False
            except RuntimeError as error:
                expected = "this count was started before the process forked; start a new one in this process"
                assert str(error) == expected
        return True
    table = _core.ChunkTable(PATTERNS["gpt4"], [], 3)
    table.add_strings([f"to be or not to be {i}" for i in range(100_000)])
    assert child_ends(refused)
    assert table.finish()[2].sum() > 800_000
    """
    )


@posix
def test_training_continues_in_a_forked_process() -> None:
    run(
        WAIT
        + """
    from batchbpe import ChunkCounts, train
    counts = ChunkCounts.count(f"{i * 7919} {i * 104729}" for i in range(100_000))
    expected = train(counts, 400, threads=2)
    forked = []
    def fork(batch):
        if batch.number == 2 and not forked:
            forked.append(os.fork())
    model = train(counts, 400, threads=2, on_batch=fork)
    same = model.merges == expected.merges
    if not forked[0]:
        os._exit(0 if same else 1)
    assert same and os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]) == 0
    """
    )


FIXED_SEED = (0x9E37_79B9_7F4A_7C15).to_bytes(8, "little")


def test_hashes_cannot_be_flooded() -> None:
    """With the fixed seeds of the source, these chunks would all have the same hash."""

    def processor_time(prefix: bytes) -> float:
        words = b"".join(prefix + i.to_bytes(3, "big") * 2 + b"x" for i in range(60_000))
        data, offsets = np.frombuffer(words, np.uint8), np.arange(60_001, dtype=np.int64) * 15
        table = _core.ChunkTable(r"\S+", [], 1)
        start = time.process_time()
        table.add_counts(data, offsets, np.ones(60_000, np.uint64))
        assert len(table.finish()[2]) == 60_000
        return time.process_time() - start

    # Otherwise it would take thousands of times as long.
    assert min(processor_time(FIXED_SEED) for _ in range(3)) < 100 * min(processor_time(b"harmless") for _ in range(3))


@posix
@pytest.mark.parametrize("job", ["split", "count", "encode", "encode_batch", "numpy"])
@pytest.mark.parametrize(
    ("pattern", "size"),
    [("(?:(?!a*b)a)*c", 3_000), ("(?:(?!a*b)a)*c", 50_000), ("a*b|a", 400_000)],
    ids=["short", "backtracking", "regular"],
)
def test_ctrl_c_in_a_slow_search(job: str, pattern: str, size: int) -> None:
    """Each search would take seconds to hours."""
    script = """
        import signal, sys, threading
        from contextlib import suppress
        from batchbpe import ChunkCounts, Model, Tokenizer, split
        job, pattern, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
        text = "a" * size
        tokenizer = Tokenizer(Model(split=pattern, merges={}))
        tokenizer.encode("x")
        jobs = {
            "split": lambda: split(text, pattern),
            "count": lambda: ChunkCounts.count(iter([text]), pattern),
            "encode": lambda: tokenizer.encode(text),
            "encode_batch": lambda: tokenizer.encode_batch([text, text]),
            "numpy": lambda: tokenizer.encode_to_numpy(text),
        }
        signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
        timer.start()
        try:
            while True:
                with suppress(ValueError):  # the search took too long
                    jobs[job]()
        except KeyboardInterrupt:
            print("stopped")
    """
    assert run(script, job, pattern, size) == "stopped\n"


BOMBS = [
    r"(a\g<1>?\g<1>?\g<1>?)",
    "((a{1000}){1000}){1000}",
    "((a{1000}){1000}){1000}(?<!b)",
    "(?:(?:a{0,60}){0,60}){0,60}(?!bc)",
    "(?:" * 60 + "a{1,9}" + "){1,9}" * 60 + "|.",
    "(?:" * 60 + "a{0,9}" + "){0,9}" * 60 + "(?<!b)",
    r"(?:\p{L}{1,1000}\p{N}){1,1000}|.",
    "|".join(f"[ab]*a[ab]{{{n}}}c" for n in range(2, 40)) + "|.",
    "".join(f"(?i:[\\p{{L}}{chr(0x4E00 + i)}])" for i in range(500)),
    r"\p{L}" * 20_000,
    "a" * 1_000_000 + "+",
    "|".join(chr(0x4E00 + i) for i in range(16_000)) + "(?<!x)",
    "".join(chr(0x4E00 + 2 * i) + "?" for i in range(5_000)) + "a",
]


@posix
def test_any_pattern_takes_little_memory() -> None:
    """A pattern is refused, or compiled and run. Without a bound, some of these would take gigabytes."""
    script = """
        import json, resource, sys
        from batchbpe import split
        patterns = json.load(sys.stdin)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
        for pattern in patterns:
            try:
                split("aab aab", pattern)
            except ValueError as error:
                assert any(reason in str(error) for reason in ("is not supported", "too large", "too many")), error
        print("done")
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("the size of a process is read from /proc")
    assert run(script, input=json.dumps(BOMBS)) == "done\n"


@pytest.mark.parametrize(("unit", "token"), [("a", 97), ("ab", 256)])
def test_a_long_chunk_is_encoded_in_n_log_n_steps(unit: str, token: int) -> None:
    """One chunk of 256 KiB is compared with as many bytes in short chunks."""
    merges = {(97, 98): 256, (token, token): 257} | {(half, half): half + 1 for half in range(257, 270)}
    tokenizer = Tokenizer(Model(split=r"\S+|\s", merges=merges))

    def processor_time(text: str) -> float:
        start = time.process_time()
        assert tokenizer.decode(tokenizer.encode(text, threads=1)) == text
        return time.process_time() - start

    long = unit * ((1 << 18) // len(unit))
    short = " ".join(f"{unit * 30}{n}" for n in range(len(long) // (30 * len(unit))))
    # In quadratic time, it would take thousands of times as long.
    assert min(processor_time(long) for _ in range(3)) < 100 * min(processor_time(short) for _ in range(3))


def test_merges_of_long_tokens() -> None:
    """A small model can describe a token of a megabyte, by doubling."""
    merges = {(97, 97) if i == 256 else (i - 1, i - 1): i for i in range(256, 276)}
    tokenizer = Tokenizer(Model(split=r"\S+", merges=merges))
    encoding = tokenizer.to_tiktoken()
    assert encoding.encode("a" * 7) == tokenizer.encode("a" * 7)
    assert Tokenizer.from_tiktoken(encoding).merges == merges


@posix
@pytest.mark.parametrize(
    "job",
    [
        "tokenizer.decode_bytes([300] * 2000)",
        "tokenizer.encode_to_numpy(text)",
        r"ChunkCounts.count((f'{i:x}' * 3 for i in range(4_000_000)), r'\S+', threads=1)",
        "_core.ChunkTable('x+', [], 1).add_counts(data, offsets, counts)",
    ],
)
def test_out_of_memory_is_an_error(job: str) -> None:
    """By default, Rust aborts the process if an allocation fails."""
    script = """
        import resource, sys
        import numpy as np
        from batchbpe import ChunkCounts, Model, Tokenizer, _core
        merges = {(97, 97) if i == 256 else (i - 1, i - 1): i for i in range(256, 276)}
        tokenizer = Tokenizer(Model(split=r"\\S+", merges=merges, stop_words={b"x" * (1 << 20): 300}))
        tokenizer.encode("x")
        text = "ab" * 30_000_000
        n = 20_000_000
        data, offsets, counts = (np.frombuffer(bytes(8 * n), np.uint8), np.arange(n + 1) * 8, np.ones(n, np.uint64))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20),) * 2)
        try:
            eval(sys.argv[1])
        except MemoryError:
            print("refused")
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("the size of a process is read from /proc")
    assert run(script, job) == "refused\n"


@posix
def test_out_of_memory_with_a_base_drops_no_chunks() -> None:
    """The long chunk cannot be encoded with the base. Training on the other one alone would succeed."""
    script = """
        import resource
        from batchbpe import ChunkCounts, Model, train
        base = Model(split=r"\\S+", merges={(97, 97): 256})
        counts = ChunkCounts.count({"ab" * 30_000_000: 1, "cd": 5}, base.pattern)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20),) * 2)
        try:
            train(counts, 258, base=base)
        except MemoryError:
            print("refused")
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("the size of a process is read from /proc")
    assert run(script) == "refused\n"


@posix
@pytest.mark.parametrize("limit", [4, 100])
@pytest.mark.parametrize(
    "job",
    [
        "tokenizer.encode(text)",
        r"tokenizer.encode(text.replace('not to', 'not\nto'))",
        "tokenizer.encode(' <s>' * 4_000_000, 'all')",
        "tokenizer.encode_to_numpy(text)",
        "tokenizer.encode_to_numpy('a' * 20_000_000)",
        "tokenizer.encode_batch(texts)",
        "tokenizer.encode_batch_to_numpy(texts)",
        "tokenizer.decode([97] * 8_000_000)",
        "_core.split_text('to|[^t]+', text)",
        "ChunkCounts.load(sys.argv[3])",
    ],
)
def test_any_amount_of_memory_is_an_error_or_enough(job: str, limit: int, tmp_path: Path) -> None:
    """Rust does not abort, and PyO3 does not panic."""
    script = """
        import resource, sys
        import pyarrow.parquet
        from batchbpe import PATTERNS, ChunkCounts, Model, Tokenizer, _core
        merges = {(97, 97) if i == 256 else (i - 1, i - 1): i for i in range(256, 276)}
        tokenizer = Tokenizer(Model(split=PATTERNS["gpt4"], merges=merges, special_tokens={"<s>": 300}))
        tokenizer.encode("x")
        text = "to be or not to be " * 2_000_000 if "text" in sys.argv[1] else ""
        texts = [text[start : start + 190] for start in range(0, len(text), 190)] if "texts" in sys.argv[1] else []
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[2]) << 20),) * 2)
        try:
            eval(sys.argv[1])
        except MemoryError:
            pass
    """
    if not Path("/proc/self/statm").exists():
        pytest.skip("the size of a process is read from /proc")
    counts = tmp_path / "counts.csv"
    if "load" in job:
        counts.write_text("text_chunk,count\n" + "".join(f" word{i},{i}\n" for i in range(1, 1_500_000)) + "x+,0\n")
    run(script, job, limit, counts)


def test_the_threads_of_a_dropped_count_end() -> None:
    """They do not keep the process alive."""
    run(
        """
        from batchbpe import PATTERNS, _core
        table = _core.ChunkTable(PATTERNS["gpt4"], [], 4)
        table.add_strings(["to be or not to be " * 1000] * 1000)
        del table
        """
    )


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_change_counts(threads: int, library: list[str]) -> None:
    """The text is large enough to start threads, fill their queue and cut documents."""
    text = "\n".join(library[:400])
    assert len(text) > 1 << 22
    counts = ChunkCounts.count(iter([text, *library[:400]]), threads=threads)
    assert counts == ChunkCounts.count(iter([*library[:400], text]), threads=1)


def test_a_csv_file_of_counts_has_a_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("text_chunk,count\nto,2\n\\S+,0\n")
    size = path.stat().st_size
    assert load_counts(path, max_bytes=size).counts.tolist() == load_counts(path).counts.tolist() == [2]
    with pytest.raises(DataError, match=f"counts.csv: the counts have more than {size - 1} bytes.*max_memory"):
        load_counts(path, max_bytes=size - 1)


def test_threads_are_an_integer_of_any_size() -> None:
    assert _core.threads_or_all(7) == 7
    assert _core.threads_or_all(10**30) == _core.threads_or_all(257) == 256
    assert _core.threads_or_all() == _core.threads_or_all(None) >= 1
    for threads in (0, -1, -(10**30)):
        with pytest.raises(ValueError, match=f"^threads must be at least 1, or None for all cores, got {threads}\\b"):
            _core.threads_or_all(threads)
    for wrong in (1.5, "2"):
        with pytest.raises(TypeError):
            _core.threads_or_all(wrong)  # type: ignore[arg-type]
