"""The one table of workload keys: files, flags, defaults, bounds, help and reference are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from rackrate.values import Value, field

Kind = Literal["whole", "number", "count", "bytes", "hours", "choice", "text", "list", "whole_list", "money", "switch"]
Scope = Literal["any", "training", "adapters", "serving", "online", "offline", "job"]
"""For which workloads a key has a meaning; a job is training or offline inference."""

SECTIONS = ("training", "serving", "use", "limits")


class Key(Value, frozen=True, kw_only=True):
    """One thing that can be said about a workload.

    ``default`` is the constant taken when nothing is said, for the reason
    ``why`` (a code of ``reasons``); ``rule`` says in words how a default that
    is no constant is found. ``spellings`` are other ways to write a choice,
    ``known_as`` the key's names in other tools, ``stands_for`` the training
    and the serving key that a shorthand sets, ``names`` the kind of id it takes.
    """

    path: str
    kind: Kind
    help: str
    flag: str = ""
    flag_aliases: tuple[str, ...] = ()
    unit: str = ""
    low: float = 1
    high: float = 1
    choices: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = "any"
    default: int | float | str | bool | None = None
    why: str = ""
    rule: str = ""
    example: str = ""
    names: str = ""
    known_as: tuple[str, ...] = ()
    stands_for: tuple[str, str] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether the flag takes no value."""
        return self.kind == "switch"

    @property
    def multiple(self) -> bool:
        """Whether several values can be given: the flag repeated, or commas."""
        return self.kind in {"list", "whole_list"}

    @property
    def metavar(self) -> str:
        """What the flag's value is called in a usage line."""
        if self.names:
            return self.names.upper()
        return {"choice": "CHOICE", "list": "NAME", "whole_list": "COUNT", "whole": "N", "number": "X"}.get(
            self.kind, self.kind.upper()
        )


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
_PRECISION_WORDS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
_TARGET_WORDS = {f"{name}_proj": name for name in ("q", "k", "v", "o", "gate", "up", "down")} | {"all_linear": "all"}
_MAX_TOKENS = 2**24

_WHAT = (
    Key(
        path="model",
        kind="text",
        flag="--model",
        names="model",
        rule="none: must be given",
        help="Model, by its id.",
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
        choices=("bf16", "fp16", "fp32", "fp8"),
        spellings=_PRECISION_WORDS,
        rule="training bf16; inference the checkpoint's own 16-bit type (fp16 for FP32 checkpoints, else bf16)",
        help="Arithmetic to compute in; fp8 asks for cards that compute in FP8.",
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
        stands_for=("training.micro_batch", "serving.concurrency"),
        help="Sequences at a time: training.micro_batch in training, serving.concurrency in inference.",
        example="4",
        known_as=("batch_size", "max_num_seqs"),
    ),
    Key(
        path="context",
        kind="whole",
        flag="--context",
        unit="tokens",
        high=_MAX_TOKENS,
        stands_for=("training.sequence_tokens", "serving.context_tokens"),
        help="Tokens of one sequence: training.sequence_tokens in training, serving.context_tokens in inference.",
        example="4096",
        known_as=("max_model_len", "ctx_size", "context_length"),
    ),
    Key(
        path="currency",
        kind="text",
        flag="--currency",
        rule="the budget's currency, else USD",
        help="Currency to compare and show costs in (ISO 4217).",
        example="CNY",
    ),
)

_TRAINING = (
    Key(
        path="training.sequence_tokens",
        kind="whole",
        unit="tokens",
        high=_MAX_TOKENS,
        scope="training",
        rule="2048 (pretrain 4096), at most the model's maximum, at least mean_tokens",
        help="Length of one sequence.",
        example="2048",
        known_as=("max_seq_length", "max_seq_len", "seq_len", "sequence_length", "cutoff_len", "max_length"),
    ),
    Key(
        path="training.micro_batch",
        kind="whole",
        unit="sequences",
        high=65536,
        scope="training",
        default=1,
        why="smallest_micro_batch",
        help="Sequences that one card works on at a time.",
        example="4",
        known_as=("per_device_train_batch_size", "micro_batch_size"),
    ),
    Key(
        path="training.global_batch",
        kind="whole",
        flag="--global-batch",
        unit="sequences",
        high=2**20,
        scope="training",
        rule="16 (pretrain 2 Mi tokens' worth), rounded up to a multiple of micro_batch",
        help="Sequences of one optimizer step, over all cards and accumulation.",
        example="16",
        known_as=("gradient_accumulation_steps", "train_batch_size", "global_batch_size"),
    ),
    Key(
        path="training.tokens",
        kind="count",
        flag="--tokens",
        unit="tokens",
        high=1e18,
        scope="training",
        rule="rows x epochs x mean_tokens; without rows 10M, pretrain 20 for each parameter",
        help="Tokens of the whole run, epochs included.",
        example="30M",
    ),
    Key(
        path="training.rows",
        kind="count",
        flag="--rows",
        unit="rows",
        high=1e15,
        scope="training",
        help="Rows of the data set, instead of tokens.",
        example="50k",
        known_as=("num_train_samples", "samples", "examples"),
    ),
    Key(
        path="training.epochs",
        kind="number",
        flag="--epochs",
        low=0.001,
        high=10000,
        scope="training",
        default=3.0,
        why="usual_epochs",
        help="Passes over the rows (with rows).",
        example="3",
        known_as=("num_train_epochs",),
    ),
    Key(
        path="training.mean_tokens",
        kind="number",
        flag="--mean-tokens",
        unit="tokens",
        high=_MAX_TOKENS,
        scope="training",
        rule="512, at most sequence_tokens",
        help="Mean tokens of a row (with rows).",
        example="512",
    ),
    Key(
        path="training.optimizer",
        kind="choice",
        flag="--optimizer",
        choices=("adamw", "adamw-8bit", "paged-adamw-8bit", "adafactor", "lion", "sgd", "muon"),
        spellings={"adam": "adamw", "adamw-torch": "adamw", "adamw-bnb-8bit": "adamw-8bit"},
        scope="training",
        default="adamw",
        why="usual_optimizer",
        help="Optimizer.",
        example="adamw",
        known_as=("optim",),
    ),
    Key(
        path="training.checkpointing",
        kind="choice",
        flag="--checkpointing",
        choices=("none", "selective", "full"),
        scope="training",
        rule="full (pretrain selective)",
        help="Activations computed again in the backward pass instead of kept.",
        example="full",
        known_as=("gradient_checkpointing", "activation_checkpointing", "recompute"),
    ),
    Key(
        path="training.pure_16bit",
        kind="switch",
        flag="--pure-16bit",
        scope="training",
        rule="false, unless the engine keeps no FP32 master weights",
        help="Keep weights, gradients and moments in 16 bits, without FP32 master weights.",
        example="true",
    ),
    Key(
        path="training.packed",
        kind="switch",
        flag="--packed",
        scope="training",
        rule="false (pretrain true)",
        help="Pack short rows into full sequences.",
        example="true",
        known_as=("packing", "sample_packing"),
    ),
    Key(
        path="training.lora_rank",
        kind="whole",
        flag="--rank",
        high=8192,
        scope="adapters",
        default=16,
        why="usual_lora_rank",
        help="Rank of the LoRA adapters.",
        example="16",
        known_as=("lora_r", "r"),
    ),
    Key(
        path="training.lora_targets",
        kind="list",
        flag="--lora-targets",
        choices=("all", "q", "k", "v", "o", "gate", "up", "down"),
        spellings=_TARGET_WORDS,
        scope="adapters",
        default="all",
        why="all_linear_layers",
        help="Linear layers with adapters.",
        example="q, v",
        known_as=("target_modules", "lora_target_modules"),
    ),
)

_SERVING = (
    Key(
        path="serving.mode",
        kind="choice",
        flag="--mode",
        choices=("online", "offline"),
        scope="serving",
        rule="offline if serving.requests is given, else online",
        help="A service kept running, or a batch of requests worked off once.",
        example="online",
    ),
    Key(
        path="serving.prompt_tokens",
        kind="whole",
        flag="--prompt-tokens",
        unit="tokens",
        high=_MAX_TOKENS,
        scope="serving",
        rule="1024; with a context given, what output_tokens leaves of it",
        help="Prompt of the typical request.",
        example="1024",
        known_as=("input_len", "random_input_len", "isl"),
    ),
    Key(
        path="serving.output_tokens",
        kind="whole",
        flag="--output-tokens",
        unit="tokens",
        high=_MAX_TOKENS,
        scope="serving",
        rule="128, at most a quarter of a context given",
        help="Tokens generated for the typical request.",
        example="256",
        known_as=("max_tokens", "max_new_tokens", "output_len", "osl"),
    ),
    Key(
        path="serving.context_tokens",
        kind="whole",
        unit="tokens",
        high=_MAX_TOKENS,
        scope="serving",
        rule="prompt_tokens + output_tokens",
        help="Longest request to have room for, prompt and output.",
        example="4096",
    ),
    Key(
        path="serving.concurrency",
        kind="whole",
        flag="--concurrency",
        unit="requests",
        high=65536,
        scope="serving",
        rule="the rate times the time of one request; without a rate 1, offline 32 or the engine's own limit",
        help="Requests in flight at a time.",
        example="8",
        known_as=("max_concurrency", "concurrent_users", "users"),
    ),
    Key(
        path="serving.requests_per_s",
        kind="number",
        flag="--requests-per-s",
        unit="requests/s",
        low=1e-6,
        high=1e6,
        scope="online",
        help="Offered load.",
        example="0.5",
        known_as=("request_rate", "qps", "rps"),
    ),
    Key(
        path="serving.requests",
        kind="count",
        flag="--requests",
        unit="requests",
        high=1e15,
        scope="offline",
        rule="none: must be given offline",
        help="Requests of the whole batch job.",
        example="100k",
        known_as=("num_prompts",),
    ),
    Key(
        path="serving.first_token_ms",
        kind="number",
        flag="--first-token-ms",
        unit="ms",
        low=0.1,
        high=1e7,
        scope="online",
        help="Longest time to first token of the median request.",
        example="500",
        known_as=("ttft", "ttft_ms"),
    ),
    Key(
        path="serving.output_token_ms",
        kind="number",
        flag="--output-token-ms",
        unit="ms",
        low=0.01,
        high=1e6,
        scope="online",
        help="Longest time per output token of the median request.",
        example="50",
        known_as=("tpot", "tpot_ms", "itl"),
    ),
    Key(
        path="serving.cache_precision",
        kind="choice",
        flag="--cache-precision",
        choices=("fp32", "bf16", "fp16", "fp8", "int8"),
        spellings=_PRECISION_WORDS,
        scope="serving",
        rule="16 bits (fp32 with precision fp32)",
        help="Type that the KV cache is stored in.",
        example="fp8",
        known_as=("kv_cache_dtype", "cache_type_k"),
    ),
)

_USE = (
    Key(
        path="use.hours_per_day",
        kind="number",
        flag="--hours-per-day",
        unit="hours",
        low=0.01,
        high=24,
        scope="online",
        default=24.0,
        why="always_on",
        help="Hours of each day that the service runs.",
        example="10",
    ),
    Key(
        path="use.horizon_days",
        kind="number",
        flag="--days",
        unit="days",
        low=0.01,
        high=3660,
        scope="online",
        default=30.0,
        why="one_month",
        help="Days that the service is kept.",
        example="90",
        known_as=("days",),
    ),
    Key(
        path="use.starts",
        kind="whole",
        flag="--starts",
        high=1000,
        scope="job",
        default=1,
        why="one_session",
        help="Sessions that the job is done in, each a start of the machine.",
        example="2",
    ),
    Key(
        path="use.disk",
        kind="bytes",
        flag="--disk",
        high=1e18,
        rule="50 GB and twice the weights (once the download, once converted or cached); "
        "full_finetune and pretrain a training checkpoint of 14 bytes a parameter more",
        help="Disk kept while the machine exists.",
        example="200 GB",
    ),
    Key(
        path="use.data_in",
        kind="bytes",
        flag="--data-in",
        high=1e18,
        rule="0 GB",
        help="Your own data sent to the machine, over the whole job or horizon; the model comes on top.",
        example="50 GB",
    ),
    Key(
        path="use.data_out",
        kind="bytes",
        flag="--data-out",
        high=1e18,
        rule="full_finetune and pretrain 2 bytes a parameter, adapters 1 GB, inference 0",
        help="Traffic out of the machine, over the whole job or horizon.",
        example="20 GB",
        known_as=("egress",),
    ),
    Key(
        path="use.keep_disk_days",
        kind="number",
        flag="--keep-disk-days",
        unit="days",
        low=0,
        high=3660,
        default=0.0,
        why="disk_released",
        help="Days that the disk is kept after the last run.",
        example="7",
    ),
)

_LIMITS = (
    Key(
        path="limits.deadline",
        kind="hours",
        flag="--deadline",
        low=0.001,
        high=1e6,
        scope="job",
        help="Longest time to finish, start-up included.",
        example="36 h",
    ),
    Key(
        path="limits.budget",
        kind="money",
        flag="--budget",
        help="Most to spend: amount, currency and period (hour, day or month; without one, in total).",
        example="3000 CNY/month",
        known_as=("max_cost",),
    ),
    Key(
        path="limits.gpus",
        kind="list",
        flag="--gpu",
        names="card",
        help="Cards allowed, by id or name; a name that several cards share allows them all.",
        example="l40s, A100 80GB",
        known_as=("gpu", "gpu_type", "accelerator", "accelerators"),
    ),
    Key(
        path="limits.gpu_counts",
        kind="whole_list",
        flag="--gpus",
        unit="cards",
        high=128,
        help="Cards in one machine.",
        example="1, 2",
        known_as=("num_gpus", "gpu_count"),
    ),
    Key(
        path="limits.max_gpus",
        kind="whole",
        flag="--max-gpus",
        unit="cards",
        high=128,
        help="Most cards in one machine.",
        example="8",
    ),
    Key(path="limits.regions", kind="list", flag="--region", help="Regions allowed.", example="us-east-1"),
    Key(
        path="limits.providers",
        kind="list",
        flag="--provider",
        names="provider",
        help="Providers allowed.",
        example="runpod, lambda",
    ),
    Key(
        path="limits.exclude_providers",
        kind="list",
        flag="--exclude-provider",
        names="provider",
        help="Providers left out.",
        example="vast",
    ),
    Key(path="limits.markets", kind="list", flag="--market", help="Markets allowed.", example="on_demand, spot"),
    Key(
        path="limits.interruptible",
        kind="switch",
        flag="--interruptible",
        flag_aliases=("--spot",),
        default=False,
        why="work_not_interrupted",
        help="The work may be interrupted: offers that can be taken away count too.",
        example="true",
        known_as=("spot", "preemptible"),
    ),
    Key(
        path="limits.require",
        kind="list",
        flag="--require",
        help="Properties that the card must have.",
        example="fp8_compute, min_memory_gb=40",
    ),
    Key(path="limits.vendors", kind="list", flag="--vendor", help="Vendors of cards allowed.", example="NVIDIA"),
)

KEYS: Mapping[str, Key] = MappingProxyType({key.path: key for key in (*_WHAT, *_TRAINING, *_SERVING, *_USE, *_LIMITS)})
"""All keys by path, in the order in which they are shown."""


def shorthand_of(path: str) -> str:
    """The shorthand key that sets ``path``, such as ``context`` for ``training.sequence_tokens``; empty for none."""
    return next((key.path for key in KEYS.values() if key.stands_for is not None and path in key.stands_for), "")


def flag_keys() -> tuple[Key, ...]:
    """The keys that have a flag on the command line, in the order of the table."""
    return tuple(key for key in KEYS.values() if key.flag)
