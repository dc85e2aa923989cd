"""Run the benchmarks and write the tables."""

import argparse
import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.tables import jobs, markdown

PACKAGES = ("batchbpe", "ffbpe", "rustbpe", "tokenizers", "tiktoken", "numpy", "pyarrow")


def installed(package):
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} not installed"


def heading(tries):
    models = (line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name"))
    cpu = next(models, platform.machine()).rpartition(": ")[2]
    machine = f"{cpu}, {len(os.sched_getaffinity(0))} cores; Python {platform.python_version()}"
    return (
        f"# Results\n\n{datetime.date.today()}; {machine}; {', '.join(map(installed, PACKAGES))}.\n"
        f"The best of {tries}, each in a fresh process; the tools take turns. `relative` is the median of\n"
        "the ratios to the first row within a turn. Memory is the peak above the interpreter after imports; `of which\n"
        "data` was loaded before.\n"
    )


def main():
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with documents, counts and ranks (see README.md)")
    parser.add_argument("--jobs", nargs="+", choices=list(jobs(False)), help="run only these")
    parser.add_argument("--quick", action="store_true", help="run each once instead of 3 to 9 times")
    parser.add_argument("--every-peer", action="store_true", help="include slow peers on multilingual text")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "RESULTS.md")
    options = parser.parse_args()

    least, most = (1, 1) if options.quick else (3, 9)
    parts = [heading("1 run" if options.quick else f"{least} to {most} runs (more for short jobs)")]
    for name, tables in jobs(options.every_peer).items():
        if not options.jobs or name in options.jobs:
            for title, rows in tables(options.data.resolve()):
                parts.append(markdown(title, rows, least, most))
                print(parts[-1], flush=True)
    options.output.write_text("\n".join(parts), encoding="utf-8")


main()
