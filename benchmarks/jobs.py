"""The jobs: which cases are compared with each other, on which data. batchbpe is always the first row."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import commands, synthetic, texts
from benchmarks.encoders import TOOLS, model_file

TRAINERS = ("batchbpe", "ffbpe", "rustbpe", "tokenizers", "sentencepiece")
TEXTS = {"english": "English", "multilingual": "multilingual text", "code": "code"}
"""What the titles call each text."""
DOCUMENTS = {"english": "English documents", "multilingual": "multilingual documents"}
CORES = {2: "2 threads", 1: "1 thread"}


class Scale(NamedTuple):
    """The sizes of the data, in bytes, tokens and chunks, and how often commands and short calls are repeated."""

    text: int = 10_000_000
    batch: int = 30_000_000
    vocab_size: int = 32_768
    counts_vocab_size: int = 50_304
    unique: int = 17_000_000
    long_chunks: tuple[int, ...] = (1_000_000, 3_000_000, 10_000_000)
    sizes: tuple[int, ...] = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 2_000_000_000)
    mixed: int = 1_000_000_000
    times: int = 15
    loops: int = 10_000


QUICK = Scale(
    100_000, 100_000, 2_000, 2_000, 300_000, (10_000, 30_000, 100_000), (100_000, 1_000_000), 1_000_000, 1, 1_000
)


class Row(NamedTuple):
    """A line of a table: a case of a tool. Rows of the same `size`, in bytes, are compared with each other."""

    label: str
    tool: str
    case: str
    params: dict[str, Any]
    size: int | None = None
    cores: int | None = None


class Table(NamedTuple):
    title: str
    rows: list[Row]
    n_log_n: bool = False
    """Whether time must not grow faster than n log n."""


def is_installed(tool):
    return importlib.util.find_spec(tool) is not None


class Inputs(NamedTuple):
    """The data folder, and how much of it to use."""

    data: Path
    scale: Scale

    @property
    def csv(self):
        return next(self.data.glob("*.csv"))

    def parquet(self, language):
        return str(self.data / f"{language}.parquet")

    def documents(self, language):
        """All documents, or only a sample in a quick run."""
        if self.scale == QUICK:
            return str(texts.sample(self.data, language, self.scale.text))
        return self.parquet(language)

    def ranks(self, tool, name="cl100k_base"):
        return {"tool": tool, "ranks": model_file(tool, self.data / f"{name}.tiktoken")} if is_installed(tool) else {}

    def encoders(self, case, path=None, size=None, cores=None, **params):
        """Return a row for each encoder."""
        params |= {"path": str(path)} if path else {}
        return [Row(tool, tool, case, self.ranks(tool) | params, size, cores) for tool in TOOLS]


def train(inputs):
    for language, name in DOCUMENTS.items():
        params = {"path": inputs.documents(language), "vocab_size": inputs.scale.vocab_size}
        title = f"Training on {name} in memory to {inputs.scale.vocab_size:,} tokens"
        yield Table(title, [Row(tool, tool, f"training.{tool}", params) for tool in TRAINERS])
    params = {"path": inputs.documents("english"), "vocab_size": inputs.scale.vocab_size}
    ours = Row("batchbpe", "batchbpe", "training.batchbpe", params | {"pattern": "gpt2"})
    yield Table(
        "The same on English, with the gpt2 pattern",
        [ours, Row("gigatoken", "gigatoken", "training.gigatoken", params)],
    )


def like(inputs):
    size = inputs.scale.vocab_size
    for pattern in ("gpt2", "llama3"):
        _, source = trained(inputs, pattern=pattern)
        params = {"path": inputs.documents("english"), "vocab_size": size, "like": source}
        rows = [Row(tool, tool, f"training.{tool}", params) for tool in ("batchbpe", "transformers")]
        yield Table(f"Training {size:,} tokens on English documents in memory, like a {pattern} tokenizer", rows)


def counts(inputs):
    size = inputs.scale.counts_vocab_size
    arguments = [str(inputs.csv), str(size)]
    programs = {"batchbpe": commands.TRAIN_BATCHBPE, "ffbpe": commands.TRAIN_FFBPE}
    rows = [
        Row(tool, tool, "commands.script", {"code": code, "arguments": arguments}) for tool, code in programs.items()
    ]
    yield Table(f"Training on chunk counts from a csv file to {size:,} tokens, including reading and imports", rows)
    params = {"path": str(inputs.csv), "vocab_size": size}
    yield Table("Time inside the default policy, in Python", [Row("batchbpe", "batchbpe", "training.policy", params)])
    params |= {"counts": True}
    serial = Row("batchbpe", "batchbpe", "training.batchbpe", params | {"policy": "serial"})
    yield Table(
        "Training on the same counts in memory, one merge at a time",
        [serial, Row("ffbpe", "ffbpe", "training.ffbpe", params)],
    )


def unique_chunks(inputs):
    scale = inputs.scale
    params = {"path": str(synthetic.counts_file(inputs.csv, scale.unique)), "vocab_size": scale.counts_vocab_size}
    title = f"Training on {scale.unique:,} unique chunks to {scale.counts_vocab_size:,} tokens"
    yield Table(f"{title}, including reading", in_threads("training.batchbpe_file", params))
    yield Table(f"{title}, excluding reading", in_threads("training.batchbpe", params | {"counts": True}))


def encode(inputs, case="to_numpy", kind="numpy"):
    size = inputs.scale.text
    for language, name in TEXTS.items():
        rows = inputs.encoders(f"encoding.{case}", texts.sample(inputs.data, language, size), size, cores=1)
        yield Table(f"Encoding {megabytes(size)} of {name} into {kind}, on one core", rows)


def lists(inputs):
    yield from encode(inputs, "to_list", "a list")


def documents(inputs):
    size = inputs.scale.batch
    for language in DOCUMENTS:
        path = texts.sample(inputs.data, language, size)
        rows = inputs.encoders("encoding.batch", path, size, pieces=True)
        title = f"Encoding {megabytes(size)} of {TEXTS[language]} in documents of 3,000 characters, on all cores"
        yield Table(title, rows)


def phrases(inputs):
    size = inputs.scale.counts_vocab_size
    options = {
        "without phrases": {},
        'phrases="auto"': {"phrases": "auto"},
        'phrases="auto", phrase_chunks="text"': {"phrases": "auto", "phrase_chunks": "text"},
    }
    for language, name in DOCUMENTS.items():
        params = {"path": inputs.documents(language), "vocab_size": size}
        rows = [Row(label, "batchbpe", "phrases.train", params | more) for label, more in options.items()]
        yield Table(f"Training on {name} in memory to {size:,} tokens, with phrases", rows)
    params = {"path": str(texts.mixed(inputs.data, inputs.scale.mixed)), "vocab_size": size}
    rows = [Row(label, "batchbpe", "phrases.train_file", params | more) for label, more in options.items()]
    yield Table(f"The same from {megabytes(inputs.scale.mixed)} of English, other languages and code in parquet", rows)
    for language, name in DOCUMENTS.items():
        models = {label: trained_model(inputs, language, size, **more) for label, more in options.items()}
        path = {"path": str(texts.sample(inputs.data, language, inputs.scale.text))}
        rows = [
            Row(label, "batchbpe", "phrases.encode", path | {"model": model}, inputs.scale.text, cores=1)
            for label, model in models.items()
        ]
        yield Table(f"Encoding {megabytes(inputs.scale.text)} of {TEXTS[language]} into numpy, on one core", rows)
        path = {"path": inputs.documents(language), "batch": True}
        rows = [Row(label, "batchbpe", "phrases.encode", path | {"model": model}) for label, model in models.items()]
        yield Table(f"Encoding {name}, on all cores", rows)


def short(inputs):
    yield Table("Encoding 40 characters into a list", inputs.encoders("encoding.short", loops=inputs.scale.loops))


def patterns(inputs):
    size = inputs.scale.text
    for language in DOCUMENTS:
        path = str(texts.sample(inputs.data, language, size))
        for pattern in ("gpt4", "o200k", "qwen2", "nanochat", "deepseek", "starcoder", "kimi"):
            params = {"path": path, "pattern": pattern}
            rows = [
                Row("batchbpe", "batchbpe", "splitting.batchbpe", params, size, 1),
                Row("backtracking", "batchbpe", "splitting.batchbpe", params | {"backtracking": True}, size, 1),
                Row("regex", "regex", "splitting.regex", params, size, 1),
            ]
            title = f"Splitting {megabytes(size)} of {TEXTS[language]} with the {pattern} pattern, on one core"
            yield Table(title, rows)


def decode(inputs):
    size = inputs.scale.text
    for language, name in TEXTS.items():
        rows = inputs.encoders("encoding.decode", texts.sample(inputs.data, language, size), size, cores=1)
        yield Table(f"Decoding {megabytes(size)} of {name} to a string", rows)


def load(inputs):
    for name in ("cl100k_base", "o200k_base"):
        if (inputs.data / f"{name}.tiktoken").exists():
            yield Table(
                f"Loading {name}", [Row(tool, tool, "encoding.load", inputs.ranks(tool, name)) for tool in TOOLS]
            )


def long_chunks(inputs):
    """Texts of one chunk, for which a careless algorithm takes quadratic time."""
    for character in "a=":
        files = {size: texts.repeated(character, size) for size in inputs.scale.long_chunks}
        rows = [
            row for size, path in files.items() for row in inputs.encoders("encoding.to_numpy", path, size, cores=1)
        ]
        yield Table(f'Encoding one chunk of "{character}"', rows, n_log_n=True)
        rows = [
            Row(tool, tool, f"training.{tool}", {"path": str(path), "vocab_size": 270}, size, cores=1)
            for size, path in files.items()
            for tool in TRAINERS
            if tool != "sentencepiece"  # which limits the length of a token
        ]
        yield Table(f'Training on one chunk of "{character}" to 270 tokens', rows, n_log_n=True)


def sizes(inputs):
    """Time and memory against the size of the text."""
    scale = inputs.scale
    train, encode = [], []
    for size in scale.sizes:
        path = {"path": str(synthetic.text_file(inputs.csv, size))}
        params = path | {"vocab_size": scale.vocab_size}
        train += in_threads("training.batchbpe", params, size)
        train += [Row(tool, tool, f"training.{tool}", params, size, 2) for tool in TRAINERS[1:]]
        encode += in_threads("encoding.batch", inputs.ranks("batchbpe") | path, size)
        encode += [
            row for row in inputs.encoders("encoding.batch", **path, size=size, cores=2) if row.tool != "batchbpe"
        ]
    yield Table(f"Training on synthetic text to {scale.vocab_size:,} tokens", train)
    yield Table("Encoding synthetic documents", encode)


def threads(inputs):
    for language, name in DOCUMENTS.items():
        path = {"path": inputs.parquet(language)}
        yield Table(f"Counting the chunks of {name} in a pyarrow column", in_threads("encoding.count", path))
        rows = in_threads("encoding.batch", inputs.ranks("batchbpe") | path)
        yield Table(f"Encoding {name} with encode_batch_to_numpy", rows)


def in_threads(case, params, size=None):
    """List two threads first, so that the ratio is the speed-up."""
    return [Row(f"batchbpe, {label}", "batchbpe", case, params, size, cores) for cores, label in CORES.items()]


def files(inputs):
    """Compare the commands with the core on text in memory, and with reading alone, which uses the same cores."""
    ranks = inputs.ranks("batchbpe")
    for language, name in DOCUMENTS.items():
        path = {"path": inputs.parquet(language)}
        cases = {
            "batchbpe, in memory": ("encoding.count", path),
            "batchbpe, parquet to file": ("commands.count_files", path),
            "pyarrow, reading that parquet": ("commands.read", path),
            "batchbpe, uncompressed parquet to file": ("commands.count_files", path | {"compressed": False}),
        }
        yield Table(f"Counting {name}", [Row(label, "batchbpe", *case) for label, case in cases.items()])
        cases = {
            "batchbpe, in memory": ("encoding.batch", ranks | path),
            "batchbpe, parquet to file": ("commands.encode_files", path | {"ranks": ranks["ranks"]}),
        }
        yield Table(f"Encoding {name}", [Row(label, "batchbpe", *case) for label, case in cases.items()])


def imports(inputs):
    tools = ("batchbpe", "ffbpe", "rustbpe", "tokenizers", "tiktoken", "gigatoken", "quicktok", "numpy")
    params = {"times": inputs.scale.times}
    rows = [
        Row(tool, "batchbpe" if tool == "numpy" else tool, "commands.import_module", params | {"module": tool})
        for tool in tools
    ]
    yield Table("Import time beyond the bare interpreter", rows)


def command_line(inputs):
    def row(label, tool, arguments, **params):
        return Row(label, tool, "commands.command", {"arguments": arguments, "times": inputs.scale.times, **params})

    version = row("batchbpe", "batchbpe", ["-m", "batchbpe", "--version"])
    yield Table("batchbpe --version", [version, row("python -c pass", "batchbpe", ["-c", "pass"])])
    model, exported = trained(inputs)
    text = str(texts.sample(inputs.data, "english", 1_000))
    ours = row("batchbpe", "batchbpe", ["-m", "batchbpe", "encode", model, text, "-o"], output="ids.npy")
    code = commands.ENCODE_TOKENIZERS
    theirs = row("tokenizers, in a script", "tokenizers", ["-c", code, exported, text], output="ids.npy")
    yield Table(f"batchbpe encode, 1 KB with {inputs.scale.vocab_size:,} tokens", [ours, theirs])


def trained(inputs, **options):
    """Return a model of batchbpe and a copy for tokenizers."""
    from batchbpe import Tokenizer

    model = trained_model(inputs, "english", inputs.scale.vocab_size, **options)

    def write_json(path):
        Tokenizer.from_file(model).export(path, "huggingface")

    return model, str(texts.cached(f"{Path(model).stem}.json", model, write_json))


def trained_model(inputs, language, size, **options):
    from batchbpe import Tokenizer

    source = inputs.documents(language)

    def write(path):
        Tokenizer.train(texts.load_documents(source), size, **options).save(path.with_suffix(""))
        path.with_suffix(".vocab").unlink()

    name = "-".join(map(str, (language, size, *options.values())))
    return str(texts.cached(f"{name}.model", source, write))


def megabytes(size):
    return f"{size / 1_000_000:,g} MB"


JOBS: dict[str, Callable[[Inputs], Iterator[Table]]] = {
    "train": train,
    "like": like,
    "counts": counts,
    "unique-chunks": unique_chunks,
    "encode": encode,
    "lists": lists,
    "documents": documents,
    "phrases": phrases,
    "short": short,
    "decode": decode,
    "load": load,
    "patterns": patterns,
    "long-chunks": long_chunks,
    "sizes": sizes,
    "threads": threads,
    "files": files,
    "imports": imports,
    "command-line": command_line,
}
