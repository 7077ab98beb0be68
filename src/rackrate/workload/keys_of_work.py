"""Keys of the work: the model, the task, and what it runs in."""

from __future__ import annotations

from rackrate.workload.key import Key

_TASKS = ("inference", "lora", "qlora", "full_finetune", "pretrain", "diffusion", "render")
_TASK_WORDS = {
    "serve": "inference",
    "serving": "inference",
    "infer": "inference",
    "full": "full_finetune",
    "pretraining": "pretrain",
    "continued_pretraining": "pretrain",
    "rendering": "render",
}
PRECISION_WORDS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
MAX_TOKENS = 2**24

WHAT = (
    Key(
        path="model",
        kind="text",
        flag="--model",
        names="model",
        rule="none: must be given",
        help="Model: a bundled id, a config.json, a folder, a GGUF file, or org/name on the Hub.",
        example="meta-llama/Llama-2-7b-hf",
        known_as=("model_name_or_path", "base_model"),
    ),
    Key(
        path="task",
        kind="choice",
        flag="--task",
        choices=_TASKS,
        spellings=_TASK_WORDS,
        rule="qlora if training sizes and a quantised format are given, lora if training sizes are, else inference",
        help="What to do with the model.",
        example="lora",
    ),
    Key(
        path="engine",
        kind="text",
        flag="--engine",
        names="engine",
        rule="the engine most used for the task that loads the format: inference vllm, lora and qlora peft-trl, "
        "full_finetune and pretrain fsdp",
        help="Software that runs the model.",
        example="vllm",
        known_as=("backend", "framework"),
    ),
    Key(
        path="precision",
        kind="choice",
        flag="--precision",
        choices=("bf16", "fp16", "fp32", "fp8", "fp4"),
        spellings=PRECISION_WORDS,
        rule="training bf16; inference the checkpoint's own 16-bit type (fp16 for FP32 checkpoints, else bf16)",
        help="Arithmetic to compute in; fp8 and fp4 ask for cards that compute in them.",
        example="bf16",
        known_as=("dtype", "torch_dtype"),
    ),
    Key(
        path="quantization",
        kind="text",
        flag="--quantization",
        names="format",
        rule="qlora nf4-dq; fp8 with precision fp8; else the checkpoint's own format or the precision's",
        help="Format that the weights are stored in.",
        example="awq-int4",
        known_as=("weight_format", "quant", "load_in_4bit", "load_in_8bit"),
    ),
    Key(
        path="batch",
        kind="whole",
        flag="--batch",
        unit="sequences",
        high=65536,
        stands_for=("training.micro_batch", "serving.concurrency", "images.at_once"),
        help="At a time: training.micro_batch in training, serving.concurrency or images.at_once in inference.",
        example="4",
        known_as=("batch_size", "max_num_seqs"),
    ),
    Key(
        path="context",
        kind="whole",
        flag="--context",
        unit="tokens",
        high=MAX_TOKENS,
        stands_for=("training.sequence_tokens", "serving.context_tokens", ""),
        help="Tokens of one sequence: training.sequence_tokens in training, serving.context_tokens in inference.",
        example="4096",
        known_as=("max_model_len", "ctx_size", "context_length"),
    ),
    Key(
        path="currency",
        kind="text",
        flag="--currency",
        names="currency",
        rule="the budget's currency, else USD",
        help="Currency to compare and show costs in (ISO 4217).",
        example="CNY",
    ),
    Key(
        path="measured",
        kind="text",
        flag="--measured",
        help="A speed that you measured with this workload, to be judged, and to correct estimates by: a number, "
        "its unit, and on which machine unless one card is named.",
        example="32 tok/s on 2 x a40",
        rule="none: estimates alone",
        known_as=("throughput", "tokens_per_second"),
    ),
)
