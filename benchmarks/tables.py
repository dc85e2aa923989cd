"""Choose the cases to compare, run them in turns, and write the tables, with batchbpe first."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.measure import ROOT, run_apart

HEADER = "| tool | seconds | relative | CPU seconds | peak MB | of which data | |\n|---|---:|---:|---:|---:|---:|---|"


def installed(tool):
    return importlib.util.find_spec(tool.partition(",")[0]) is not None


PATIENCE = 20


def measure(rows, least, most):
    """Return the best run of each row, since other load on the machine only adds time. Short jobs run more often.

    The rows take turns, and `relative` is the median of the ratios within a turn, so that a slow minute affects all.
    """
    runs = {tool: [] for tool, *_ in rows}
    start = perf_counter()
    for turn in range(most):
        if turn >= least and perf_counter() - start > PATIENCE:
            break
        for tool, case, params in rows:
            runs[tool].append(run_apart(case, params))
    if len({str(run.get("ids")) for each in runs.values() for run in each}) > 1:
        raise SystemExit(f"{' and '.join(runs)} give different ids")
    ours = runs[rows[0][0]]
    return {tool: min(each, key=seconds) | {"relative": relative(each, ours)} for tool, each in runs.items()}


def seconds(run):
    return run["seconds"]


def relative(runs, ours):
    return median(seconds(run) / seconds(our) for run, our in zip(runs, ours, strict=True))


def markdown(title, rows, least, most):
    best = measure([row for row in rows if installed(row[0])], least, most)
    lines = [line(tool, run) for tool, run in best.items()]
    skipped = [f"\nSkipped, not installed: {tool}." for tool, *_ in rows if tool not in best]
    return "\n".join([f"## {title}\n", HEADER, *lines, *skipped, ""])


def line(tool, run):
    memory = [f"{max(run[part], 0):,.0f}" for part in ("peak", "data")]
    rest = ["–"] * 3 if run["cpu"] is None else [time(run["cpu"]), *memory]
    cells = [tool, time(run["seconds"]), f"{run['relative']:.2f}", *rest, run.get("result", "")]
    return f"| {' | '.join(cells)} |"


def time(seconds):
    return f"{seconds:.3f}" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"


def in_threads(case, params):
    """List two threads first, so that `relative` is the speed-up."""
    names = {2: "batchbpe, 2 threads", 1: "batchbpe, 1 thread"}
    return [(name, case, params | {"threads": threads}) for threads, name in names.items()]


def training(data, language, tools):
    params = {"path": str(data / f"{language}.parquet"), "vocab_size": 32_768}
    rows = [(tool, f"train_{tool}", params) for tool in tools]
    yield f"Training on {language} documents in memory to 32,768 tokens", rows


def fineweb(data):
    params = {"path": str(next(data.glob("*.csv"))), "vocab_size": 50_304}
    ours = ("batchbpe, reading included", "train_batchbpe", params | {"of_counts": True})
    theirs = ("ffbpe, reading excluded", "train_ffbpe", params | {"of_counts": True})
    yield "Training on a csv of counts to 50,304 tokens", [ours, theirs]
    yield "Time inside the default policy, in Python", [("batchbpe, reading excluded", "policy", params)]


def encoding(data):
    ranks = {"ranks": str(data / "cl100k_base.tiktoken")}
    tools = ("batchbpe", "tiktoken")
    for language in ("english", "multilingual"):
        params = ranks | {"path": str(data / f"{language}.parquet")}
        rows = [(tool, "encode", params | {"tool": tool}) for tool in tools]
        yield f"Encoding 10 MB of {language} with the cl100k_base ranks into numpy, first call", rows
    yield "Encoding 40 characters", [(tool, "encode_short", ranks | {"tool": tool}) for tool in tools]


def imports(data):
    tools = ("batchbpe", "ffbpe", "rustbpe", "tokenizers", "tiktoken", "numpy")
    yield "Import, above the bare interpreter", [(tool, "import_module", {"module": tool}) for tool in tools]


def threads(data):
    for language in ("english", "multilingual"):
        path = {"path": str(data / f"{language}.parquet")}
        ranks = {"ranks": str(data / "cl100k_base.tiktoken")}
        yield f"Counting the chunks of {language} documents, a pyarrow column", in_threads("count", path)
        yield f"encode_batch of {language} documents", in_threads("encode_batch", path | ranks)


def files(data):
    """Compare the commands with the core on text in memory, and with reading alone, which uses the same cores."""
    ranks = {"ranks": str(data / "cl100k_base.tiktoken")}
    memory, file, reading = "batchbpe, in memory", "batchbpe, parquet to file", "pyarrow, reading that parquet"
    plain = "batchbpe, uncompressed parquet to file"
    for language in ("english", "multilingual"):
        path = {"path": str(data / f"{language}.parquet")}
        all_cores = path | {"threads": None}
        rows = [(memory, "count", all_cores), (file, "count_files", path), (reading, "read", path)]
        rows.append((plain, "count_files", path | {"compressed": False}))
        yield f"Counting {language} documents", rows
        rows = [(memory, "encode_batch", all_cores | ranks), (file, "encode_files", path | ranks)]
        yield f"Encoding {language} documents", rows


def synthetic(data):
    path = Path(__file__).parent / "data" / "synthetic.parquet"
    if not path.exists():
        command = [sys.executable, "-m", "benchmarks.synthetic", str(next(data.glob("*.csv"))), str(path)]
        subprocess.run(command, cwd=ROOT, check=True)
    params = {"path": str(path), "vocab_size": 50_304, "of_counts": True}
    yield "17 million unique chunks to 50,304 tokens, reading included", in_threads("train_batchbpe", params)
    params = {"path": str(path), "vocab_size": 50_304}
    yield "The same, reading excluded", in_threads("train_on_counts", params)


def jobs(every_peer):
    """Return name → function from the data folder to titles and rows (tool, case, parameters)."""
    fast, slow = ["batchbpe", "ffbpe"], ["rustbpe", "tokenizers"]
    return {
        "english": lambda data: training(data, "english", fast + slow),
        "multilingual": lambda data: training(data, "multilingual", fast + slow * every_peer),
        "fineweb": fineweb,
        "encoding": encoding,
        "imports": imports,
        "threads": threads,
        "files": files,
        "synthetic": synthetic,
    }
