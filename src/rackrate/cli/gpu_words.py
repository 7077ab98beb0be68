"""Words for the codes of a card: what numbers mean, what work it suits and why, how figures were come by."""

from __future__ import annotations

MEANINGS = (
    ("GB as sold", "the label on the box: neither 10^9 bytes nor GiB"),
    (
        "driver reports",
        "memory.total of the driver, ECC on where that is how the card comes; programs get a little less",
    ),
    ("bandwidth", "published, of the memory; real copies reach less"),
    ("dense", "without 2:4 sparsity (vendors' doubled figures are with it), accumulated in FP32 as PyTorch does"),
    ("with FP16 sums", "products added up in FP16, which consumer cards do twice as fast and training avoids"),
    ("ECC", "corrects bit errors of the memory; on GDDR it takes a sixteenth of it"),
    ("video engines", "hardware that encodes and decodes video beside the other work"),
    ("recalled", "no page was seen that says so"),
    ("each way", "one direction of a link; vendors print both directions added up"),
    ("power limit", "the default of the board; a host can set it lower, some variants come with another"),
)

WORKS = {
    "text_generation": "text generation",
    "half_precision": "16-bit arithmetic",
    "bf16_arithmetic": "BF16 arithmetic",
    "fp8_arithmetic": "FP8 arithmetic",
    "fp4_arithmetic": "FP4 arithmetic",
    "int8_arithmetic": "INT8 arithmetic",
    "training_over_eight": "training over eight cards",
    "double_precision": "double precision",
    "rendering": "ray-traced rendering",
    "video": "video transcoding",
    "unattended_runs": "long unattended runs",
    "sharing": "isolated tenants on one card",
    "workstation": "a workstation",
    "tight_power": "a tight power budget",
    "cuda_programs": "CUDA programs",
}

VERDICTS = {
    "suited": "Suits",
    "limited": "Limited for",
    "unsuited": "Not for",
    "unknown": "Not known",
}

BECAUSE = {
    "high_bandwidth": "{gb_per_s} GB/s of memory bandwidth, which decides it",
    "low_bandwidth": "memory bandwidth decides it: {gb_per_s} GB/s",
    "bandwidth_unknown": "bandwidth not known",
    "fast_fp16": "FP16 is faster than FP32",
    "slow_fp16": "FP16 is no faster than FP32",
    "has_bf16": "in hardware",
    "no_bf16": "no BF16 units: train in FP16 with loss scaling",
    "has_fp8": "in hardware",
    "no_fp8": "no FP8 units; FP8 weights alone can be read",
    "has_fp4": "in hardware",
    "no_fp4": "no FP4 units; 4-bit weights alone can be read",
    "fast_int8": "faster than wider types",
    "int8_cut": "no faster than wider types",
    "rate_unknown": "no rate seen",
    "nvswitch": "NVSwitch joins all cards of a machine",
    "bridge": "no NVSwitch: a bridge joins {n}, PCIe the rest",
    "vendor_link": "the vendor's link, no switch",
    "pcie_only": "no NVSwitch: PCIe alone joins cards",
    "fast_fp64": "FP64 at a quarter of FP32 or more",
    "slow_fp64": "FP64 is a small fraction of FP32",
    "rt_cores": "{n} RT cores",
    "no_rt_cores": "no RT cores",
    "rt_cores_unknown": "RT cores not known",
    "media_engines_unknown": "media engines: no source seen",
    "encoders": "{n} video encoders (NVENC)",
    "decoders_only": "{n} decoders (NVDEC), no encoder",
    "no_encoders": "no media engines",
    "ecc": "ECC memory",
    "ecc_off": "ECC comes switched off",
    "no_ecc": "no ECC: bit errors pass unseen",
    "ecc_unknown": "ECC not known",
    "modified": "a third party soldered on the memory",
    "mig": "MIG, up to {n} slices",
    "no_mig": "no MIG: time slices or a vGPU only",
    "fan": "cooled by its own fan",
    "passive": "passive: needs the airflow of a server",
    "socket": "a server's socket, not a PCIe slot",
    "cooling_unknown": "cooling not known",
    "low_power": "{n} W",
    "usual_power": "{n} W",
    "high_power": "{n} W: a chassis built for it",
    "power_unknown": "power not known",
    "cuda": "it is an NVIDIA card",
    "no_cuda": "another vendor's software",
}

QUANTITIES = {
    "matmul_fp32": "matrix product FP32",
    "matmul_tf32": "matrix product TF32",
    "matmul_fp16": "matrix product FP16",
    "matmul_bf16": "matrix product BF16",
    "matmul_fp8": "matrix product FP8",
    "memory_read": "memory read",
    "memory_scale": "memory copy, scaled",
    "memory_triad": "memory triad",
    "memory_copy": "memory copy",
    "memory_vector": "memory, vector operation",
    "memory_copy_engine": "memory copy engine",
    "memory_test": "memory test of DCGM",
    "host_to_device": "host to card",
    "device_to_host": "card to host",
    "host_link": "host link, either way",
    "peer_one_way": "card to card, one way",
    "peer_both_ways": "card to card, both ways",
    "allreduce_bus": "all-reduce bus",
    "power_idle": "power when idle",
    "power_burn": "power under load",
    "power_target": "power under load",
}

HOW = {
    "best": "best of many shapes",
    "crowd": "single runs",
    "sustained": "over a long load",
    "measured": "measured",
    "floor": "a health check wants",
    "target": "a diagnostic must draw",
    "stated": "the vendor says",
}

SIZES = ("16-bit inference", "4-bit inference", "LoRA", "QLoRA", "full fine-tune")
"""The kinds of work that cards are sized for, in the order of the document."""

RESULTS = {
    "output_tokens_one_stream": "1M output tokens, one stream",
    "output_tokens_full_cache": "1M output tokens, full cache",
    "trained_tokens_lora": "1B tokens of LoRA",
}

NO_RESULT = {
    "engine_unsupported": "{detail} does not run on it",
    "memory_unknown": "memory not known",
    "does_not_fit": "does not fit",
    "speed_unknown": "speed not known",
    "no_offer": "no offer on demand",
}
