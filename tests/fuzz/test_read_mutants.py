"""Damaged files: each is read or rejected with an error that names it; none crashes the process or fills the memory.

A child process reads all mutants of a file. If it crashes, the last name it printed is the file that caused it.
Set BATCHBPE_FUZZ_MUTANTS=500 to try more mutants.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mutants import mutants

TEXTS = ["to be or not to be", None, "naïve 語", "", "x" * 40, None, "to be or not to be"] * 3
CHILD = """if True:
    import re, sys
    from pathlib import Path
    from batchbpe.analysis.groups import by_column
    from batchbpe.counts.counter import ChunkCounter
    from batchbpe.data.corpus import sources
    from batchbpe.data.options import ReadOptions
    from batchbpe.data.options import Sampling
    from batchbpe.data.sampling import Selection

    def count(path, errors, sample):
        counter = ChunkCounter("gpt4", errors=errors, threads=1)
        options = ReadOptions(errors=errors, max_document_bytes=1 << 20)
        counter.add_sources(sources(path, options), Selection(Sampling(sample)).of)
        counter.finish()

    def group(path):
        for source, parts in by_column(sources(path, ReadOptions(max_document_bytes=1 << 20)), "lang"):
            with source.blamed():
                for _ in parts:
                    pass

    for path in sorted(Path(sys.argv[1]).iterdir()):
        print(path.name, flush=True)
        for work in (lambda: count(path, "strict", 1.0), lambda: count(path, "replace", 0.5), lambda: group(path)):
            try:
                work()
            except (ValueError, OSError) as error:
                if path.name not in str(error):
                    raise AssertionError(f"{path} is not in the message") from error
    print("kilobytes", re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def arrow(type_: pa.DataType | None = None, *, stream: bool = False, compression: str | None = None) -> bytes:
    column: Any = pa.array(TEXTS)
    column = column.dictionary_encode() if type_ is None else column.cast(type_)
    table = pa.table({"id": list(range(len(TEXTS))), "text": column, "lang": ["en", None, "de"] * 7})
    sink = pa.BufferOutputStream()
    new: Any = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, 8)
    return sink.getvalue().to_pybytes()


def parquet(column: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"text": column, "lang": ["en", None, "de"] * 7})
    pq.write_table(table, sink, row_group_size=8, **options)
    return sink.getvalue().to_pybytes()


JSONL = b"".join(json.dumps({"text": text, "lang": "en"}).encode() + b"\n" for text in TEXTS)
FILES = {
    "plain.arrow": arrow(pa.string()),
    "large.arrow": arrow(pa.large_string(), stream=True),
    "view.arrow": arrow(pa.string_view()),
    "dictionary.arrow": arrow(),
    "dictionary-stream.arrow": arrow(stream=True),
    "zstd.arrow": arrow(pa.string(), compression="zstd"),
    "lz4-stream.arrow": arrow(pa.string_view(), stream=True, compression="lz4"),
    "zstd-dictionary.arrow": arrow(compression="zstd"),
    "plain.parquet": parquet(pa.array(TEXTS), use_dictionary=False, compression="none"),
    "dictionary.parquet": parquet(pa.array(TEXTS).dictionary_encode(), compression="zstd"),
    "v2.parquet": parquet(pa.array(TEXTS), data_page_version="2.0", compression="snappy"),
    "delta.parquet": parquet(pa.array(TEXTS), use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}),
    "a.jsonl": JSONL,
    "a.jsonl.gz": gzip.compress(JSONL, mtime=0),
    "a.txt.gz": gzip.compress("\n".join(text or "" for text in TEXTS).encode(), mtime=0),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
@pytest.mark.parametrize("name", FILES)
def test_mutants(name: str, tmp_path: Path) -> None:
    for number, mutant in enumerate(mutants(FILES[name], 40, seed=1)):
        (tmp_path / f"{number:06}-{name}").write_bytes(mutant)
    (tmp_path / f"whole-{name}").write_bytes(FILES[name])
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        output, error = child.communicate(timeout=600)
        assert child.returncode == 0, (child.returncode, output.split()[-1:], error[-2000:])
    assert int(output.split()[-1]) < 400_000, output[-30:]
