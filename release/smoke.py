"""Try the installed package in the current folder, which is empty: `python smoke.py README.md VERSION`.

This needs only what the package itself needs, and no repository.
"""

from __future__ import annotations

import os
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.metadata import requires, version
from pathlib import Path

COMMANDS = """
--help
train --help
experiment sweep --help
count corpus.txt -o counts.parquet
train counts.parquet -n 700 --stop-list-size 20 --special-token <|end|> --eos <|end|> -o mine
inspect mine.model
encode mine.model corpus.txt -o ids.npy
decode mine.model ids.npy -o decoded.txt
evaluate mine.model --data corpus.txt
export mine.model --to huggingface -o tokenizer.json --allow-inexact
export mine.model --to tiktoken -o mine.tiktoken --allow-inexact
diff mine.model tokenizer.json
atlas mine.model tokenizer.json --data corpus.txt -o atlas.html
"""


def check_installation(expected: str) -> None:
    """Check the version, that this is the installed package, and that Rust cannot be called."""
    import batchbpe

    assert batchbpe.__version__ == version("batchbpe") == expected, (batchbpe.__version__, version("batchbpe"))
    assert Path(batchbpe.__file__).is_relative_to(sys.prefix), batchbpe.__file__
    assert run("--version") == f"batchbpe {expected}\n"


def import_all() -> None:
    """Import every module. Only packages of the extras may be missing."""
    import batchbpe

    optional = {re.split(r"[\s;<>=\[]", each)[0] for each in requires("batchbpe") or [] if "extra ==" in each}
    optional |= {"tokenizers", "yaml"}
    for module in pkgutil.walk_packages(batchbpe.__path__, "batchbpe."):
        if module.name != "batchbpe.__main__":
            try:
                import_module(module.name)
            except ImportError as error:
                assert any(name in str(error) for name in optional), f"{module.name}: {error}"


def run(*arguments: str) -> str:
    """Run the command that was installed, and return what it prints."""
    command = shutil.which("batchbpe")
    assert command and Path(command).is_relative_to(sys.prefix), command
    done = subprocess.run([command, *arguments], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, f"batchbpe {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def run_readme(readme: str) -> None:
    """Run the examples in Python, and the shell commands where there is a shell."""
    examples = re.findall(r"(?ms)^```python\n(.*?)^```", readme)
    commands = "".join(re.findall(r"(?ms)^```sh\n(.*?)^```", readme))
    assert examples and commands
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    if os.name == "posix" and shutil.which("bash"):
        subprocess.run(["bash", "-euo", "pipefail", "-c", commands], check=True, stdout=subprocess.DEVNULL)


def check_views() -> None:
    """Count strings as Polars stores them, which older versions of pyarrow cannot read."""
    import pyarrow as pa

    from batchbpe import ChunkCounts

    views = pa.array(["a text", None, "a text of more than twelve bytes"], pa.string_view())
    assert ChunkCounts.count(pa.table({"text": views})).total == 9
    assert ChunkCounts.count(pa.chunked_array([views])).total == 9


def main(readme: str, expected: str) -> None:
    """Write a corpus, and try everything."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = Path(re.__file__).read_text(encoding="utf-8")
    Path("corpus.txt").write_text(text, encoding="utf-8", newline="\n")
    Path("data").mkdir()
    pq.write_table(pa.table({"text": text.splitlines()}), "more.parquet")
    pq.write_table(pa.table({"text": [text] * 3}), "data/a.parquet")
    check_installation(expected)
    import_all()
    check_views()
    for command in COMMANDS.strip().splitlines():
        run(*command.split())
    assert Path("decoded.txt").read_text(encoding="utf-8") == text
    run_readme(Path(readme).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main(*sys.argv[1:])
