#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes a model of llama's architecture with random weights (8 bits each), of about a given size.

    random_model.py FILE MIB SEED

Its output is noise; it reads the same amount of weights in the same order as a real model of that size.
"""

import sys

import gguf
import numpy

EMBEDDING, HEADS, FEED_FORWARD = 1024, 16, 4096
SPECIAL = ["<unk>", "<s>", "</s>"]
Q8 = gguf.GGMLQuantizationType.Q8_0


def vocabulary():
    """Special tokens, one for each byte, and letters."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *("\u2581" + c for c in letters), *letters]
    kind = gguf.TokenType
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256, *[kind.NORMAL] * 52]
    return tokens, kinds


def main(path, mib, seed):
    random = numpy.random.default_rng(seed)
    tokens, kinds = vocabulary()
    # Bytes of a block: 34 for each 32 weights.
    weights = 4 * EMBEDDING * EMBEDDING + 3 * EMBEDDING * FEED_FORWARD
    blocks = max(1, mib * 2**20 * 32 // 34 // weights)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(blocks)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def add(name, rows, columns):
        values = (random.standard_normal((rows, columns), dtype=numpy.float32) * 0.02)
        writer.add_tensor(name, gguf.quants.quantize(values, Q8), raw_dtype=Q8)

    def add_norm(name):
        writer.add_tensor(name, numpy.ones(EMBEDDING, dtype=numpy.float32))

    add("token_embd.weight", len(tokens), EMBEDDING)
    for block in range(blocks):
        name = f"blk.{block}."
        add_norm(name + "attn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"{name}{part}.weight", EMBEDDING, EMBEDDING)
        add_norm(name + "ffn_norm.weight")
        add(name + "ffn_gate.weight", FEED_FORWARD, EMBEDDING)
        add(name + "ffn_up.weight", FEED_FORWARD, EMBEDDING)
        add(name + "ffn_down.weight", EMBEDDING, FEED_FORWARD)
    add_norm("output_norm.weight")
    add("output.weight", len(tokens), EMBEDDING)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
