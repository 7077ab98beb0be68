"""Words of published rows and what they mean: engines and their kin, formats, tasks, divisions over cards.

Publishers spell one thing in many ways. What is not recognised stays as it
is, so that the row is refused with that word and not read as something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KIN = {
    "swift": "llama-factory", "msswift": "llama-factory", "xtuner": "llama-factory", "lmflow": "llama-factory",
    "fmsacceleration": "llama-factory", "fmshftuning": "peft-trl", "openrlhf": "deepspeed",
    "deepspeedchat": "deepspeed",
    "accelerate": "own-loop", "pytorch": "own-loop", "torch": "own-loop", "fsdpqlora": "own-loop", "lorafa": "own-loop",
    "alpacalora": "peft-trl", "qlora": "peft-trl", "bitsandbytes": "peft-trl", "autotrain": "peft-trl",
    "lightning": "fsdp", "lightningthunder": "fsdp", "llmfoundry": "fsdp", "composer": "fsdp", "nanotron": "fsdp",
    "colossalai": "fsdp", "levanter": "fsdp", "picotron": "fsdp", "fairscale": "fsdp", "gptneox": "megatron",
    "megatronbridge": "megatron", "megatroncore": "megatron", "megatrondeepspeed": "megatron", "mcore": "megatron",
    "torchao": "gpt-fast", "exllama": "exllamav2", "exllamav3": "exllamav2", "exl2": "exllamav2",
    "tabbyapi": "exllamav2",
    "gptqforllama": "transformers", "autogptq": "transformers", "gptqmodel": "transformers", "hqq": "transformers",
    "optimum": "transformers", "quanto": "transformers", "sentencetransformers": "transformers",
    "tgi": "vllm", "textgenerationinference": "vllm", "lmdeploy": "vllm", "turbomind": "vllm", "aphrodite": "vllm",
    "aphroditeengine": "vllm", "lightllm": "vllm", "mii": "deepspeed-mii", "deepspeedinference": "deepspeed-mii",
    "llamacpppython": "llama.cpp", "koboldcpp": "llama.cpp", "lmstudio": "llama.cpp", "ikllamacpp": "llama.cpp",
    "llamafile": "llama.cpp", "textgenerationwebui": "llama.cpp", "tensorrt": "tensorrt-llm", "trt": "tensorrt-llm",
}  # fmt: skip
"""Engines that are not bundled and the bundled one whose code is nearest; letters and digits of the name alone."""

WIDER = (0.9, 1.1)
"""How much wider the range of an estimate is, down and up, where kin stands in for an engine: assumed."""


SHORT = 4
"""Letters of a name that is looked for only as a whole."""


def key(name: str) -> str:
    """Letters and digits of a name."""
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def kin_of(name: str) -> str:
    """The bundled engine that is nearest to one that is not, or nothing."""
    wanted = key(name)
    return KIN.get(wanted) or next((kin for known, kin in KIN.items() if len(known) > SHORT and known in wanted), "")


def weight_format(name: str, known: frozenset[str]) -> str:
    """The bundled format that words such as ``4-bit GPTQ 128g``, ``Q4_K_M``, ``int4wo-64`` or ``bnb nf4 dq`` mean.

    Nothing where they mean 16 bits; the words themselves where they mean nothing known.
    """
    text = name.casefold().strip().replace("_", "-")
    gguf = re.search(r"(?<![a-z0-9])i?q[2-8](-(0|1|k|xs|s|m|l|xxs|nl))*(?![a-z0-9])", text)
    if gguf:
        return _gguf(gguf.group(), known)
    exl = re.search(r"exl\d?\D*(\d(?:\.\d+)?)", text)
    if exl:
        return f"exl2-{float(exl.group(1)):g}"
    return next((means for pattern, means in _WORDS if re.search(pattern, text)), name.casefold())


_EIGHT = r"(?<!\d)8-? ?bit|int8|w8"
_FOUR = r"(?<!\d)4-? ?bit|int4|w4"
_WORDS = (
    (rf"gptq.*({_EIGHT})|({_EIGHT}).*gptq", "gptq-int8"),
    (r"gptq", "gptq-int4"),
    (r"awq|marlin", "awq-int4"),
    (r"nf4.*(dq|double)|(dq|double).*nf4|qlora.*double", "nf4-dq"),
    (r"nf4|bnb.*fp4|qlora", "nf4"),
    (r"nv-?fp4", "nvfp4"),
    (r"mx-?fp4", "mxfp4"),
    (r"fp8|float8|e4m3", "fp8"),
    (r"w8a8|smoothquant", "int8-w8a8"),
    (r"w4a16|int4-?wo|uint4|hqq", "gptq-int4"),
    (r"int8-?(wo|dq)|w8a16", "int8-plain"),
    (_FOUR, "nf4"),
    (_EIGHT, "int8"),
    (r"float16|(bf|fp)16|16-? ?bit|^16$", ""),
)
"""Patterns of names and the bundled format of each, the first that is there."""


def _gguf(name: str, known: frozenset[str]) -> str:
    """``q4-k-m`` as ``gguf-q4_k_m``; without a size of its own, the bundled type of as many bits."""
    found = f"gguf-{name.replace('-', '_')}"
    if found in known:
        return found
    bits = re.search(r"\d", name)
    near = sorted(each for each in known if bits and re.match(rf"gguf-i?q{bits.group()}", each))
    return next((each for each in near if each.endswith("_k_m")), near[0] if near else found)


def optimizer_of(text: str) -> str:
    """The optimizer that words name, as a workload knows it; nothing where they name none, themselves if unknown.

    Kinds that differ from AdamW in more than states of one size for each
    parameter keep their name, so that they are refused.
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")
    if name in {"", "none", "na", "n-a", "unknown"}:
        return ""
    kind = next((kind for pattern, kind in _OPTIMIZERS if re.search(pattern, name)), "")
    if kind not in {"adamw", "lion"}:
        return kind or name
    if re.search(r"8-?bit", name):
        return f"{'paged-' if 'paged' in name else ''}{kind}-8bit"
    if kind == "lion" or "paged" in name:
        return kind if kind == "lion" else "paged-adamw"
    return "adamw-fused" if "fused" in name else "adamw-loop" if re.search(r"loop|hf$", name) else "adamw"


_OPTIMIZERS = (
    (r"galore|lomo|badam|adam-?mini|apollo|4-?bit|shampoo|soap|sophia|lamb", ""),
    (r"adafactor", "adafactor"),
    (r"muon", "muon"),
    (r"lion", "lion"),
    (r"sgd.*moment", "sgd-momentum"),
    (r"sgd", "sgd"),
    (r"adam|lora-fa", "adamw"),
)
"""Words of optimizers, the first that is there."""


_TASKS = (
    (r"q-?lora|lora.*(4|8)\s*-?bit|(4|8)\s*-?bit.*lora", "qlora"),
    (r"rs-?lora|dora|lora|pissa|olora", "lora"),
    (r"pre-?train", "pretrain"),
    (r"full|fft|sft|fine-?tun|(^|\W)ft(\W|$)", "full_finetune"),
    (r"infer|generat|serv|decod|prefill|chat|embed|rerank|classif|benchmark", "inference"),
    (r"diffus|text-to-image|t2i", "diffusion"),
)  # fmt: skip


def task_of(text: str) -> str:
    """The task that words such as ``LoRA r=16 all-linear`` or ``full fine-tuning (bf16)`` mean, or nothing."""
    words = text.casefold().replace("_", "-")
    if re.match(r"(peft|adapter)", words):
        return ""
    return next((task for pattern, task in _TASKS if re.search(pattern, words)), "")


def rank_of(text: str) -> str:
    """The rank in ``LoRA r=16`` or ``rank 64``."""
    said = re.search(r"(?:\br|rank)\s*[=:]?\s*(\d{1,4})\b", text.casefold())
    return said.group(1) if said else ""


def divided(text: str, cards: int) -> Mapping[str, str]:
    """Columns of a division over ``cards`` such as ``TP=2``, ``fsdp x8``, ``zero3``, ``ZeRO-3 offload``, ``dp4 pp2``.

    Cards that the words leave over are replicas.
    """
    words = text.casefold()
    found: dict[str, int] = {}
    for name, spelled in (("tp", "tp|tensor[\\w ]*"), ("pp", "pp|pipeline[\\w ]*"), ("cp", "cp|context[\\w ]*"),
                          ("dp", "dp|ddp|data[\\w ]*")):  # fmt: skip
        said = re.search(rf"(?<![a-z])(?:{spelled})\s*[-=:x]?\s*(\d+)", words)
        if said:
            found[name] = int(said.group(1))
    stage = re.search(r"(?:zero|stage)\s*-?\s*([123])", words)
    sharded = re.search(r"fsdp\d?\s*[x(]?\s*(\d+)?", words)
    if sharded and "dp" not in found and sharded.group(1):
        found["dp"] = int(sharded.group(1))
    out = {name: str(value) for name, value in found.items()}
    if stage or sharded:
        out["zero_stage"] = stage.group(1) if stage else "3"
    inner = found.get("tp", 1) * found.get("pp", 1) * found.get("cp", 1)
    if "dp" not in found and cards > inner and (stage or sharded or "ddp" in words or "data" in words):
        out["dp"] = str(cards // inner)
    if "offload" in words:
        out["offload"] = "params+optimizer" if re.search(r"param|cpu|(zero|stage)\W*3", words) else "optimizer"
    return out


def length_of(text: str) -> str:
    """Tokens: ``2,048``, ``2k``, ``2048 (packed)``; nothing where no number stands in front."""
    said = re.match(r"\s*(\d[\d,]*(?:\.\d+)?)\s*([kK](?![a-z]))?", text)
    if not said:
        return ""
    value = float(said.group(1).replace(",", ""))
    return str(round(value * (1024 if said.group(2) else 1)))
