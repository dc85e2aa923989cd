"""Compare batchbpe with other tools, and write RESULTS.md, results.csv and charts."""

import argparse
import datetime
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

from benchmarks import charts
from benchmarks.jobs import JOBS, QUICK, Inputs, Scale, is_installed
from benchmarks.tables import grows_too_fast, markdown, measured, read_csv, write_csv

PACKAGES = {"quicktok": "quicktok-v1"}
TOOLS = ("batchbpe", "ffbpe", "rustbpe", "tokenizers", "transformers", "sentencepiece", "gigatoken", "tiktoken")
TOOLS += ("quicktok", "regex")


def installed(tool):
    package = PACKAGES.get(tool, tool)
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} {'from source' if is_installed(tool) else 'not installed'}"


def describe_run(turns):
    """Return what else the figures depend on: date, machine and versions."""
    models = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    cpu = next(models, platform.machine()).rpartition(": ")[2]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{cpu}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GB; Python {platform.python_version()}"
    versions = ", ".join(map(installed, (*TOOLS, "numpy", "pyarrow")))
    return f"{datetime.date.today()}; {machine}; {versions}; best of {turns}."


def report(records):
    """Return the page of results. It repeats the description of the run wherever it changes."""
    parts, run = ["# Benchmark results\n\n[README.md](README.md) explains how to read these tables.\n"], None
    for job, of_job in groupby(records, key=lambda each: each["job"]):
        parts.append(f"## {job}\n")
        for title, rows in groupby(of_job, key=lambda each: each["table"]):
            rows = list(rows)
            if rows[0]["run"] != run:
                run = rows[0]["run"]
                parts.append(f"{run}\n")
            parts.append(markdown(title, rows))
    return "\n".join(parts)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("benchmarks/data"), help="folder of data (see README.md)")
    parser.add_argument("--only", nargs="+", choices=list(JOBS), metavar="JOB", help=f"run only {', '.join(JOBS)}")
    parser.add_argument(
        "--tools", nargs="+", default=TOOLS, choices=TOOLS, metavar="TOOL", help=f"run only {', '.join(TOOLS)}"
    )
    parser.add_argument("--quick", action="store_true", help="run each case once, on little data")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent, help="folder for the results")
    options = parser.parse_args(arguments)

    least, most = (1, 1) if options.quick else (3, 9)
    run = describe_run("1 run, on little data" if options.quick else f"{least} to {most} runs")
    inputs = Inputs(options.data.resolve(), QUICK if options.quick else Scale())
    options.output.mkdir(parents=True, exist_ok=True)
    problems = []
    for job in options.only or JOBS:
        records = []
        for table in JOBS[job](inputs):
            rows = measured(table, {"batchbpe", *options.tools}, least, most)
            records += [each | {"run": run, "job": job, "table": table.title} for each in rows]
            print(markdown(table.title, rows), flush=True)
            if grows_too_fast(rows) and not options.quick:
                problems.append(f"{table.title}: the time of batchbpe grows faster than n log n")
        save(options.output, job, records)
    charts.draw(read_csv(options.output / "results.csv"), options.output / "charts")
    if problems:
        sys.exit("\n".join(problems))


def save(folder, job, records):
    """Replace the results of a job, and keep those of other jobs."""
    others = [each for each in read_csv(folder / "results.csv") if each["job"] != job]
    order = list(JOBS)
    everything = sorted(others + records, key=lambda each: order.index(each["job"]))
    write_csv(folder / "results.csv", everything)
    (folder / "RESULTS.md").write_text(report(everything), encoding="utf-8")


if __name__ == "__main__":
    main()
