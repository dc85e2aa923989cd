"""Training cases. They return the vocabulary, which tables.py compares."""

import functools
import io
import time
from functools import partial

from batchbpe.formats.byte_level import from_byte_level
from batchbpe.patterns import PATTERNS
from benchmarks.measure import Case
from benchmarks.texts import load_counts, load_documents


def describe(tokens):
    vocabulary = sorted(bytes(token).hex() for token in tokens)
    return {"result": f"{len(vocabulary):,} tokens", "vocabulary": vocabulary}


def batchbpe(path, vocab_size, counts=False, **options):
    """Train on documents, or on counts, in memory."""
    from batchbpe import ChunkCounts, Tokenizer

    train = partial(Tokenizer.train, vocab_size=vocab_size, **options)
    load = partial(ChunkCounts.load if counts else load_documents, path)
    return Case(load, train, lambda it: describe(it.vocab.values()))


def batchbpe_file(path, vocab_size):
    """Train on a counts file, including reading it."""
    from batchbpe import Tokenizer

    return Case(int, lambda _: Tokenizer.train(path, vocab_size), lambda it: describe(it.vocab.values()))


def ffbpe(path, vocab_size, counts=False):
    """Train on documents or counts in memory. It has a scanner only for tiktoken's spelling of the cl100k pattern."""
    import ffbpe

    def job(data):
        trainer = ffbpe.BpeTrainer([])
        if counts:
            trainer.add_words(data)
        else:
            counter = ffbpe.PreTokenizer([], pat_str=PATTERNS["cl100k"]).word_counter()
            counter.add_source(data)
            trainer.add_word_counter(counter)
        trainer.train(vocab_size)
        return trainer

    return Case(partial(load_counts if counts else load_documents, path), job, lambda it: describe(it.vocab))


def rustbpe(path, vocab_size):
    import rustbpe

    def job(texts):
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=PATTERNS["gpt4"])
        return tokenizer

    return Case(partial(load_documents, path), job, lambda it: describe(token for token, _ in it.get_mergeable_ranks()))


def tokenizers(path, vocab_size):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    split = pre_tokenizers.Split(Regex(PATTERNS["gpt4"]), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    options = {"initial_alphabet": byte_level.alphabet(), "show_progress": False}

    def job(texts):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
        tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, **options))
        return tokenizer

    return Case(partial(load_documents, path), job, lambda it: describe(map(from_byte_level, it.get_vocab())))


def transformers(path, vocab_size, like):
    """Train a new vocabulary for an existing tokenizer, which is loaded before."""
    from transformers import PreTrainedTokenizerFast

    old = PreTrainedTokenizerFast(tokenizer_file=like)

    def job(texts):
        return old.train_new_from_iterator(texts, vocab_size, show_progress=False)

    return Case(partial(load_documents, path), job, lambda it: describe(map(from_byte_level, it.get_vocab())))


def gigatoken(path, vocab_size):
    """Train with the gpt2 pattern, the only one it has for training. A zero byte separates the documents."""
    import gigatoken

    def load():
        return b"\0".join(text.encode() for text in load_documents(path))

    def job(content):
        return gigatoken.train_bpe(content, vocab_size, [], separator=b"\0")

    return Case(load, job, lambda it: describe(it[0].values()))


def sentencepiece(path, vocab_size):
    """Train on words between spaces. The vocabulary is not compared, because the chunks are different."""
    import sentencepiece

    def job(texts):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentence_length=1 << 30,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())

    return Case(partial(load_documents, path), job, lambda it: {"result": f"{it.vocab_size():,} tokens"})


def policy(path, vocab_size):
    """Train on counts, and measure the time inside the default policy."""
    from batchbpe import ChunkCounts, Tokenizer
    from batchbpe.policies import continue_search

    spent = []

    @functools.wraps(continue_search)
    def timed(*args, **kwargs):
        start = time.perf_counter()
        chosen = continue_search(*args, **kwargs)
        spent.append(time.perf_counter() - start)
        return chosen

    def job(chunks):
        start = time.perf_counter()
        Tokenizer.train(chunks, vocab_size, policy=timed)
        return time.perf_counter() - start

    def describe_policy(training):
        fraction = sum(spent) / training
        return {"result": f"{sum(spent):.3f} s = {fraction:.1%} in {len(spent)} policy calls"}

    return Case(partial(ChunkCounts.load, path), job, describe_policy)
