"""Compare published tokenizers with cl100k: `python -m benchmarks.models --models .cache/models --data folder`.

The rows of a table take turns, each in a fresh process with one thread. Seconds are CPU time, except in transformers,
where two threads are used. A ratio is to the first row. `make test-models` downloads the tokenizers.
"""

import argparse
import hashlib
import json
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks import texts
from benchmarks.jobs import Row, Table
from benchmarks.measure import Case
from benchmarks.tables import markdown, measured

SIZE = 10_000_000
REPEATED = 3
FAMILIES = {"Llama 3": "llama-3", "Qwen 3.5": "qwen-3.5", "DeepSeek V3": "deepseek-v3", "GLM 4": "glm-4"}
CALLED = {"Llama 3": "llama-3", "GPT-2": "gguf-gpt-2", "Qwen 3": "qwen-3"}
LANGUAGES = {"english": "English", "multilingual": "multilingual text"}
SHORT = "The theory is in the inaccessible parts."


def encode(model, path):
    """Encode a text with the ranks of cl100k or a tokenizer.json, first and repeatedly."""
    from batchbpe import Tokenizer

    is_json = model.endswith(".json")
    tokenizer = Tokenizer.from_huggingface(model) if is_json else Tokenizer.from_tiktoken(model, "cl100k", {})
    tokenizer.encode("")  # builds the encoder

    def job(text):
        times = []
        for _ in range(1 + REPEATED):
            start = time.process_time()
            ids = tokenizer.encode_to_numpy(text, "all", threads=1)
            times.append(time.process_time() - start)
        return times, len(ids)

    return Case(partial(texts.load_text, path), job, described)


def load(tool, model):
    """Load a tokenizer.json, and encode a short text, for which batchbpe builds its encoder."""
    if tool == "tokenizers":
        from tokenizers import Tokenizer

        create = Tokenizer.from_file
    else:
        from batchbpe import Tokenizer

        create = Tokenizer.from_huggingface

    def job(_):
        start = time.process_time()
        ids = create(model).encode(SHORT)
        return [time.process_time() - start], len(ids)

    return Case(int, job, described)


def call(tool, model, path, offsets=False, packages=None):
    """Encode documents as transformers does: to lists of ids and attention masks, and of offsets if asked.

    `packages` is a folder with version 1.0 of tokenizers, which transformers does not support and which has no offsets.
    """
    options = {"return_offsets_mapping": True} if offsets else {}
    if packages:
        sys.path.insert(0, packages)
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(model)

        def job(documents):
            found = tokenizer.encode_batch(documents)
            return [each.ids for each in found], [each.attention_mask for each in found]

    else:
        from transformers import PreTrainedTokenizerFast

        from batchbpe.transformers import load

        create = load if tool == "batchbpe" else PreTrainedTokenizerFast.from_pretrained
        tokenizer = create(Path(model).parent)
        tokenizer.backend_tokenizer.no_truncation()

        def job(documents):
            found = tokenizer(documents, **options)
            return found["input_ids"], found["attention_mask"], found.get("offset_mapping")

    job(["a"])  # builds the encoder
    digest = lambda rows: hashlib.sha256(json.dumps(rows).encode()).hexdigest()  # noqa: E731
    return Case(partial(texts.load_pieces, path), job, lambda found: {"ids": digest(found[0])}, again=True)


def described(result):
    """Report the CPU time of the calls, which depends less on other programs than the time that passes."""
    times, tokens = result
    repeated = {"repeated": min(times[1:])} if times[1:] else {}
    return {"seconds": times[0], "cpu": None, "result": f"{tokens:,} tokens", **repeated}


def tables(models, data, size):
    def of(name):
        return str(models / "tokenizers" / name / "tokenizer.json")

    def row(label, model, path):
        return Row(label, "batchbpe", "models.encode", {"model": str(model), "path": str(path)}, size, cores=1)

    megabytes = f"{size / 1_000_000:g} MB"
    samples = {name: texts.sample(data, language, size) for language, name in LANGUAGES.items()}
    for name, path in samples.items():
        rows = [row("cl100k", data / "cl100k_base.tiktoken", path)]
        rows += [row(label, of(folder), path) for label, folder in FAMILIES.items()]
        yield Table(f"Encoding {megabytes} of {name}", rows)
    without = changed(of("qwen-3.5"), "qwen-3.5-without-nfc", normalizer=None)
    for name, path in samples.items():
        rows = [row("Qwen 3.5 without NFC", without, path), row("with NFC", of("qwen-3.5"), path)]
        yield Table(f"NFC of {megabytes} of {name}", rows)
    single = changed(of("deepseek-v3"), "deepseek-v3-single", pre_tokenizer=pre_tokenizer(of("llama-3")))
    chain = changed(of("deepseek-v3"), "deepseek-v3-chain", pre_tokenizer=unknown_chain(of("deepseek-v3")))
    for name, path in samples.items():
        rows = [
            row("DeepSeek V3's vocabulary with Llama 3's pattern", single, path),
            row("with its own three splits", of("deepseek-v3"), path),
            row("with three splits that are not recognized", chain, path),
        ]
        yield Table(f"Splitting {megabytes} of {name} once or three times, and encoding it", rows)
    for label, folder in {"Qwen 3, 151,643 tokens": "qwen-3", "GLM 4, 151,329 tokens": "glm-4"}.items():
        params = {"model": of(folder)}
        rows = [Row(tool, tool, "models.load", params | {"tool": tool}, cores=1) for tool in ("batchbpe", "tokenizers")]
        yield Table(f"Loading the tokenizer.json of {label}", rows)
    libraries = [str(path) for path in models.glob("libraries/lib/python*/site-packages")]
    for label, folder in CALLED.items():
        for offsets in (False, True):
            params = {"model": of(folder), "path": str(samples["English"]), "offsets": offsets}
            tools = {"batchbpe.transformers": "batchbpe", "transformers, tokenizers 0.23": "transformers"}
            rows = [Row(name, tool, "models.call", params | {"tool": tool}) for name, tool in tools.items()]
            if libraries and not offsets:
                newer = params | {"tool": "tokenizers", "packages": libraries[0]}
                rows.append(Row("tokenizers 1.0 alone", "tokenizers", "models.call", newer))
            title = f"Calling the tokenizer of {label} with {megabytes} of English documents"
            yield Table(title + " and offsets" * offsets + ", 2 threads", rows)


def pre_tokenizer(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))["pre_tokenizer"]


def unknown_chain(path):
    """Return the steps with another first pattern. It differs in a private character, so the chain is not known."""
    steps = pre_tokenizer(path)
    steps["pretokenizers"][0]["pattern"]["Regex"] = "[\\p{N}\ue000]{1,3}"
    return steps


def changed(source, name, **parts):
    """Return a copy of a tokenizer.json with other parts."""

    def write(path):
        content = json.loads(Path(source).read_text(encoding="utf-8"))
        path.write_text(json.dumps(content | parts), encoding="utf-8")

    return str(texts.cached(f"{name}.json", source, write))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="benchmarks.models", description=__doc__)
    parser.add_argument("--models", type=Path, default=Path(".cache/models"), help="folder of make test-models")
    parser.add_argument("--data", type=Path, default=Path("benchmarks/data"), help="folder of data (see README.md)")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of text")
    parser.add_argument("--turns", type=int, default=3, help="runs of each row")
    options = parser.parse_args(arguments)
    for table in tables(options.models.resolve(), options.data.resolve(), options.size):
        records = measured(table, {"batchbpe", "tokenizers", "transformers"}, options.turns, options.turns)
        print(markdown(table.title, records, heading="##"), flush=True)


if __name__ == "__main__":
    main()
