"""Counts and ids from a Spark cluster, whose executors are processes, are those of one machine."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import jsonl, parquet, write
from helpers import END, TEXT, run
from test_docs import ROOT, run_page

from batchbpe import ChunkCounts, RunCounts, Tokenizer
from batchbpe.errors import ArgumentError, ArgumentTypeError
from batchbpe.patterns import PATTERNS, Split, Step
from batchbpe.spark import files

pytestmark = pytest.mark.spark
DOCUMENTS = [None, "", *TEXT.split("."), f"one{END}two", "語" * 50, " ", "they're", *(f"word{n}" for n in range(300))]
HUGE = "To be, or not to be: " * 100_000
"""A document of 2 MB."""


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(texts=[TEXT], vocab_size=600, special_tokens=[END])


def frame(spark, documents=DOCUMENTS, partitions=2):
    numbered = [(number, text) for number, text in enumerate(documents)]
    return spark.createDataFrame(numbered, "number int, text string").repartition(partitions)


def here(documents=DOCUMENTS, **options):
    return ChunkCounts.count(texts=[text for text in documents if text is not None], **options)


def collected(counts):
    return {bytes(row["chunk"]).decode(): row["count"] for row in counts.collect()}


def test_counts_for_any_number_of_partitions(spark):
    from batchbpe.spark import count_chunks

    for partitions in (1, 2, 11):
        assert collected(count_chunks(frame(spark, partitions=partitions))) == here()


def test_counts_of_skewed_partitions_and_a_huge_document(spark):
    from batchbpe.spark import count_chunks

    documents = [*DOCUMENTS, HUGE]
    skewed = frame(spark, documents).repartition(5, "text").union(frame(spark, [], 2)).union(frame(spark, [None], 1))
    assert collected(count_chunks(skewed)) == here(documents)


@pytest.mark.parametrize(
    "options",
    [
        {"special_tokens": [END]},
        {"pattern": "gpt2"},
        {"pattern": r"[a-z]+|\d"},
        {"pattern": r"(?:(\w)(?!\1))+"},
        {"normalization": "NFKD"},
    ],
)
@pytest.mark.filterwarnings("ignore:the pattern")
def test_counts_with_special_tokens_and_patterns(spark, options):
    from batchbpe.spark import count_chunks

    assert collected(count_chunks(frame(spark), **options)) == here(**options)


def test_a_task_passes_counts_on_when_they_outgrow_its_memory(spark):
    """With a limit of one byte, after every batch of documents."""
    from batchbpe.spark import count_chunks

    tasks = []
    count_chunks(_Recorder(frame(spark), tasks), task_memory=1)
    batches = [pa.record_batch({"text": ["to be"]})] * 3
    assert [batch.to_pydict()["count"] for batch in tasks[0](batches)] == [[1, 1]] * 3
    assert collected(count_chunks(frame(spark), task_memory=1)) == here()


class _Recorder:
    """A data frame that records the functions which are passed to its tasks."""

    def __init__(self, dataframe, tasks):
        self.dataframe, self.tasks = dataframe, tasks

    def __getattr__(self, name):
        return getattr(self.dataframe, name)

    def select(self, *columns):
        return _Recorder(self.dataframe.select(*columns), self.tasks)

    def mapInArrow(self, task, schema):
        self.tasks.append(task)
        return self.dataframe.mapInArrow(task, schema)


def test_the_cutoff_applies_to_the_sum(spark):
    """Each partition has every chunk once."""
    from batchbpe.spark import count_chunks

    documents = frame(spark, ["to be"] * 4 + ["or"], 5)
    assert collected(count_chunks(documents, freq_cutoff=4)) == {"to": 4, " be": 4}


@pytest.mark.skipif(sys.platform != "linux", reason="finds the executor in /proc")
def test_a_lost_executor_is_replaced(spark, tmp_path):
    from batchbpe.spark import count_chunks

    marker = tmp_path / "killed"

    def kill_once(batches):
        for batch in batches:
            if batch.num_rows and not marker.exists():
                marker.touch()
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)  # its parent, the executor
            yield batch

    documents = frame(spark, partitions=8).select("text").mapInArrow(kill_once, "text string")
    assert collected(count_chunks(documents)) == here()
    assert marker.exists()


def test_runs(spark, tokenizer, tmp_path):
    from batchbpe.spark import count_runs

    count_runs(frame(spark, partitions=4), tokenizer, task_memory=1 << 16).write.parquet(str(tmp_path / "runs"))
    expected = RunCounts.count(texts=[text for text in DOCUMENTS if text is not None], model=tokenizer)
    assert len(expected) > 5
    assert RunCounts.load(tmp_path / "runs") == expected


@pytest.mark.parametrize(("keep_text", "allow_special"), [(False, False), (True, False), (False, True)])
def test_ids(spark, tokenizer, keep_text, allow_special):
    from batchbpe.spark import encode

    options = {"keep_text": keep_text, "allow_special": allow_special}
    rows = encode(frame(spark, [*DOCUMENTS, HUGE]), tokenizer, append_eos=True, **options).collect()
    assert rows[0].asDict().keys() == {"number", "ids"} | ({"text"} if keep_text else set())
    end = tokenizer.special_tokens[END]
    for row in rows:
        text = [*DOCUMENTS, HUGE][row["number"]]
        ids = text and tokenizer.encode(text, "all" if allow_special else "none")
        assert row["ids"] == (None if text is None else [*ids, end])
        assert not keep_text or row["text"] == text


def test_arguments_are_checked_on_the_driver(spark, tokenizer):
    from batchbpe.spark import count_chunks, count_runs, encode

    documents = frame(spark)
    with pytest.raises(ArgumentError, match=r"column must be one of the columns \(number, text\), got 'body'"):
        count_chunks(documents, "body")
    with pytest.raises(ArgumentError, match=r"column must be of type string, not int, got 'number'; cast it"):
        encode(documents, tokenizer, "number")
    with pytest.raises(ArgumentTypeError, match="dataframe must be a Spark DataFrame, got 'list'"):
        count_chunks(["to be"])
    with pytest.raises(ArgumentError, match="pattern"):
        count_chunks(documents, pattern="(")
    with pytest.raises(ArgumentTypeError, match="model must be a Tokenizer or a Model"):
        count_runs(documents, "gpt2")
    with pytest.raises(ArgumentError, match="ids_column must not be the name of another column, got 'number'"):
        encode(documents, tokenizer, ids_column="number")


def test_columns_with_any_name(spark):
    from batchbpe.spark import count_chunks

    assert collected(count_chunks(frame(spark).withColumnRenamed("text", "a.`b`"), "a.`b`")) == here()


@pytest.fixture
def invalid(tmp_path):
    """A folder of two files, one of which is not valid UTF-8."""
    (tmp_path / "invalid").mkdir()
    parquet(tmp_path / "invalid" / "good.parquet", text=["to be"])
    column = pa.array([b"or", b"not\xff", None]).view(pa.string())
    pq.write_table(pa.table({"text": column}), tmp_path / "invalid" / "bad.parquet")
    return tmp_path / "invalid"


def test_errors_name_the_file(spark, tokenizer, invalid):
    from pyspark.errors import PythonException

    from batchbpe.spark import count_chunks, encode

    documents = spark.read.parquet(str(invalid)).coalesce(1)
    with pytest.raises(PythonException, match=r"bad\.parquet: invalid UTF-8 at byte 3 of a document; errors="):
        count_chunks(documents).collect()
    with pytest.raises(PythonException, match=r"bad\.parquet: invalid UTF-8 at byte 3 of a document; errors="):
        encode(documents, tokenizer).collect()
    with pytest.raises(PythonException, match=r"good\.parquet: a document has 5 bytes, more than max_document_bytes=4"):
        count_chunks(documents, errors="replace", max_document_bytes=4).collect()
    assert collected(count_chunks(documents, errors="replace")) == here(["to be", "or", "not\ufffd"])


def test_the_commands(spark, place):
    """Counts, model and ids are the same as without Spark, whose working folder is another one in this process."""
    documents = [text for text in DOCUMENTS if text is not None]
    paths = [
        parquet(place / "a.parquet", body=DOCUMENTS),
        jsonl(place / "b.jsonl", *({"body": text} for text in [*documents, None])),
        write(place / "c.txt", TEXT),
    ]
    inputs = [*map(str, paths), "--text-column", "body"]
    folder = str(place / "folder")
    counted = run(["count", *inputs, "--engine", "spark", "-o", folder, "--special-token", END])
    assert counted.exit_code == 0, counted.output
    assert "of them unique, in " in counted.stderr and "on Spark" in counted.stderr
    assert run(["count", *inputs, "-o", "here.parquet", "--special-token", END, "-q"]).exit_code == 0
    assert ChunkCounts.load("folder") == ChunkCounts.load("here.parquet")
    files = {path.name: zlib.crc32(path.read_bytes()) for path in Path("folder").glob("*.parquet")}
    totals = {"unique": ChunkCounts.load("folder").unique, "files": files}
    assert json.loads(Path("folder/_batchbpe.json").read_text()) == totals
    for name, counts in {"there": "folder", "here": "here.parquet"}.items():
        assert run(["train", counts, "-n", "400", "--freq-cutoff", "2", "-o", name, "-q"]).exit_code == 0
    assert Tokenizer.from_file("there.model").model == Tokenizer.from_file("here.model").model
    again = run(["count", *inputs, "--engine", "spark", "-o", folder])
    assert again.exit_code == 1
    assert again.stderr == f"error: {folder} already exists; remove it, or choose another folder\n"
    encode = ["encode", "mine.model", *inputs, "--append-eos", "--allow-special"]
    encoded = run([*encode, "--engine", "spark", "-o", str(place / "ids"), "--json"])
    assert encoded.exit_code == 0, encoded.output
    assert run([*encode, "-o", "bin", "--format", "parquet"]).exit_code == 0
    ids, expected = (pq.read_table(folder).column("ids").to_pylist() for folder in ("ids", "bin/shard_000000.parquet"))
    assert sorted(ids) == sorted(expected)
    assert max(document.count(599) for document in ids) == 2
    assert f'"tokens": {sum(map(len, ids))}' in encoded.stdout


@pytest.fixture
def divided(spark):
    """Spark divides text files into parts of 100 bytes."""
    names = ["spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"]
    for name in names:
        spark.conf.set(name, 100)
    yield
    for name in names:
        spark.conf.unset(name)


@pytest.mark.parametrize("document", ["line", "blank-line", "|", "\n\n", "aab", "語", "<|endoftext|>"])
def test_documents_of_text_files(spark, place, divided, document):
    """Separators overlap themselves and the ends of the parts that Spark reads."""
    choose = random.Random(document).choice
    separator = {"line": "\r\n", "blank-line": "\n \n"}.get(document, document)
    parts = ["a", "\n", "\r\n", " ", "語", "to be", *[*separator, separator] * 4]
    for number in range(3):
        path = place / "texts" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes("".join(choose(parts) for _ in range(500 * number)).encode())
    inputs = [f"{place}/texts/*.txt", "--document", document, "-q"]
    for command, there, here in (
        (["count"], ["folder"], ["here.parquet"]),
        (["encode", "mine.model"], ["ids"], ["bin", "--format", "parquet"]),
    ):
        for engine, (output, *rest) in {"spark": there, "local": here}.items():
            done = run([*command, *inputs, "--engine", engine, "-o", str(place / output), *rest])
            assert done.exit_code == 0, done.output
    assert ChunkCounts.load("folder") == ChunkCounts.load("here.parquet")
    ids, expected = (pq.read_table(folder).column("ids").to_pylist() for folder in ("ids", "bin/shard_000000.parquet"))
    assert len(ids) > 10 and sorted(ids) == sorted(expected)


def test_errors_about_documents_of_text_files(spark, place):
    path = place / "bad.txt"
    path.write_bytes(b"to be\r\nor\xe2\r\n\r\nnot\r\n")
    for options, problem in {
        "--document line": "bad.txt: invalid UTF-8 at byte 2 of a document; --replace-errors replaces it",
        "--document blank-line": "bad.txt: the text is invalid UTF-8 at byte 9; --replace-errors replaces it",
        "--document line --max-document-bytes 4": "bad.txt: a document has 5 bytes, more than --max-document-bytes 4",
        "--document blank-line --max-document-bytes 4 --replace-errors": "bad.txt: the document at byte 0 has 12 bytes",
    }.items():
        failed = run(["count", str(path), *options.split(), "--engine", "spark", "-o", str(place / "folder")])
        assert failed.exit_code == 1
        assert problem in failed.stderr and failed.stderr.count("\n") == 1, failed.stderr
    for document in ("line", "blank-line"):
        options = ["--document", document, "--replace-errors", "-q"]
        done = run(["count", str(path), *options, "--engine", "spark", "-o", str(place / document)])
        assert done.exit_code == 0, done.output
        assert ChunkCounts.load(document) == ChunkCounts.count(files=path, document=document, errors="replace")


SHARDED = ["bin", "npy", "llm.c", "megatron", "datatrove", "olmo"]


@pytest.mark.parametrize("form", [*SHARDED, "parquet"])
def test_encoding_with_validation(spark, place, form):
    """One partition gives the bytes of the local command; parquet files are Spark's. `decode` reads both."""
    texts = [text for text in DOCUMENTS if text is not None]
    path = str(parquet(place / "a.parquet", text=texts))
    encode = ["encode", "mine.model", path, "--format", form, "--append-eos", "--prepend-bos", "--validation", "0.3"]
    there = run([*encode, "--engine", "spark", "-o", str(place / "there"), "--json"])
    here = run([*encode, "-o", "here", "--json"])
    assert (there.exit_code, here.exit_code) == (0, 0), there.output
    totals = [{name: json.loads(result.stdout)[name] for name in NAMES} for result in (there, here)]
    assert totals[0] == totals[1] and 0 < totals[0]["validation_documents"] < len(texts)
    for part in ("train", "validation"):
        decoded = [run(["decode", "mine.model", f"{name}/{part}"]).stdout_bytes for name in ("there", "here")]
        assert decoded[0] == decoded[1] != b""
    assert (place / "there" / "_SUCCESS").exists() and run(["decode", "mine.model", "there"]).exit_code == 0
    if form != "parquet":
        files = [
            {str(path.relative_to(name)): path.read_bytes() for path in Path(name).rglob("*") if path.is_file()}
            for name in ("there", "here")
        ]
        assert files[0].pop("_SUCCESS") == b"" and files[1].pop("shards.json")
        assert files[0] == files[1]


NAMES = ["tokens", "documents", "validation_tokens", "validation_documents"]


def test_a_shard_for_each_partition(spark, place):
    """Jobs that fail leave nothing behind."""
    (place / "in").mkdir()
    for number in range(3):
        parquet(place / "in" / f"{number}.parquet", text=[f"{number} {TEXT}"] * (number + 1))
    encode = ["encode", "mine.model", str(place / "in"), "--engine", "spark", "--format", "megatron"]
    with_files = run([*encode, "-o", str(place / "out")])
    assert with_files.exit_code == 0, with_files.output
    decoded = run(["decode", "mine.model", "out"]).stdout
    assert decoded.count(TEXT) == 6 and len(decoded) == 6 * (len(TEXT) + 2)
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
    again = run([*encode, "-o", str(place / "out")])
    assert again.stderr == f"error: {place}/out already exists; remove it, or choose another folder\n"
    for output, problem in {
        "s3a://bucket/out": "--output must be a folder that all executors share for megatron files, got 's3a://bucket",
        str(place / "absent" / "out"): "absent/out: no such file or directory",
    }.items():
        failed = run([*encode, "-o", output])
        assert failed.exit_code in (1, 2) and problem in failed.stderr, failed.stderr
    failed = run([*encode, "-o", str(place / "new"), "--max-document-bytes", "5"])
    assert "more than --max-document-bytes 5" in failed.stderr, failed.stderr
    assert not [path for path in place.iterdir() if path.name.startswith((".", "new"))]


def test_a_url_is_refused_before_spark_starts(place, monkeypatch):
    monkeypatch.setattr(files, "_session", None)
    failed = run(["encode", "mine.model", "book.txt", "--engine", "spark", "--format", "bin", "-o", "s3a://bucket/out"])
    assert failed.exit_code == 2 and "must be a folder that all executors share for bin files" in failed.stderr


def test_a_partition_that_is_too_long_for_the_format(tmp_path, monkeypatch):
    """The task is called here, because executors do not see the patch. Documents cannot be split on Spark."""
    import pyspark

    from batchbpe.jobs.encode_options import EncodeOptions
    from batchbpe.jobs.encoded import DocumentEncoder
    from batchbpe.jobs.token_files import FORMATS
    from batchbpe.spark import tasks

    monkeypatch.setattr(FORMATS["llm.c"], "max_tokens", 10)
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: 0))
    tokenizer = Tokenizer.train(TEXT, 300)
    layout = EncodeOptions("llm.c", shard_tokens=5).layout(tmp_path, tokenizer)
    batches = [pa.RecordBatch.from_pydict({"text": [TEXT]})]
    encoder = tasks.PickledEncoder(DocumentEncoder(tokenizer))
    with pytest.raises(Exception, match=r"longer than 10 tokens.*use more partitions or another format"):
        list(tasks.write_task(encoder, layout, False, 1 << 20, batches))
    assert not [*tmp_path.iterdir()]


def test_files_of_killed_tasks_are_removed(spark, place, monkeypatch):
    """Of a task that was killed while it wrote to the new folder."""
    read = files.read_documents

    def read_late(*arguments):
        (folder,) = place.glob(".*.tmp")
        write(folder / ".shard_000000.bin.x.tmp", "unfinished")
        return read(*arguments)

    monkeypatch.setattr(files, "read_documents", read_late)
    encode = ["encode", "mine.model", str(place / "book.txt"), "--engine", "spark", "--format", "bin"]
    done = run([*encode, "-o", str(place / "out")])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in (place / "out").iterdir()) == ["_SUCCESS", "shard_000000.bin"]


def test_command_errors(spark, place, invalid):
    output = place / "folder"
    for inputs, problem in {
        f"{invalid}/bad.parquet": "bad.parquet: invalid UTF-8 at byte 3 of a document; --replace-errors replaces it",
        f"{invalid}/good.parquet --max-document-bytes 4": "a document has 5 bytes, more than --max-document-bytes 4",
        f"{invalid}/none.parquet": "none.parquet",
        f"{place}/mine.model": "mine.model",
        "counts.csv": "counts.csv: Spark cannot read this as documents; pass .txt, .md, .parquet or .jsonl",
        f"{invalid} --text-column body": "no column 'body' among ['text']; choose one with --text-column",
        f"foo://{place}/x.parquet": 'No FileSystem for scheme "foo"',
        str(write(place / "bad.jsonl", '{"text": "to be"}\n{"text": \n')): "bad.jsonl",
    }.items():
        failed = run(["count", *inputs.split(), "--engine", "spark", "-o", str(output)])
        assert failed.exit_code == 1
        assert problem in failed.stderr and failed.stderr.count("\n") == 1, failed.stderr
        assert not output.exists()


def test_the_folder_of_another_job_is_kept(spark, place, monkeypatch):
    """It appears after the check that there is none."""
    output, read = place / "folder", files.read_documents

    def read_late(*arguments):
        write(output / "theirs", "kept")
        return read(*arguments)

    monkeypatch.setattr(files, "read_documents", read_late)
    failed = run(["count", str(place / "book.txt"), "--engine", "spark", "-o", str(output)])
    assert failed.stderr == f"error: {output} already exists; remove it, or choose another folder\n"
    assert [path.name for path in output.iterdir()] == ["theirs"]


@pytest.mark.parametrize(
    "arguments",
    [
        "count book.txt -o out --threads 2",
        "count book.txt -o out --resume",
        "encode mine.model book.txt -o out --sample 0.5",
        "encode mine.model book.txt -o out --format nanogpt --validation 0.5",
        "encode mine.model book.txt -o out.npy",
    ],
)
def test_options_without_effect(place, arguments):
    refused = run(f"{arguments} --engine spark")
    assert refused.exit_code == 2 and "with --engine spark; " in refused.stderr
    assert run(f"{arguments} --master local").exit_code == 2


def test_the_examples_of_the_page_run(spark, tmp_path, monkeypatch):
    run_page(ROOT / "docs" / "scale.md", tmp_path, monkeypatch)


def test_a_separate_cluster(spark, place):
    """The command starts Spark and stops it, and warns about text that the pattern does not match."""
    command = [Path(sys.executable).with_name("batchbpe"), "count", "book.txt", "-o", "folder", "--pattern", "[a-z]+"]
    quick_start = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'"
    settings = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"{quick_start} --conf spark.ui.enabled=false pyspark-shell",
    }
    ran = subprocess.run(
        [*command, "--engine", "spark", "--master", "local[1]"],
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    with pytest.warns(UserWarning, match="does not match") as warned:
        assert ChunkCounts.load("folder") == ChunkCounts.count(files="book.txt", pattern="[a-z]+")
    assert f"warning: {warned[0].message}" in ran.stderr
    assert sorted(path.name for path in Path().iterdir() if path.is_dir()) == ["folder"]


def test_a_folder_carries_the_split(spark, tmp_path):
    from batchbpe.spark import count_chunks

    split = Split(PATTERNS["gpt2"], (Step(r"\p{N}", "Contiguous", invert=True), Step("a")), "NFC")
    count_chunks(frame(spark), pattern=split).write.parquet(str(tmp_path / "counts"))
    assert ChunkCounts.load(tmp_path / "counts") == here(pattern=split)


@pytest.mark.skipif(os.name != "posix", reason="Windows does not list the children of a process")
@pytest.mark.parametrize("system", ["linux", "macos", "neither"])
def test_java_is_stopped_if_it_has_not_started_yet(system, monkeypatch):
    """Processes are listed in /proc or by ps; without both, Java ends by itself."""
    from batchbpe.spark import files

    if system != "linux":
        monkeypatch.setattr(Path, "read_text", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    if system == "macos" and not shutil.which("ps"):  # as in some containers
        pytest.skip("there is no ps")
    if system == "neither":
        monkeypatch.setenv("PATH", "")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert (child.pid in files._children()) == (system != "neither")
