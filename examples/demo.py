"""`make demo`: train 32,768 tokens, 100 of them stop words, on the source of Python's standard library."""

from __future__ import annotations

import sys
import sysconfig
import time
from pathlib import Path

from batchbpe import Batch, BatchTokenizer, ChunkCounts


def main() -> None:
    """Count, train, encode and decode, and print the time of each step."""
    write = sys.stdout.write
    start = time.perf_counter()
    folder = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in folder.rglob("*.py") if "site-packages" not in path.parts)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    size = sum(map(len, texts)) / 1e6
    read = time.perf_counter()
    write(f"read      {len(texts):,} files from {folder}, {size:.1f} MB, in {read - start:.2f} s\n")

    counts = ChunkCounts.count(texts=texts)
    counted = time.perf_counter()
    write(
        f"counted   {counts.total:,} chunks, {counts.unique:,} of them unique, in {counted - read:.2f} s "
        f"({size / (counted - read):.0f} MB/s)\n"
    )

    batches: list[Batch] = []
    tokenizer = BatchTokenizer(stop_list_size=100)
    tokenizer.train(counts, 32768, on_batch=batches.append)
    trained = time.perf_counter()
    merges = len(tokenizer.merges)
    write(
        f"trained   {tokenizer.n_vocab:,} tokens ({len(tokenizer.stop_words)} stop words, {merges:,} merges) in "
        f"{len(batches)} batches with a mean size of {merges / len(batches):.0f}, in {trained - counted:.2f} s\n"
    )

    text = "\n".join(texts)
    encoding = time.perf_counter()
    ids = tokenizer.encode_to_numpy(text)
    encoded = time.perf_counter()
    write(
        f"encoded   all of it to {len(ids):,} tokens of {len(text) / len(ids):.2f} characters on average, "
        f"in {encoded - encoding:.2f} s\n"
    )
    is_same = tokenizer.decode(ids) == text
    write(f"decoded   to {'the same text' if is_same else 'A DIFFERENT TEXT: please report this'}\n\n")

    line = "    def theory(self, inaccessible): return self.theory_in_the(inaccessible)"
    tokens = tokenizer.encode(line)
    pieces = "|".join(tokenizer.decode([token]) for token in tokens)
    write(f"before    {line}  ({len(line.encode())} bytes)\n")
    write(f"after     {pieces}  ({len(tokens)} tokens)\n")
    write(f"          {tokens}\n")
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
