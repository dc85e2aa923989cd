"""llama.cpp, through the C functions of `llama-cpp-python`: its classes print, and fail for long tokens."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

from ..errors import DataError
from ..formats import gguf_metadata
from .adapters import Export, Loaded


def load(export: Export) -> Loaded:
    """Load the vocabulary of a .gguf file."""
    import llama_cpp

    names = gguf_metadata.read(export.path, "tokenizer.ggml.tokens").get("tokenizer.ggml.tokens", [])
    if isinstance(names, list) and len({*names}) < len(names):
        raise DataError("two tokens have the same name")  # llama.cpp would end the process
    messages: list[str] = []
    collect = llama_cpp.llama_log_callback(lambda _level, text, _data: messages.append(text.decode("utf-8", "replace")))
    before, data = llama_cpp.llama_log_callback(), ctypes.c_void_p()
    llama_cpp.llama_log_get(ctypes.byref(before), ctypes.byref(data))
    llama_cpp.llama_log_set(collect, ctypes.c_void_p(0))
    try:
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        model: Any = llama_cpp.llama_model_load_from_file(os.fsencode(export.path), params)
    finally:
        llama_cpp.llama_log_set(before, data)
    if not model:
        errors = [each for each in messages if "error" in each.lower()]
        raise DataError("".join(errors[:1] or messages[-1:]).strip() or "llama.cpp could not load it")
    vocab: Any = llama_cpp.llama_model_get_vocab(model)
    size = llama_cpp.llama_vocab_n_tokens(vocab)

    def call(function: Any, *arguments: Any, kind: Any, length: int, flags: tuple[Any, ...]) -> Any:
        """Call a function that fills a buffer, and again if it needs a longer one."""
        while True:
            buffer = (kind * max(length, 1))()
            used = function(vocab, *arguments, buffer, len(buffer), *flags)
            if used >= 0:
                return buffer[:used]
            length = -used

    def encode(texts: list[str]) -> list[list[int]]:
        tokenize, kind = llama_cpp.llama_tokenize, llama_cpp.llama_token
        encoded = (text.encode() for text in texts)
        return [call(tokenize, data, len(data), kind=kind, length=len(data), flags=(False, True)) for data in encoded]

    def piece(token: int) -> bytes:
        if not 0 <= token < size:
            raise DataError(f"llama.cpp has no token with the id {token}")  # it would end the process
        return bytes(call(llama_cpp.llama_token_to_piece, token, kind=ctypes.c_char, length=64, flags=(0, True)))

    def decode(ids: list[int]) -> str:
        # As its server does. `llama_detokenize` may remove spaces before punctuation.
        return b"".join(map(piece, ids)).decode("utf-8", "replace")

    value = ctypes.create_string_buffer(256)
    llama_cpp.llama_model_meta_val_str(model, b"tokenizer.ggml.pre", value, len(value))
    pre = f"tokenizer.ggml.pre={value.value.decode('utf-8', 'replace') or 'none'}"
    weakref.finalize(encode, llama_cpp.llama_model_free, model)
    found = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
    return Loaded(
        encode,
        decode,
        lambda id: piece(id) if 0 <= id < size else None,
        size,
        lambda id: llama_cpp.llama_vocab_get_attr(vocab, id) & found,
        detail=pre,
        pattern=pre,
    )
