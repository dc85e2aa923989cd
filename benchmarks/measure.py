"""Run one case in a fresh process: seconds, CPU seconds and peak memory of its job, and the other load (Linux)."""

import contextlib
import ctypes
import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
LIMIT = 120
"""A run that takes longer, in seconds, is stopped."""
SLOW = 5
"""A job that takes longer is not repeated."""


class Case(NamedTuple):
    """A job, made by a function that has imported its tool."""

    load: Callable[[], Any]
    job: Callable[[Any], Any]
    describe: Callable[[Any], dict[str, Any]]
    again: bool = False
    """Whether to time repeated calls as well."""


def megabytes(field):
    """VmRSS (memory now) or VmHWM (its peak) of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[field].split()[0]) / 1024


def run_here(case):
    interpreter = megabytes("VmRSS")
    data = case.load()
    # Return what loading freed, or the job would reuse it unnoticed.
    ctypes.CDLL(None).malloc_trim(0)
    loaded = megabytes("VmRSS") - interpreter
    # Reset the peak if the system allows it; otherwise the figure is too high.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    seconds, cpu, result = timed(case.job, data)
    peak = megabytes("VmHWM") - interpreter
    run = {"seconds": seconds, "cpu": cpu, "peak": peak, "data": loaded} | case.describe(result)
    del result
    if case.again and seconds < SLOW:
        run["repeated"] = repeated(case.job, data)
    return run


def timed(job, data):
    wall, cpu = time.perf_counter(), time.process_time()
    result = job(data)
    return time.perf_counter() - wall, time.process_time() - cpu, result


def repeated(job, data, patience=0.5, most=5):
    """Return the shortest of up to `most` further calls."""
    times = []
    while len(times) < most and sum(times) < patience:
        times.append(timed(job, data)[0])
    return min(times)


def case_of(name, params):
    """Return a case by the name of its function, "module.function"."""
    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"benchmarks.{module}"), function)(**params)


def run_apart(name, params, cores=None):
    """Run a case in a new interpreter with cold caches, on a number of cores (None for all).

    A run that fails or takes too long returns {"failed": reason}.
    """
    command = [sys.executable, "-m", "benchmarks.measure", name, json.dumps(params), json.dumps(cores)]
    # Write bytecode, which installed packages have.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before, start = machine_seconds(), time.perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {LIMIT} s"}
    if done.returncode:
        sys.stderr.write(done.stderr)
        return {"failed": f"failed with exit status {done.returncode}"}
    others = machine_seconds() - before
    busy = others / (time.perf_counter() - start) / len(os.sched_getaffinity(0))
    return {"busy": min(max(busy, 0), 1)} | json.loads(done.stdout.splitlines()[-1])


def machine_seconds():
    """CPU seconds that this machine has spent on anything but this process and its children, stolen time included."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, interrupts, soft, stolen = map(int, fields)
    total = (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return total - sum(usage.ru_utime + usage.ru_stime for usage in usages)


def use_cores(number):
    """Restrict this process to some of its cores; tools then start no more threads than that."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-number:])


if __name__ == "__main__":
    name, params, cores = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    if cores:
        use_cores(cores)
    print(json.dumps(run_here(case_of(name, params))))
