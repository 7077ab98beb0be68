"""Folders of diffusion pipelines as their publishers lay them out: configurations alone, no weights."""

import json

CLIP_L = {
    "architectures": ["CLIPTextModel"],
    "model_type": "clip_text_model",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "vocab_size": 49408,
    "max_position_embeddings": 77,
    "projection_dim": 768,
}
CLIP_G = CLIP_L | {
    "architectures": ["CLIPTextModelWithProjection"],
    "hidden_size": 1280,
    "intermediate_size": 5120,
    "num_hidden_layers": 32,
    "num_attention_heads": 20,
    "projection_dim": 1280,
}
T5_XXL = {
    "architectures": ["T5EncoderModel"],
    "model_type": "t5",
    "d_model": 4096,
    "d_kv": 64,
    "d_ff": 10240,
    "num_layers": 24,
    "num_heads": 64,
    "vocab_size": 32128,
    "feed_forward_proj": "gated-gelu",
}
VAE = {
    "_class_name": "AutoencoderKL",
    "block_out_channels": [128, 256, 512, 512],
    "latent_channels": 4,
    "layers_per_block": 2,
    "sample_size": 512,
}
VAE_16 = VAE | {"latent_channels": 16, "sample_size": 1024, "use_quant_conv": False, "use_post_quant_conv": False}

SD15 = {
    "model_index": {"_class_name": "StableDiffusionPipeline"},
    "text_encoder": CLIP_L,
    "unet": {
        "_class_name": "UNet2DConditionModel",
        "block_out_channels": [320, 640, 1280, 1280],
        "cross_attention_dim": 768,
        "attention_head_dim": 8,
        "layers_per_block": 2,
        "sample_size": 64,
    },
    "vae": VAE,
}
SDXL = {
    "model_index": {"_class_name": "StableDiffusionXLPipeline"},
    "text_encoder": CLIP_L,
    "text_encoder_2": CLIP_G,
    "unet": {
        "_class_name": "UNet2DConditionModel",
        "block_out_channels": [320, 640, 1280],
        "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
        "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
        "transformer_layers_per_block": [1, 2, 10],
        "attention_head_dim": [5, 10, 20],
        "cross_attention_dim": 2048,
        "addition_embed_type": "text_time",
        "use_linear_projection": True,
        "projection_class_embeddings_input_dim": 2816,
        "layers_per_block": 2,
        "sample_size": 128,
    },
    "vae": VAE | {"sample_size": 1024, "force_upcast": True},
}
SD3 = {
    "model_index": {"_class_name": "StableDiffusion3Pipeline"},
    "text_encoder": CLIP_L | {"architectures": ["CLIPTextModelWithProjection"]},
    "text_encoder_2": CLIP_G,
    "text_encoder_3": T5_XXL,
    "transformer": {
        "_class_name": "SD3Transformer2DModel",
        "num_attention_heads": 24,
        "num_layers": 24,
        "caption_projection_dim": 1536,
        "sample_size": 128,
        "pos_embed_max_size": 192,
        "in_channels": 16,
        "out_channels": 16,
        "patch_size": 2,
    },
    "vae": VAE_16,
}
FLUX = {
    "model_index": {"_class_name": "FluxPipeline"},
    "text_encoder": CLIP_L,
    "text_encoder_2": T5_XXL,
    "transformer": {
        "_class_name": "FluxTransformer2DModel",
        "num_layers": 19,
        "num_single_layers": 38,
        "num_attention_heads": 24,
        "attention_head_dim": 128,
        "joint_attention_dim": 4096,
        "pooled_projection_dim": 768,
        "in_channels": 64,
        "guidance_embeds": True,
    },
    "vae": VAE_16,
}

IMAGES = {
    "stable-diffusion-v1-5/stable-diffusion-v1-5": SD15,
    "stabilityai/stable-diffusion-xl-base-1.0": SDXL,
    "stabilityai/stable-diffusion-3-medium-diffusers": SD3,
    "black-forest-labs/FLUX.1-dev": FLUX,
}


def lay_out(folder, parts):
    """Write the folder; the index lists every part with the class that its configuration names."""
    index = dict(parts["model_index"])
    for name, config in parts.items():
        if name == "model_index":
            continue
        index[name] = ["library", config.get("_class_name") or config["architectures"][0]]
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "model_index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


UMT5_XXL = T5_XXL | {"model_type": "umt5", "architectures": ["UMT5EncoderModel"], "vocab_size": 256384}
LLAMA_8B = {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128320}
_WAN = {"_class_name": "WanTransformer3DModel", "attention_head_dim": 128, "text_dim": 4096, "patch_size": [1, 2, 2]}
_SMALL_VAE = {"_class_name": "AutoencoderKLWan", "base_dim": 96, "dim_mult": [1, 2, 4, 4], "z_dim": 16}
_LARGE_VAE = {
    "_class_name": "AutoencoderKLWan",
    "base_dim": 160,
    "decoder_base_dim": 256,
    "is_residual": True,
    "scale_factor_spatial": 16,
    "scale_factor_temporal": 4,
}

VIDEOS = {
    "zai-org/CogVideoX-5b": {
        "model_index": {"_class_name": "CogVideoXPipeline"},
        "text_encoder": T5_XXL,
        "transformer": {
            "_class_name": "CogVideoXTransformer3DModel",
            "num_attention_heads": 48,
            "attention_head_dim": 64,
            "num_layers": 42,
            "sample_frames": 49,
            "sample_width": 90,
            "sample_height": 60,
            "use_rotary_positional_embeddings": True,
        },
        "vae": {"_class_name": "AutoencoderKLCogVideoX", "block_out_channels": [128, 256, 256, 512]},
    },
    "tencent/HunyuanVideo": {
        "model_index": {"_class_name": "HunyuanVideoPipeline"},
        "text_encoder": LLAMA_8B,
        "text_encoder_2": CLIP_L,
        "transformer": {"_class_name": "HunyuanVideoTransformer3DModel", "num_layers": 20, "num_single_layers": 40},
        "vae": {"_class_name": "AutoencoderKLHunyuanVideo", "block_out_channels": [128, 256, 512, 512]},
    },
    "Wan-AI/Wan2.1-T2V-1.3B-Diffusers": {
        "model_index": {"_class_name": "WanPipeline"},
        "text_encoder": UMT5_XXL,
        "transformer": {**_WAN, "num_attention_heads": 12, "ffn_dim": 8960, "num_layers": 30},
        "vae": _SMALL_VAE,
    },
    "Wan-AI/Wan2.2-TI2V-5B-Diffusers": {
        "model_index": {"_class_name": "WanPipeline", "expand_timesteps": True},
        "text_encoder": UMT5_XXL,
        "transformer": {**_WAN, "num_attention_heads": 24, "ffn_dim": 14336, "num_layers": 30, "in_channels": 48},
        "vae": _LARGE_VAE,
    },
    "Lightricks/LTX-Video": {
        "model_index": {"_class_name": "LTXPipeline"},
        "text_encoder": T5_XXL,
        "transformer": {"_class_name": "LTXVideoTransformer3DModel", "num_layers": 28, "caption_channels": 4096},
        "vae": {"_class_name": "AutoencoderKLLTXVideo", "block_out_channels": [128, 256, 512, 512]},
    },
    "genmo/mochi-1-preview": {
        "model_index": {"_class_name": "MochiPipeline"},
        "text_encoder": T5_XXL,
        "transformer": {"_class_name": "MochiTransformer3DModel", "num_layers": 48, "text_embed_dim": 4096},
        "vae": {"_class_name": "AutoencoderKLMochi", "decoder_block_out_channels": [128, 256, 512, 768]},
    },
}
"""Networks whose VAE is counted from its files alone."""
