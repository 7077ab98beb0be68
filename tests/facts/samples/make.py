"""Make the sample files beside this script: ``python tests/facts/samples/make.py``.

All are ours: invented models of a few thousand parameters, tensors full of zeros. The writers here share no
code with rackrate's readers.
"""

import json
import struct
from pathlib import Path

HERE = Path(__file__).parent
BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "I32": 4, "U8": 1}

# ---------------------------------------------------------------- writers


def write_safetensors(path, tensors):
    """``tensors``: name -> (type, shape); the data are zeros."""
    table, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (kind, shape) in tensors.items():
        size = BYTES[kind]
        for side in shape:
            size *= side
        table[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))


GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_K": (12, 256, 144), "Q6_K": (14, 256, 210), "IQ3_XXS": (18, 256, 98)}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(one):
    """A value of GGUF with its type: text, whole number, fraction, switch or list."""
    if isinstance(one, bool):
        return struct.pack("<I", 7) + struct.pack("<B", one)
    if isinstance(one, int):
        return struct.pack("<I", 4) + struct.pack("<I", one)
    if isinstance(one, float):
        return struct.pack("<I", 6) + struct.pack("<f", one)
    if isinstance(one, str):
        return struct.pack("<I", 8) + text(one)
    parts = [value(item) for item in one]
    return struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(one)) + b"".join(p[4:] for p in parts)


def write_gguf(path, metadata, tensors):
    """``tensors``: name -> (type, shape); the data are zeros, each at a multiple of 32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(text(key) + value(one) for key, one in metadata.items())
    at = 0
    for name, (kind, shape) in tensors.items():
        number, block, size = GGML[kind]
        count = 1
        for side in shape:
            count *= side
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        head += struct.pack("<IQ", number, at)
        at += count // block * size
        at += -at % 32
    head += bytes(-len(head) % 32)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + bytes(at))


# ---------------------------------------------------------------- models

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def matrices(layer, hidden=64, width=96, key=32):
    inside = {"q_proj": (hidden, hidden), "k_proj": (key, hidden), "v_proj": (key, hidden), "o_proj": (hidden, hidden)}
    found = {f"model.layers.{layer}.self_attn.{name}": shape for name, shape in inside.items()}
    blocks = {"gate_proj": (width, hidden), "up_proj": (width, hidden), "down_proj": (hidden, width)}
    return found | {f"model.layers.{layer}.mlp.{name}": shape for name, shape in blocks.items()}


def norms(layer):
    return {
        f"model.layers.{layer}.{n}.weight": ("BF16", (64,)) for n in ("input_layernorm", "post_attention_layernorm")
    }


ENDS = {
    "model.embed_tokens.weight": ("BF16", (128, 64)),
    "model.norm.weight": ("BF16", (64,)),
    "lm_head.weight": ("BF16", (128, 64)),
}


def write_json(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=2) + "\n", "utf-8")


def plain():
    """Two shards and an index; the norms in FP32, as some checkpoints have them."""
    folder = HERE / "llama-tiny"
    write_json(folder / "config.json", LLAMA)
    shards = {"model-00001-of-00002.safetensors": dict(ENDS), "model-00002-of-00002.safetensors": {}}
    for layer in (0, 1):
        shard = shards[f"model-0000{layer + 1}-of-00002.safetensors"]
        shard |= {f"{name}.weight": ("BF16", shape) for name, shape in matrices(layer).items()}
        shard |= {name: ("F32", shape) for name, (_, shape) in norms(layer).items()}
    index = {tensor: name for name, shard in shards.items() for tensor in shard}
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": 0}, "weight_map": index})
    for name, shard in shards.items():
        write_safetensors(folder / name, shard)


def quantised(name, settings, packed):
    """One file; ``packed`` makes the tensors of one matrix."""
    folder = HERE / name
    write_json(folder / "config.json", {**LLAMA, "quantization_config": settings})
    tensors = dict(ENDS)
    for layer in (0, 1):
        tensors |= norms(layer)
        for matrix, shape in matrices(layer).items():
            tensors |= packed(matrix, shape)
    write_safetensors(folder / "model.safetensors", tensors)


def fp8(name, shape):
    return {f"{name}.weight": ("F8_E4M3", shape), f"{name}.weight_scale_inv": ("F32", (1, 1))}


def gptq(name, shape):
    out, into = shape
    return {
        f"{name}.qweight": ("I32", (into // 8, out)),
        f"{name}.qzeros": ("I32", (1, out // 8)),
        f"{name}.scales": ("F16", (1, out)),
        f"{name}.g_idx": ("I32", (into,)),
    }


def awq(name, shape):
    out, into = shape
    return {
        f"{name}.qweight": ("I32", (into, out // 8)),
        f"{name}.qzeros": ("I32", (1, out // 8)),
        f"{name}.scales": ("F16", (1, out)),
    }


def nf4(name, shape):
    out, into = shape
    return {
        f"{name}.weight": ("U8", (out * into // 2, 1)),
        f"{name}.weight.absmax": ("F32", (out * into // 64,)),
        f"{name}.weight.quant_map": ("F32", (16,)),
        f"{name}.weight.quant_state.bitsandbytes__nf4": ("U8", (90,)),
    }


def nvfp4(name, shape):
    out, into = shape
    return {
        f"{name}.weight": ("U8", (out, into // 2)),
        f"{name}.weight_scale": ("F8_E4M3", (out, into // 16)),
        f"{name}.weight_scale_2": ("F32", ()),
        f"{name}.input_scale": ("F32", ()),
    }


def gguf():
    """A split model of one layer in Q4_K and Q6_K, and one in a type that no bundled format has."""
    metadata = {
        "general.architecture": "llama",
        "general.file_type": 15,
        "llama.block_count": 1,
        "llama.embedding_length": 256,
        "llama.feed_forward_length": 512,
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.context_length": 4096,
        "llama.rope.freq_base": 10000.0,
        "tokenizer.ggml.tokens": [f"t{n}" for n in range(256)],
        "tokenizer.ggml.add_bos_token": True,
    }
    layer = {
        "blk.0.attn_norm.weight": ("F32", (256,)),
        "blk.0.attn_q.weight": ("Q4_K", (256, 256)),
        "blk.0.attn_k.weight": ("Q4_K", (256, 128)),
        "blk.0.attn_v.weight": ("Q6_K", (256, 128)),
        "blk.0.attn_output.weight": ("Q4_K", (256, 256)),
        "blk.0.ffn_norm.weight": ("F32", (256,)),
        "blk.0.ffn_gate.weight": ("Q4_K", (256, 512)),
        "blk.0.ffn_up.weight": ("Q4_K", (256, 512)),
        "blk.0.ffn_down.weight": ("Q6_K", (512, 256)),
    }
    front = {"token_embd.weight": ("Q4_K", (256, 256)), "output_norm.weight": ("F32", (256,))}
    head = {"output.weight": ("Q6_K", (256, 256))}
    write_gguf(HERE / "llama-tiny.Q4_K_M.gguf", metadata, {**front, **layer, **head})
    split = HERE / "split"
    counts = {"split.count": 2, "split.tensors.count": 12}
    write_gguf(split / "llama-tiny-00001-of-00002.gguf", {**metadata, **counts, "split.no": 0}, {**front, **head})
    write_gguf(split / "llama-tiny-00002-of-00002.gguf", {**counts, "split.no": 1}, layer)
    odd = {name: ("IQ3_XXS", shape) if kind == "Q4_K" else (kind, shape) for name, (kind, shape) in layer.items()}
    write_gguf(HERE / "llama-tiny.IQ3_XXS.gguf", {**metadata, "general.file_type": 23}, {**front, **odd})


def pipeline():
    """A diffusion pipeline whose text encoder has tensors and whose other networks have configurations only."""
    folder = HERE / "pipeline"
    index = {
        "_class_name": "StableDiffusionPipeline",
        "_diffusers_version": "0.30.0",
        "scheduler": ["diffusers", "PNDMScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"],
        "unet": ["diffusers", "UNet2DConditionModel"],
        "vae": ["diffusers", "AutoencoderKL"],
    }
    write_json(folder / "model_index.json", index)
    write_safetensors(folder / "text_encoder" / "model.safetensors", {"text_model.x.weight": ("F16", (40, 25))})
    unet = {
        "_class_name": "UNet2DConditionModel",
        "block_out_channels": [32, 64],
        "cross_attention_dim": 48,
        "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    }
    write_json(folder / "unet" / "config.json", unet)
    vae = {"_class_name": "AutoencoderKL", "block_out_channels": [32, 64], "latent_channels": 4, "layers_per_block": 2}
    write_json(folder / "vae" / "config.json", vae)


def main():
    plain()
    quantised("llama-tiny-fp8", {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}, fp8)
    quantised("llama-tiny-gptq", {"quant_method": "gptq", "bits": 4, "group_size": 128}, gptq)
    quantised("llama-tiny-awq", {"quant_method": "awq", "bits": 4, "group_size": 128}, awq)
    quantised("llama-tiny-nf4", {"quant_method": "bitsandbytes", "load_in_4bit": True}, nf4)
    quantised("llama-tiny-nvfp4", {"quant_method": "modelopt", "quant_algo": "NVFP4"}, nvfp4)
    gguf()
    pipeline()


if __name__ == "__main__":
    main()
