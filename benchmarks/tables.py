"""Run the rows of a table in turns, check that their results agree, and write markdown and csv."""

import csv
import math
from itertools import groupby
from statistics import median
from time import perf_counter

from benchmarks import measure
from benchmarks.jobs import is_installed, megabytes

PATIENCE = 20
"""After this many seconds, no more than the least number of turns is made."""
TOO_SLOW = 20
"""A tool that took longer than this, in seconds, is left out of larger sizes."""
MIN_SHARED = 0.95
"""Tools break ties and count runs of a letter differently, so vocabularies differ slightly."""
MAX_GROWTH = 1.5
"""Time may grow by this factor more than n log n."""
TIMES = ("seconds", "repeated")
FIELDS = ("run", "job", "table", "tool", "size", "seconds", "seconds_ratio", "repeated", "repeated_ratio")
FIELDS += ("cpu", "peak", "data", "busy", "shared", "growth", "result", "failed")


def measured(table, tools, least, most):
    """Return a record for each row: its best run, since other load on the machine only adds time.

    The rows of one size take turns. A ratio is the median of the ratios to the first row within a turn, so that a slow
    minute affects both.
    """
    records, slow = [], set()
    for _, rows in groupby(table.rows, key=lambda row: row.size):
        rows = [row for row in rows if row.tool in tools and is_installed(row.tool) and row.label not in slow]
        runs = in_turns(rows, least, most)
        check(table.title, rows, runs)
        records += [record(row, each, runs[0]) for row, each in zip(rows, runs, strict=True)]
        slow |= {row.label for row, each in zip(rows, runs, strict=True) if seconds(each[0]) > TOO_SLOW}
    if table.n_log_n:
        add_growth(records)
    return records


def in_turns(rows, least, most):
    """Return the runs of each row. Short jobs run more often, and slow peers only once."""
    runs = [[] for _ in rows]
    start = perf_counter()
    for turn in range(most):
        if turn >= least and perf_counter() - start > PATIENCE:
            break
        for row, each in zip(rows, runs, strict=True):
            if not turn or row.tool == "batchbpe" or seconds(each[0]) <= measure.SLOW:
                each.append(measure.run_apart(row.case, row.params, row.cores))
    return runs


def seconds(run):
    return run.get("seconds", math.inf)


def check(title, rows, runs):
    """Exit unless batchbpe succeeded and all results agree: ids exactly, vocabularies for the most part."""
    ids, vocabularies = set(), {}
    for row, each in zip(rows, runs, strict=True):
        for run in each:
            if row.tool == "batchbpe" and "failed" in run:
                raise SystemExit(f"{title}: {row.label} {run['failed']}")
            ids |= {run["ids"]} if "ids" in run else set()
            vocabulary = frozenset(run.pop("vocabulary", ()))
            if vocabularies.setdefault(row.tool, vocabulary) != vocabulary:
                raise SystemExit(f"{title}: the vocabularies of two runs of {row.tool} are different")
            if vocabulary:
                run["shared"] = shared = len(vocabulary & vocabularies["batchbpe"]) / len(vocabulary)
                if shared < MIN_SHARED:
                    raise SystemExit(f"{title}: {row.label} shares only {shared:.1%} of its vocabulary with batchbpe")
    if len(ids) > 1:
        raise SystemExit(f"{title}: the tools return different ids")


def record(row, runs, ours):
    """Return the fields of a row. In a ratio, the runs of one turn are compared."""
    best = min(runs, key=seconds) | {"tool": row.label, "size": row.size}
    for name in TIMES:
        if all(name in run for run in (*runs, *ours)):
            best[name] = min(run[name] for run in runs)
            best[f"{name}_ratio"] = median(run[name] / our[name] for run, our in zip(runs, ours, strict=False))
    if "busy" in best:
        best["busy"] = max(run["busy"] for run in runs if "busy" in run)
    return best


def add_growth(records):
    """Add how much more than n log n the time has grown since the smallest size."""
    first = {}
    for each in records:
        if "seconds" in each:
            cost = each["seconds"] / (each["size"] * math.log(each["size"]))
            each["growth"] = cost / first.setdefault(each["tool"], cost)


def grows_too_fast(records):
    return any(each["tool"] == "batchbpe" and each.get("growth", 0) > MAX_GROWTH for each in records)


def write_csv(path, records):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(records)


def read_csv(path):
    """Return the records, with numbers where there are numbers, and without empty fields."""

    def value(field, text):
        return text if field in ("run", "job", "table", "tool", "result", "failed") else float(text)

    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{field: value(field, text) for field, text in row.items() if text} for row in csv.DictReader(file)]


COLUMNS = {
    "size": ("size", lambda size: megabytes(size)),
    "seconds": ("seconds", lambda time: duration(time)),
    "seconds_ratio": ("ratio", "{:.2f}".format),
    "repeated": ("repeated", lambda time: duration(time)),
    "repeated_ratio": ("ratio", "{:.2f}".format),
    "growth": ("n log n", "× {:.2f}".format),
    "cpu": ("CPU seconds", "{:.3f}".format),
    "peak": ("peak MB", lambda memory: f"{max(memory, 0):,.0f}"),
    "data": ("of which data", lambda memory: f"{max(memory, 0):,.0f}"),
    "shared": ("shared tokens", "{:.2%}".format),
    "busy": ("other load", "{:.0%}".format),
}


def markdown(title, records, heading="###"):
    """Return a table with the columns that its records have."""
    several = len({each.get("size") for each in records}) > 1
    names = [name for name in COLUMNS if (several or name != "size") and any(has(each, name) for each in records)]
    lines = [["tool", *(COLUMNS[name][0] for name in names), ""], ["---", *("---:" for _ in names), "---"]]
    for each in records:
        cells = [COLUMNS[name][1](each[name]) if has(each, name) else "–" for name in names]
        lines.append([each["tool"], *cells, each.get("failed") or each.get("result", "")])
    return "\n".join([f"{heading} {title}\n", *(f"| {' | '.join(cells)} |" for cells in lines), ""])


def has(each, name):
    return each.get(name) is not None and (each.get("cpu") is not None or name not in ("peak", "data"))


def duration(seconds):
    return f"{seconds:.3f}" if seconds >= 1e-3 else f"{seconds * 1e6:.2f} µs"
