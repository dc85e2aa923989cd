"""The package as a whole: imports, public names, and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest
from helpers import HANG

import batchbpe


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_import_is_light_and_silent() -> None:
    heavy = "{'numpy', 'pyarrow', 'regex', 'datasets', 'tiktoken', 'batchbpe._core'}"
    ran = python(f"import sys, batchbpe; dir(batchbpe); sys.exit(', '.join({heavy} & set(sys.modules)) or None)")
    assert (ran.stdout, ran.stderr.strip(), ran.returncode) == ("", "", 0)


def test_a_command_imports_only_what_it_needs() -> None:
    heavy = "{'numpy', 'pyarrow'}"
    ran = python(f"import sys, batchbpe.cli; sys.exit(', '.join({heavy} & set(sys.modules)) or None)")
    assert ran.returncode == 0, ran.stderr


def test_training_needs_no_optional_package() -> None:
    ran = python(
        "import sys, batchbpe\n"
        "batchbpe.Tokenizer.train('aaabdaaabac', 259).encode('ab')\n"
        "optional = {'pyarrow', 'regex', 'datasets', 'tiktoken', 'tokenizers', 'transformers'}\n"
        "sys.exit(', '.join(optional & set(sys.modules)) or None)"
    )
    assert (ran.stdout, ran.stderr.strip(), ran.returncode) == ("", "", 0)


def test_public_names() -> None:
    for name in batchbpe.__all__:
        assert getattr(batchbpe, name) is getattr(batchbpe, name)
        assert name in dir(batchbpe)
    with pytest.raises(AttributeError, match="module 'batchbpe' has no attribute 'absent'"):
        batchbpe.absent  # noqa: B018
    ran = python("from batchbpe import *; print(Tokenizer.__name__, policies.__name__)")
    assert ran.stdout == "Tokenizer batchbpe.policies\n"


@pytest.mark.parametrize(
    ("error", "stderr"),
    [
        ("OSError(28, 'No space left on device')", "error: cannot write standard output: no space left on device"),
        ("FileNotFoundError('file not found: a.txt')", "FileNotFoundError: file not found: a.txt"),
        ("PermissionError(13, 'denied', 'a.txt')", "PermissionError: [Errno 13] denied: 'a.txt'"),
    ],
)
def test_errors_outside_of_commands(error: str, stderr: str) -> None:
    """Errors of standard output are reported in one line. Others are raised by --debug, with a traceback."""
    ran = python(f"from batchbpe import __main__, cli\ndef main(): raise {error}\ncli.main = main\n__main__.main()\n")
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr.strip().endswith(stderr)
    assert ("Traceback" in ran.stderr) == (not stderr.startswith("error: "))


@pytest.mark.parametrize(("package", "dependency"), [("reference", "regex"), ("transformers", "transformers")])
def test_packages_name_the_extra_that_they_need(package: str, dependency: str) -> None:
    ran = python(f"import sys\nsys.modules[{dependency!r}] = None\nimport batchbpe.{package}")
    assert ran.stderr.rstrip().endswith(f"run pip install 'batchbpe[{package}]'")


def test_ctrl_c_while_numpy_is_loaded() -> None:
    """The first call loads numpy's array interface, which runs Python code that a signal can interrupt."""
    ran = python(
        "import batchbpe, numpy.lib\n"
        "original = numpy.lib.NumpyVersion\n"
        "def interrupt(version):\n"
        "    numpy.lib.NumpyVersion = original\n"
        "    raise KeyboardInterrupt\n"
        "numpy.lib.NumpyVersion = interrupt\n"
        "try:\n"
        "    batchbpe.ChunkCounts.count('a b')\n"
        "except KeyboardInterrupt:\n"
        "    print(len(batchbpe.ChunkCounts.count('a b')))"
    )
    assert (ran.stdout, ran.stderr) == ("2\n", "")


ENDLESS_WORK = {
    "count": "text = 'some words, and 12 others\\n' * 1_000_000\n"
    "work = lambda: batchbpe.ChunkCounts.count(text, threads=1)",
    "count_custom": "text = 'some words, and 12 others\\n' * 200_000\n"
    "work = lambda: batchbpe.ChunkCounts.count(text, r'\\w+|\\W', threads=1)",
    "train": "n = 100_000\nletters = numpy.random.default_rng(1).integers(97, 123, n * 12, dtype=numpy.uint8)\n"
    "arrays = ChunkArrays(letters, numpy.arange(n + 1) * 12, numpy.ones(n, numpy.uint64), Split('.'))\n"
    "work = lambda: batchbpe.train(batchbpe.ChunkCounts(arrays), 100_000)",
    "train_one_chunk": "counts = batchbpe.ChunkCounts.count({'ab' * 4_000_000: 1})\n"
    "work = lambda: batchbpe.train(counts, 300)",
    "encode": "tokenizer = batchbpe.Tokenizer.train('abcabd' * 9, 300, pattern='(?s).+')\n"
    "text = 'abcabd' * 2_000_000\nwork = lambda: tokenizer.encode_to_numpy(text)",
    "encode_batch": "tokenizer = batchbpe.Tokenizer.train('abcabd' * 9, 300, pattern='(?s).+')\n"
    "texts = ['abcabd' * 200_000] * 12\nwork = lambda: tokenizer.encode_batch(texts)",
    "predict_tokens": "ids = numpy.random.default_rng(1).integers(0, 1000, 4_000_000, dtype=numpy.uint32)\n"
    "ids[0] = ids[-1] = 1000\nwork = lambda: batchbpe._core.predict_tokens(ids, ids, 1000, 1001, 9, 1)",
}


@pytest.mark.skipif(os.name != "posix", reason="sending SIGINT to a process is posix")
@pytest.mark.parametrize("work", sorted(ENDLESS_WORK))
def test_ctrl_c(work: str) -> None:
    """Nearly all of the time is spent in the core, which tests in Rust cancel at a certain point."""
    code = (
        "import signal, batchbpe, numpy\n"
        "from batchbpe.counts.counter import ChunkArrays\nfrom batchbpe.patterns import Split\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background\n"
        f"{ENDLESS_WORK[work]}\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    work()\n"
    )
    given = [sys.executable, "-c", code]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        assert ran.stdout is not None and ran.stderr is not None
        assert ran.stdout.readline() == "ready\n", ran.stderr.read()
        time.sleep(0.1)
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=HANG)
    assert err.strip().endswith("KeyboardInterrupt"), err
    assert (out, ran.returncode) == ("", -signal.SIGINT)
