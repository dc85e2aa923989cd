"""Cases with phrases: training and encoding."""

from functools import partial

from benchmarks.measure import Case
from benchmarks.texts import load_documents, load_text


def train(path, vocab_size, **options):
    """Train on documents in memory."""
    from batchbpe import Tokenizer

    return Case(partial(load_documents, path), partial(Tokenizer.train, vocab_size=vocab_size, **options), describe)


def train_file(path, vocab_size, **options):
    """Train on a file, which is read again for phrases."""
    from batchbpe import Tokenizer

    return Case(int, lambda _: Tokenizer.train(path, vocab_size, **options), describe)


def describe(tokenizer):
    return {"result": f"{tokenizer.vocab_size:,} tokens, {len(tokenizer.phrases):,} of them phrases"}


def encode(model, path, batch=False):
    """Encode a text into numpy, or documents."""
    from batchbpe import Tokenizer

    tokenizer = Tokenizer.from_file(model)
    tokenizer.encode("")  # builds the encoder

    def result(encoded):
        return {"result": f"{len(encoded[0] if batch else encoded):,} tokens"}

    if batch:
        return Case(partial(load_documents, path), tokenizer.encode_batch_to_numpy, result, again=True)
    return Case(partial(load_text, path), tokenizer.encode_to_numpy, result, again=True)
