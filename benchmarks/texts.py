"""Benchmark texts. Those made from the data folder are kept in `CACHE`."""

import csv
import os
import platform
import sysconfig
from pathlib import Path

CACHE = Path(__file__).parent / "data"
SEPARATOR = "\0"


def column(path):
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=["text"])["text"]


def load_text(path):
    """Return a new string. Its UTF-8 is not cached yet, so the first call of an encoder has to convert it."""
    return Path(path).read_bytes().decode()


def load_documents(path):
    """Return the documents of a parquet file, or of a text file with separators, as new strings."""
    if str(path).endswith(".txt"):
        return [part.decode() for part in Path(path).read_bytes().split(SEPARATOR.encode())]
    import pyarrow as pa

    texts = column(path).to_pylist()
    pa.default_memory_pool().release_unused()
    return texts


def load_pieces(path, characters=3_000):
    text = load_text(path)
    return [text[start : start + characters] for start in range(0, len(text), characters)]


def load_counts(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [(chunk, int(count)) for chunk, count in rows if int(count)]


def cached(name, source, write):
    """Return the path of a file that `write(path)` makes from `source`, if it has not been made yet."""
    path = CACHE / name
    if not path.exists() or path.stat().st_mtime < Path(source).stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"partial-{name}")
        write(partial)
        partial.replace(path)
    return path


def sample(data, language, size):
    """Return a file of about `size` bytes of documents, spread evenly over the file, which may be sorted by language.

    The language "code" is Python's standard library.
    """
    if language == "code":
        return cached(f"code-{platform.python_version()}-{size}.txt", os.__file__, lambda path: write_code(path, size))
    source = data / f"{language}.parquet"

    def write(path):
        texts = [text.encode() for text in load_documents(source)]
        step = max(1, sum(map(len, texts)) // size)
        write_prefix(path, b"\n".join(texts[::step]), size)

    return cached(f"{language}-{size}.txt", source, write)


def mixed(data, size):
    """Return a parquet file of about `size` bytes of text: documents and code, repeated if necessary."""

    def write(path):
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        sources = [column(data / f"{language}.parquet").combine_chunks() for language in ("english", "multilingual")]
        code = pa.array([content.decode() for content in code_files(size)], sources[0].type)
        table = pa.table({"text": pa.chunked_array([*sources, code])})
        total = pc.sum(pc.binary_length(table["text"])).as_py()
        table = table.take(pa.array(range(0, len(table), max(1, total // size))))
        with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
            for _ in range(max(1, round(size / total))):
                writer.write_table(table, row_group_size=10_000)

    return cached(f"mixed-{platform.python_version()}-{size}.parquet", data / "english.parquet", write)


def write_code(path, size):
    write_prefix(path, b"".join(code_files(size)), size)


def code_files(size):
    """Yield the contents of files of Python's standard library, up to about `size` bytes."""
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if size <= 0:
            break
        # Third-party packages differ between machines; some test files are deliberately not UTF-8.
        if "site-packages" not in file.parts and is_utf8(content := file.read_bytes()):
            size -= len(content)
            yield content


def write_prefix(path, content, size):
    path.write_bytes(content[:size].decode(errors="ignore").encode())


def is_utf8(content):
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def repeated(character, size):
    """Return a file that repeats one character, which every named pattern leaves in one chunk."""
    return cached(f"{ord(character)}-{size}.txt", __file__, lambda path: path.write_bytes(character.encode() * size))
