"""Count the instructions of the core's hot loops with callgrind, and compare them with counts.json.

`make bench-instructions` fails if a count has grown by more than 1%, and `make bench-instructions UPDATE=1` writes the
file. Counts do not depend on other load, but on the compiler and on the instructions of the processor that valgrind
supports, so the file states both.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
COUNTS = HERE / "counts.json"
PROGRAM = HERE / "target" / "release" / "batchbpe-instructions"
TOLERANCE = 0.01
# One chunk of 300,000 letters against one of 100,000: n log n grows by 3.3.
MAX_GROWTH = 3.5


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def instructions(case):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind.out"
        run(
            "valgrind",
            "--tool=callgrind",
            "--toggle-collect=*::measured*",
            f"--callgrind-out-file={output}",
            PROGRAM,
            case,
        )
        return int(re.search(r"^(?:summary|totals): (\d+)", output.read_text(), re.MULTILINE)[1])


def environment():
    """Return what the counts depend on besides the code."""
    features = run("valgrind", "--quiet", "--tool=none", PROGRAM, "features").strip()
    return {"rustc": run("rustc", "--version").split()[1], "features": features}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write counts.json")
    options = parser.parse_args()
    subprocess.run(["cargo", "build", "--quiet", "--release", "--manifest-path", HERE / "Cargo.toml"], check=True)
    cases = run(PROGRAM).split()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        counts = dict(zip(cases, pool.map(instructions, cases), strict=True))
    found = {"environment": environment(), "counts": counts}
    before = json.loads(COUNTS.read_text()) if COUNTS.exists() else {"environment": found["environment"], "counts": {}}
    slower = compare(before["counts"], counts)
    if options.update:
        COUNTS.write_text(json.dumps(found, indent=2) + "\n")
    elif before["environment"] != found["environment"]:
        sys.exit(
            f"counts.json is for {before['environment']}, but this is {found['environment']}: compare two runs here"
        )
    elif slower:
        sys.exit(f"more instructions than in counts.json: {', '.join(slower)}")
    for case in ("train", "encode"):
        growth = counts[f"{case}-one-chunk-300k"] / counts[f"{case}-one-chunk-100k"]
        if growth > MAX_GROWTH:
            sys.exit(f"{case}-one-chunk grows faster than n log n: by {growth:.2f} for 3 times the length")


def compare(before, now):
    """Print a table, and return the cases that have grown too much. A case that is new has not."""
    print(f"{'':24}{'before':>14}{'now':>14}{'ratio':>8}")
    for case, count in now.items():
        old = before.get(case)
        print(f"{case:24}{old:>14,}{count:>14,}{count / old:>8.3f}" if old else f"{case:24}{'–':>14}{count:>14,}")
    return [case for case, count in now.items() if count > before.get(case, count) * (1 + TOLERANCE)]


if __name__ == "__main__":
    main()
