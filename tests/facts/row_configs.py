"""A configuration for each row of models.csv: its own sizes under the keys of its type, and what no column holds.

The table of families says which type reads a row and what the type's configuration has beside sizes
(biases, towers, patterns of layers). Those extras are of the published configurations; each row's source
column names where the sizes were seen.
"""

QWEN_VL = {"temporal_patch_size": 2, "spatial_merge_size": 2, "patch_size": 14, "depth": 32, "num_heads": 16}
QWEN2_VL = {**QWEN_VL, "embed_dim": 1280, "mlp_ratio": 4}
QWEN25_VL = {**QWEN_VL, "hidden_size": 1280}
QWEN3_VL = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16}
QWEN3_VL |= {"num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]}
DELTA = {"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128}
CLIP_L = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
CLIP_L_TEXT = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LLAVA_TOWER = {"model_type": "clip_vision_model", **CLIP_L, "image_size": 336, "patch_size": 14}
MLLAMA_TOWER = {"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8}
MLLAMA_TOWER |= {"image_size": 448, "patch_size": 14, "max_num_tiles": 4}
INDEX = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
GLM5 = {**INDEX, "index_n_heads": 32}
LLAMA4 = {"intermediate_size_mlp": 16384, "intermediate_size": 8192}
GEMMA4 = {"global_head_dim": 512, "attention_k_eq_v": True, "hidden_size_per_layer_input": 0}
GEMMA4_SMALL = {"global_head_dim": 512, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144}
MAMBA2 = {"ssm_state_size": 128, "conv_kernel": 4, "n_groups": 8, "mamba_head_dim": 64}

# family: the type, and what its configuration has beside sizes
FAMILIES = {
    **dict.fromkeys(
        ("Llama 2", "Llama 3", "Llama 3.1", "Llama 3.3", "CodeLlama", "TinyLlama", "LLaMA 1"), ("llama", {})
    ),
    **dict.fromkeys(("OpenLLaMA", "Salamandra", "SmolLM", "SmolLM2", "DeepSeek LLM", "DeepSeek Coder"), ("llama", {})),
    **dict.fromkeys(("Yi", "Falcon 3", "Baichuan"), ("llama", {})),
    "Llama 3.2": ("llama", {}),
    "DeepSeek R1 distill": ("llama", {}),
    "Nemotron": ("llama", {}),
    "Mistral": ("mistral", {}),
    "Ministral 3": ("ministral3", {}),
    "Mixtral": ("mixtral", {}),
    **dict.fromkeys(
        ("Qwen2", "Qwen2.5", "Qwen2.5-Coder", "Qwen2.5-Math", "Qwen2.5-1M", "QwQ", "Qwen1.5"), ("qwen2", {})
    ),
    "Qwen": ("qwen", {}),
    "Qwen3": ("qwen3", {}),
    "Qwen3 MoE": ("qwen3_moe", {}),
    "Qwen3-Coder": ("qwen3_moe", {}),
    "Gemma": ("gemma", {}),
    "Gemma 2": ("gemma2", {}),
    "Gemma 3": ("gemma3_text", {}),
    "Phi": ("phi", {}),
    "Phi 3": ("phi3", {}),
    "Phi 3.5": ("phi3", {}),
    "Phi 4": ("phi3", {}),
    "OLMo": ("olmo", {}),
    "OLMo 2": ("olmo2", {}),
    "OLMo 3": ("olmo3", {}),
    "OLMoE": ("olmoe", {}),
    "Granite": ("granite", {}),
    "SmolLM3": ("smollm3", {}),
    "Seed": ("seed_oss", {"attention_bias": True, "attention_out_bias": False}),
    "GPT-2": ("gpt2", {}),
    "GPT-Neo": ("gpt_neo", {}),
    "GPT-NeoX": ("gpt_neox", {}),
    "Pythia": ("gpt_neox", {}),
    "GPT-J": ("gptj", {}),
    "BLOOM": ("bloom", {}),
    "OPT": ("opt", {}),
    "Falcon": ("falcon", {}),
    "MPT": ("mpt", {}),
    "StarCoder2": ("starcoder2", {}),
    "StableLM": ("stablelm", {"use_qkv_bias": True}),
    "Cohere": ("cohere", {}),
    "Command-R": ("cohere", {}),
    "ChatGLM": ("chatglm", {"add_qkv_bias": True, "multi_query_attention": True}),
    "GLM-4": ("glm4", {}),
    "InternLM": ("internlm2", {}),
    "MiMo": ("mimo", {}),
    "ERNIE 4.5": ("ernie4_5", {}),
    "DBRX": ("dbrx", {}),
    "Grok": ("grok-1", {}),
    "gpt-oss": ("gpt_oss", {}),
    "Llama 4": ("llama4_text", LLAMA4),
    "DeepSeek V2": ("deepseek_v2", {}),
    "DeepSeek V3": ("deepseek_v3", {}),
    "DeepSeek R1": ("deepseek_v3", {}),
    "Kimi K2": ("kimi_k2", {}),
    "Kimi K2.5": ("kimi_k2", {}),
    "Mistral 4": ("mistral4", {}),
    "DeepSeek V3.2": ("deepseek_v32", INDEX),
    "GLM-5": ("glm_moe_dsa", GLM5),
    "GLM-4.5": ("glm4_moe", {"attention_bias": True}),
    "GLM-4.7": ("glm4_moe_lite", {"first_k_dense_replace": 1}),
    "MiniCPM": ("minicpm3", {}),
    "MiniMax M2": ("minimax_m2", {}),
    "Qwen3-Next": ("qwen3_next", {**DELTA, "linear_num_value_heads": 32}),
    "Qwen3.5": ("qwen3_5_moe_text", {**DELTA, "linear_num_value_heads": 32}),
    "Qwen3.6": ("qwen3_5_moe_text", {**DELTA, "linear_num_value_heads": 32}),
    "Jamba": ("jamba", {"mamba_dt_rank": 256}),
    "Nemotron 3": ("nemotron_h", MAMBA2),
    "Kimi Linear": ("kimi_linear", {}),
    "Gemma 4": ("gemma4_text", {"global_head_dim": 512}),
    "Gemma 3n": ("gemma3n_text", {"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144}),
    "DeepSeek V4": ("deepseek_v4", {"index_n_heads": 64, "index_head_dim": 128, "o_lora_rank": 1024, "hc_mult": 4}),
    "StarCoder": ("gpt_bigcode", {}),
    "BERT": ("bert", {"type_vocab_size": 2}),
    "RoBERTa": ("roberta", {"type_vocab_size": 1}),
    "embedding": ("xlm-roberta", {"type_vocab_size": 1}),
    "ViT": ("vit", {"image_size": 224}),
    "Whisper": ("whisper", {}),
    "T5": ("t5", {"feed_forward_proj": "relu"}),
    "Flan-T5": ("t5", {"feed_forward_proj": "gated-gelu"}),
    "NLLB": ("m2m_100", {}),
    "BART": ("bart", {}),
    "Qwen2-VL": ("qwen2_vl", {}),
    "Qwen2.5-VL": ("qwen2_5_vl", {}),
    "Qwen3-VL": ("qwen3_vl", {}),
    "LLaVA": ("llava", {}),
    "CLIP": ("clip", {}),
    "Step": ("step3p7", {}),
    "MiniMax M3": ("minimax_m3", {"dense_intermediate_size": 12288, "shared_intermediate_size": 3072}),
}

# What single rows have that their family has not: the type, and extras beside the sizes.
ROWS = {
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": ("nemotron-nas", {}),
    "moonshotai/Kimi-K3": None,
    "Qwen/Qwen1.5-MoE-A2.7B": ("qwen2_moe", {"shared_expert_intermediate_size": 5632}),
    "Qwen/Qwen2-57B-A14B-Instruct": ("qwen2_moe", {"shared_expert_intermediate_size": 20480}),
    "microsoft/Phi-3.5-MoE-instruct": ("phimoe", {}),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": ("qwen2", {}),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": ("qwen2", {}),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": ("qwen2", {}),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": ("qwen2", {}),
    "mistralai/Ministral-8B-Instruct-2410": ("ministral", {}),
    "tiiuae/falcon-40b": ("falcon", {"new_decoder_architecture": True}),
    "tiiuae/falcon-180B": ("falcon", {"new_decoder_architecture": True}),
    "CohereForAI/c4ai-command-r-plus": ("cohere", {"use_qk_norm": True}),
    "CohereForAI/c4ai-command-r7b-12-2024": ("cohere2", {}),
    "THUDM/glm-4-9b-chat": ("chatglm", {"add_qkv_bias": True, "multi_query_attention": True}),
    "internlm/internlm-chat-7b": ("internlm", {}),
    "baidu/ERNIE-4.5-21B-A3B-PT": ("ernie4_5_moe", {"moe_layer_start_index": 1}),
    "nvidia/Nemotron-4-340B-Instruct": ("nemotron", {}),
    "mistralai/Mistral-Large-4-1T-A52B": ("mistral_large4_text", {**INDEX, "index_n_heads": 32}),
    "zai-org/GLM-5.2": ("glm_moe_dsa", {**GLM5, "index_topk_freq": 4, "index_skip_topk_offset": 3}),
    "zai-org/GLM-4.5": ("glm4_moe", {"attention_bias": True, "use_qk_norm": True}),
    "zai-org/GLM-4.6": ("glm4_moe", {"attention_bias": True, "use_qk_norm": True}),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": ("llama4_text", {**LLAMA4, "interleave_moe_layer_step": 2}),
    "meta-llama/Llama-3.2-11B-Vision-Instruct": ("mllama", {}),
    "XiaomiMiMo/MiMo-V2-Flash": ("mimo_v2_flash", {"v_head_dim": 128, "swa_num_key_value_heads": 8}),
    "Qwen/Qwen3.5-27B": ("qwen3_5_text", {**DELTA, "linear_num_value_heads": 48}),
    "nvidia/Qwen3.6-27B-NVFP4": ("qwen3_5_text", {**DELTA, "linear_num_value_heads": 48}),
    "Qwen/Qwen3.5-122B-A10B": ("qwen3_5_moe_text", {**DELTA, "linear_num_value_heads": 64}),
    "Qwen/Qwen3.5-397B-A17B": ("qwen3_5_moe_text", {**DELTA, "linear_num_value_heads": 64}),
    "google/gemma-4-26B-A4B": ("gemma4_text", {**GEMMA4, "num_global_key_value_heads": 2, "enable_moe_block": True}),
    "nvidia/Gemma-4-31B-IT-NVFP4": ("gemma4_text", {**GEMMA4, "num_global_key_value_heads": 4}),
    "google/gemma-4-E2B-it": ("gemma4_text", {**GEMMA4_SMALL, "num_kv_shared_layers": 20, "use_double_wide_mlp": True}),
    "google/gemma-4-E4B-it": ("gemma4_text", {**GEMMA4_SMALL, "num_kv_shared_layers": 18}),
}

# Columns of models.csv and the key that a configuration has for each.
_KEYS = {
    "hidden_size": "hidden_size",
    "layers": "num_hidden_layers",
    "attention_heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate_size": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_context": "max_position_embeddings",
    "window": "sliding_window",
    "mla_kv_lora_rank": "kv_lora_rank",
    "mla_qk_rope_head_dim": "qk_rope_head_dim",
    "mla_q_lora_rank": "q_lora_rank",
    "mla_v_head_dim": "v_head_dim",
    "experts": "num_experts",
    "experts_per_token": "num_experts_per_tok",
    "moe_intermediate_size": "moe_intermediate_size",
    "dense_layers_first": "first_k_dense_replace",
}


def config_of(row):
    """The configuration that a row stands for, or None where no formula is known for it."""
    if row["id"] in DENOISERS:
        return DENOISERS[row["id"]]
    found = ROWS.get(row["id"], FAMILIES.get(row["family"]))
    if found is None:
        return None
    kind, extras = found
    table = {key: int(row[column]) for column, key in _KEYS.items() if row[column]}
    table.setdefault("sliding_window", None)
    table["tie_word_embeddings"] = row["tie_embeddings"] == "true"
    if row["mla_kv_lora_rank"]:
        table["qk_nope_head_dim"] = table.pop("head_dim") - table["qk_rope_head_dim"]
    if row["shared_experts"] and row["shared_experts"] != "0":
        table["n_shared_experts"] = int(row["shared_experts"])
    return {"model_type": kind, **_FROM_ROW.get(kind, _as_it_is)(row, table), **extras}


def _as_it_is(_row, table):
    return table


def _without(table, *keys):
    return {key: value for key, value in table.items() if key not in keys}


def _each(row, period, other):
    """Layer types with one full layer in ``period``."""
    return [other if (n + 1) % period else "full_attention" for n in range(int(row["layers"]))]


def _qwen2(_row, table):
    return {**table, "use_sliding_window": False}


def _qwen(_row, table):
    return {**table, "intermediate_size": 2 * table["intermediate_size"]}


def _chatglm(row, table):
    return {
        **_without(table, "num_hidden_layers", "num_key_value_heads", "intermediate_size", "vocab_size", "head_dim"),
        "num_layers": int(row["layers"]),
        "multi_query_group_num": int(row["kv_heads"]),
        "ffn_hidden_size": int(row["intermediate_size"]),
        "padded_vocab_size": int(row["vocab_size"]),
        "kv_channels": int(row["head_dim"]),
    }


def _gpt(row, table):
    sizes = {"n_embd": "hidden_size", "n_layer": "layers", "n_head": "attention_heads", "n_positions": "max_context"}
    return {
        **{key: int(row[column]) for key, column in sizes.items()},
        "n_inner": table["intermediate_size"],
        "vocab_size": table["vocab_size"],
        "tie_word_embeddings": table["tie_word_embeddings"],
        "multi_query": row["kv_heads"] == "1",
    }


def _mpt(row, table):
    return {
        "d_model": table["hidden_size"],
        "n_layers": table["num_hidden_layers"],
        "n_heads": table["num_attention_heads"],
        "expansion_ratio": table["intermediate_size"] // table["hidden_size"],
        "max_seq_len": table["max_position_embeddings"],
        "vocab_size": table["vocab_size"],
    }


def _dbrx(_row, table):
    return {
        "d_model": table["hidden_size"],
        "n_layers": table["num_hidden_layers"],
        "n_heads": table["num_attention_heads"],
        "max_seq_len": table["max_position_embeddings"],
        "vocab_size": table["vocab_size"],
        "attn_config": {"kv_n_heads": table["num_key_value_heads"]},
        "ffn_config": {
            "ffn_hidden_size": table["moe_intermediate_size"],
            "moe_num_experts": table["num_experts"],
            "moe_top_k": table["num_experts_per_tok"],
        },
    }


def _qwen_next(_row, table):
    width = table.get("moe_intermediate_size")
    return {**table, **({"shared_expert_intermediate_size": width} if width else {})}


def _jamba(_row, table):
    layers = {"attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1}
    return {**table, **layers, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2}


_NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
_NEMOTRON = {52: (64, 3712, None), 88: (128, 5376, 1024), 108: (256, 10240, 2048)}


def _nemotron_h(row, table):
    """The mixers in the order of their numbers: which comes after which does not change a count."""
    numbers = [int(part.split()[0]) for part in row["attention"].removeprefix("hybrid: ").split(", ")]
    heads, shared, latent = _NEMOTRON[int(row["layers"])]
    return {
        **table,
        "hybrid_override_pattern": "".join(letter * count for letter, count in zip("M*E-", numbers, strict=True)),
        "mamba_num_heads": heads,
        "moe_shared_expert_intermediate_size": shared,
        "moe_latent_size": latent,
    }


def _kimi_linear(row, table):
    full = [n for n in range(1, int(row["layers"])) if n % 4 == 0][: int(row["attn_layers_full"])]
    linear = {"full_attn_layers": full, "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}
    return {**table, "q_lora_rank": None, "linear_attn_config": linear, "first_k_dense_replace": 1}


def _mimo_v2(row, table):
    """Nine full layers of 48; the first layer is dense."""
    layers, full = int(row["layers"]), int(row["attn_layers_full"])
    freq = [0] + [1] * (layers - 1)
    return {**table, "hybrid_layer_pattern": [0] * full + [1] * (layers - full), "moe_layer_freq": freq}


def _gemma4(row, table):
    period = 6
    return {**table, "layer_types": _each(row, period, "sliding_attention"), "top_k_experts": 8}


def _deepseek_v4(row, table):
    """Which layers compress 4 and which 128 times: from the third on in turns, the first two not at all or 128 times."""
    flash = row["layers"] == "43"
    first = [0, 0] if flash else [128, 128]
    ratios = first + [4 if n % 2 == 0 else 128 for n in range(int(row["layers"]) - 2)]
    sizes = {"q_lora_rank": 1024, "o_groups": 8} if flash else {"q_lora_rank": 1536, "o_groups": 16}
    return {**_without(table, "intermediate_size"), **sizes, "compress_ratios": ratios}


def _two_sides(row, table):
    return {
        "d_model": table["hidden_size"],
        "encoder_layers": int(row["encoder_layers"]),
        "decoder_layers": int(row["decoder_layers"]),
        "encoder_attention_heads": table["num_attention_heads"],
        "encoder_ffn_dim": table["intermediate_size"],
        "vocab_size": table["vocab_size"],
        "max_position_embeddings": table["max_position_embeddings"],
    }


def _whisper(row, table):
    frames = {"max_source_positions": int(row["encoder_positions"]), "max_target_positions": int(row["max_context"])}
    return {**_two_sides(row, table), **frames, "num_mel_bins": int(row["mel_bins"])}


def _t5(row, table):
    return {
        "d_model": table["hidden_size"],
        "num_layers": int(row["encoder_layers"]),
        "num_decoder_layers": int(row["decoder_layers"]),
        "num_heads": table["num_attention_heads"],
        "d_kv": table["head_dim"],
        "d_ff": table["intermediate_size"],
        "vocab_size": table["vocab_size"],
        "tie_word_embeddings": table["tie_word_embeddings"],
    }


def _vit(row, table):
    return {**table, "patch_size": int(row["id"].partition("patch")[2].partition("-")[0])}


def _clip(row, table):
    patch = int(row["id"].rpartition("patch")[2])
    large = table["hidden_size"] == 1024
    vision = {**_without(table, "num_key_value_heads", "head_dim", "tie_word_embeddings"), "patch_size": patch}
    text = CLIP_L_TEXT if large else {}
    return {"text_config": text, "vision_config": vision, "projection_dim": 768 if large else 512}


def _vision(kind, vision):
    def made(_row, table):
        tower = vision(table) if callable(vision) else vision
        return {"text_config": {"model_type": kind, **table}, "vision_config": tower}

    return made


def _mllama(row, table):
    crossing = list(range(3, int(row["layers"]), 5))
    text = {"model_type": "mllama_text_model", **table, "cross_attention_layers": crossing}
    return {"text_config": text, "vision_config": MLLAMA_TOWER}


def _qwen3_vl(row, table):
    large = {"Qwen/Qwen3-VL-2B-Instruct", "Qwen/Qwen3-VL-4B-Instruct"}
    small = {"depth": 24, "hidden_size": 1024, "intermediate_size": 4096} if row["id"] in large else {}
    seen = [5, 11, 17] if small else [8, 16, 24]
    vision = {**QWEN3_VL, **small, "out_hidden_size": table["hidden_size"], "deepstack_visual_indexes": seen}
    text = {"model_type": "qwen3_vl_moe_text" if row["experts"] else "qwen3_vl_text", **table}
    return {"text_config": text, "vision_config": vision}


def _minimax_m3(row, table):
    freq = [0] * 3 + [1] * (int(row["layers"]) - 3)
    sparse = {"sparse_num_index_heads": 4, "sparse_index_dim": 128, "sparse_attention_freq": freq}
    return {**table, "moe_layer_freq": freq, "sparse_attention_config": sparse}


def _step(_row, table):
    types = _each(_row, 4, "sliding_attention")[::-1]
    text = {**table, "share_expert_dim": table["moe_intermediate_size"], "layer_types": types}
    return {"text_config": text, "vision_config": {"hidden_size": 1536, "num_hidden_layers": 47}}


# Layers of Llama-3.3-Nemotron-Super-49B in its order (config.json, block_configs): whether the layer attends, the
# width of its block, and how many such layers follow each other.
_SEARCHED = (
    *((True, 2.625, 1), (True, 5.25, 5), (False, 2.625, 2), (True, 5.25, 3), (False, 3.28125, 1), (True, 5.25, 30)),
    *((False, 1.3125, 1), (False, 2.625, 2), (False, 1.3125, 1), (False, 5.25, 1), (False, 1.3125, 1)),
    *((False, 2.625, 1), (False, 1.3125, 3), (True, 5.25, 1), (False, 1.3125, 1), (False, 1.0, 2), (False, 1.3125, 1)),
    *((False, 1.0, 3), (False, 1.3125, 2), (False, 0.5, 2), (False, 1.0, 2), (False, 0.5, 2), (False, 1.0, 1)),
    *((False, 0.5, 2), (True, 5.25, 9)),
)


def _nemotron_nas(_row, table):
    blocks = [
        {"attention": {"n_heads_in_group": 8 if attends else None, "no_op": not attends}, "ffn": {"ffn_mult": width}}
        for attends, width, count in _SEARCHED
        for _ in range(count)
    ]
    return {**_without(table, "intermediate_size", "num_key_value_heads"), "block_configs": blocks}


UNET = {"_class_name": "UNet2DConditionModel", "block_out_channels": [320, 640, 1280, 1280], "layers_per_block": 2}
SDXL_UNET = {
    **UNET,
    "block_out_channels": [320, 640, 1280],
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "transformer_layers_per_block": [1, 2, 10],
    "cross_attention_dim": 2048,
    "addition_embed_type": "text_time",
    "projection_class_embeddings_input_dim": 2816,
}
SD3 = {"_class_name": "SD3Transformer2DModel", "joint_attention_dim": 4096, "pooled_projection_dim": 2048}
SD3 |= {"attention_head_dim": 64, "in_channels": 16, "patch_size": 2}
FLUX = {"_class_name": "FluxTransformer2DModel", "num_layers": 19, "num_single_layers": 38}

COGVIDEOX = {"_class_name": "CogVideoXTransformer3DModel", "attention_head_dim": 64}
HUNYUAN = {"_class_name": "HunyuanVideoTransformer3DModel", "num_layers": 20, "num_single_layers": 40}
HUNYUAN |= {"num_attention_heads": 24, "attention_head_dim": 128, "guidance_embeds": True}
WAN = {"_class_name": "WanTransformer3DModel", "attention_head_dim": 128}
TI2V = {"num_attention_heads": 24, "ffn_dim": 14336, "num_layers": 30, "in_channels": 48, "out_channels": 48}
LTX = {"_class_name": "LTXVideoTransformer3DModel", "num_layers": 28, "num_attention_heads": 32}
LTX |= {"attention_head_dim": 64}
MOCHI = {"_class_name": "MochiTransformer3DModel", "num_layers": 48, "num_attention_heads": 24}
MOCHI |= {"attention_head_dim": 128}

# The network that denoises, of each diffusion pipeline: what the row counts.
DENOISERS = {
    "stable-diffusion-v1-5/stable-diffusion-v1-5": {**UNET, "cross_attention_dim": 768},
    "stabilityai/stable-diffusion-2-1": {**UNET, "cross_attention_dim": 1024, "use_linear_projection": True},
    "stabilityai/stable-diffusion-xl-base-1.0": SDXL_UNET,
    "stabilityai/stable-diffusion-3-medium-diffusers": {**SD3, "num_layers": 24, "num_attention_heads": 24},
    "stabilityai/stable-diffusion-3.5-large": {
        **SD3,
        "num_layers": 38,
        "num_attention_heads": 38,
        "qk_norm": "rms_norm",
    },
    "black-forest-labs/FLUX.1-dev": {**FLUX, "guidance_embeds": True},
    "black-forest-labs/FLUX.1-schnell": FLUX,
    "zai-org/CogVideoX-2b": {**COGVIDEOX, "num_attention_heads": 30, "num_layers": 30},
    "zai-org/CogVideoX-5b": {**COGVIDEOX, "num_attention_heads": 48, "num_layers": 42},
    "tencent/HunyuanVideo": HUNYUAN,
    "Wan-AI/Wan2.1-T2V-1.3B-Diffusers": {**WAN, "num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30},
    "Wan-AI/Wan2.1-T2V-14B-Diffusers": {**WAN, "num_attention_heads": 40, "ffn_dim": 13824, "num_layers": 40},
    "Wan-AI/Wan2.2-T2V-A14B-Diffusers": {**WAN, "num_attention_heads": 40, "ffn_dim": 13824, "num_layers": 40},
    "Wan-AI/Wan2.2-TI2V-5B-Diffusers": {**WAN, **TI2V},
    "Lightricks/LTX-Video": LTX,
    "genmo/mochi-1-preview": MOCHI,
}

_FROM_ROW = {
    "nemotron-nas": _nemotron_nas,
    "qwen2": _qwen2,
    "qwen": _qwen,
    "chatglm": _chatglm,
    "gpt2": _gpt,
    "gpt_bigcode": _gpt,
    "gptj": _gpt,
    "mpt": _mpt,
    "dbrx": _dbrx,
    "qwen3_next": _qwen_next,
    "qwen3_5_moe_text": _qwen_next,
    "jamba": _jamba,
    "nemotron_h": _nemotron_h,
    "kimi_linear": _kimi_linear,
    "mimo_v2_flash": _mimo_v2,
    "gemma4_text": _gemma4,
    "deepseek_v4": _deepseek_v4,
    "whisper": _whisper,
    "bart": _two_sides,
    "m2m_100": _two_sides,
    "t5": _t5,
    "vit": _vit,
    "clip": _clip,
    "qwen2_vl": _vision("qwen2", lambda table: {**QWEN2_VL, "hidden_size": table["hidden_size"]}),
    "qwen2_5_vl": _vision("qwen2", lambda table: {**_qwen25(table), "out_hidden_size": table["hidden_size"]}),
    "qwen3_vl": _qwen3_vl,
    "llava": _vision("llama", LLAVA_TOWER),
    "mllama": _mllama,
    "minimax_m3": _minimax_m3,
    "step3p7": _step,
}


def _qwen25(table):
    """The 32B and 72B models have a wider block in the tower."""
    return {**QWEN25_VL, "intermediate_size": 3456 if table["hidden_size"] >= 5120 else 3420}
