"""Run one case of cases.py in a fresh process: seconds, CPU seconds and peak memory of its job (Linux)."""

import contextlib
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def megabytes(field):
    """VmRSS (memory now) or VmHWM (its peak) of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[field].split()[0]) / 1024


def run_here(load, job, describe):
    interpreter = megabytes("VmRSS")
    data = load()
    # Return what loading freed, or the job would reuse it unnoticed.
    ctypes.CDLL(None).malloc_trim(0)
    loaded = megabytes("VmRSS") - interpreter
    # Reset the peak if the system allows it; otherwise the figure is too high.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    wall, cpu = time.perf_counter(), time.process_time()
    result = job(data)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = megabytes("VmHWM") - interpreter
    return {"seconds": wall, "cpu": cpu, "peak": peak, "data": loaded} | describe(result)


def run_apart(case, params):
    """Run a case in a new interpreter, with cold caches and its own memory peak."""
    command = [sys.executable, "-m", "benchmarks.measure", case, json.dumps(params)]
    # Write bytecode, which installed packages have.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{case} {params} failed: see above")
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    from benchmarks import cases

    name, params = sys.argv[1:]
    print(json.dumps(run_here(*getattr(cases, name)(**json.loads(params)))))
