"""Models in GGUF files."""

from pathlib import Path

import gguf
import numpy as np


def tiny_model(path: Path, n_vocab: int) -> None:
    """Write a random llama with two layers, and a vocabulary of bytes only."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(8)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"old {token}" for token in range(n_vocab)])
    writer.add_token_merges(["o l"])
    chance = np.random.default_rng(0)
    shapes = {"token_embd": (n_vocab, 32), "output_norm": (32,), "output": (n_vocab, 32)}
    for layer in range(2):
        names = {"attn_norm": (32,), "ffn_norm": (32,), "ffn_gate": (64, 32), "ffn_up": (64, 32), "ffn_down": (32, 64)}
        names |= dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (32, 32))
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in names.items()}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", chance.standard_normal(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
