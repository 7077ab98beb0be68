"""The command line, run in this process: what it prints, and how it ends."""

import functools
import gc
import json
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from rackrate.cli.main import main

ROOT = Path(__file__).parents[2]
DAY = "2026-11-30"
"""The day that answers are asked for, so that ages and rules do not change under the tests."""

EXAMPLES = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").iterdir() if path.is_file()))
MODEL = ("--model", "meta-llama/Llama-2-7b-hf")
CHAT = ("--model", "meta-llama/Llama-2-13b-hf", "--task", "inference", "--context", "4096")
LOADED = ("--model", "meta-llama/Meta-Llama-3-8B", "--task", "inference", "--gpu", "l4", "--gpus", "1")
PLANS = (
    *(("plan", example) for example in EXAMPLES),
    ("plan", *CHAT, "--gpu", "a100", "--top", "3", "--currency", "CNY"),
    ("plan", "examples/lora-7b.toml", "--rank-by", "time"),
    ("plan", "examples/lora-7b.toml", "--rank-by", "both", "--gpus", "8"),
    ("plan", *CHAT, "--top", "2", "--measured", "9 tok/s on a40"),
)
NO_PLANS = (
    ("plan", "examples/lora-7b.toml", "--budget", "0.01 USD"),
    ("plan", "examples/full-7b.toml", "--gpu", "a40", "--gpus", "1"),
)
FITS = (
    ("fit", "examples/lora-7b.toml", "--gpu", "rtx4090"),
    ("fit", *MODEL, "--task", "full_finetune", "--gpu", "a100-sxm4-80", "--gpus", "8"),
    ("fit", *CHAT, "--gpu", "a100-pcie-40"),
    ("fit", *MODEL, "--task", "inference", "--gpu", "a40", "--gpus", "2"),
    ("fit", *MODEL, "--task", "full_finetune", "--gpu", "a100-sxm4-80", "--gpus", "1,2,8"),
    ("fit", *MODEL, "--tensor-parallel", "2"),
    ("fit", *MODEL, "--task", "inference", "--gpu", "h100-sxm5-80", "--gpus", "1,8", "--nodes", "2"),
    (
        "fit",
        *MODEL,
        "--gpu",
        "a100-sxm4-80",
        "--task",
        "lora",
        "--modules-to-save",
        "embedding,head",
        "--engine",
        "deepspeed",
    ),
)
SPEEDS = (
    ("speed", "examples/lora-7b.toml", "--gpu", "a40", "--gpu", "l40s"),
    ("speed", *CHAT, "--gpu", "a100-sxm4-80"),
    ("speed", "examples/full-7b.toml", "--gpu", "a100-sxm4-80", "--gpus", "1,2,8", "--deadline", "3 h"),
    ("speed", "examples/batch-70b.json", "--gpu", "rtx4090", "--gpu", "p40"),
    ("speed", *CHAT, "--requests-per-s", "4", "--first-token-ms", "500", "--gpu", "A100 80G"),
    ("speed", *CHAT, "--gpu", "a100-sxm4-80", "--gpus", "1,2", "--concurrency", "16", "--simulate"),
    ("speed", *LOADED, "--requests-per-s", "1", "--first-token-ms", "2000", "--percentile", "90"),
    ("speed", *MODEL),
    ("speed", *CHAT, "--gpu", "l40s", "--measured", "20 tok/s"),
    ("speed", *CHAT, "--measured", "32.5 tok/s on 2 x a40", "--gpus", "2"),
    ("speed", "examples/lora-7b.toml", "--gpu", "a40", "--gpus", "2", "--measured", "30 s/it"),
    ("speed", "examples/full-7b.toml", "--gpu", "l40s", "--gpus", "8", "--nodes", "4", "--network", "10 Gb/s"),
    ("speed", "examples/full-7b.toml", "--gpu", "a100-sxm4-80", "--gpus", "4,8", "--nodes", "2", "--deadline", "1 h"),
)
NO_SPEEDS = (
    ("speed", *CHAT, "--gpu", "rtx4090", "--gpus", "1"),
    ("speed", "examples/full-7b.toml", "--gpu", "a100-sxm4-80", "--gpus", "2", "--deadline", "1 h"),
    ("speed", *MODEL, "--precision", "fp8", "--gpu", "a40"),
    ("speed", *LOADED, "--requests-per-s", "9", "--output-token-ms", "20", "--length-spread", "1", "--simulate"),
)
NO_FITS = (
    ("fit", *MODEL, "--task", "full_finetune", "--gpu", "a100-sxm4-80"),
    ("fit", "examples/batch-70b.json", "--gpu", "rtx4090"),
)
CARDS = (
    ("gpu", "a40"),
    ("gpu", "rtx4090-48-mod"),
    ("gpu", "a100-pcie-40", "a100-pcie-80", "h100-sxm5-80", "--currency", "CNY"),
    ("gpu", "mi300x-192", "b200-180", "h200-sxm-141", "rtxpro6000-ws"),
    ("gpu",),
    ("gpu", "h100-sxm5-80"),
    ("gpu", "p40"),
    ("gpu", "tpu-v7x"),
    ("gpu", "rtxpro6000-ws"),
    ("gpu", "a40", "a100-sxm4-80"),
)
SAMPLES = "tests/facts/samples"
MODELS = (
    ("model", "meta-llama/Llama-2-7b-hf"),
    ("model", "deepseek-ai/DeepSeek-V3", "google/gemma-3-27b-it", "Qwen/Qwen3-30B-A3B"),
    ("model", f"{SAMPLES}/llama-tiny", f"{SAMPLES}/llama-tiny.Q4_K_M.gguf"),
    ("model", f"{SAMPLES}/llama-tiny.IQ3_XXS.gguf"),
    ("model", f"{SAMPLES}/pipeline"),
    ("model", "google-bert/bert-large-uncased"),
    ("model", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    ("model", "--family", "Gemma 3"),
    ("model",),
)
FACTS = (
    ("facts", "show", "a40"),
    ("facts", "show", "a100-sxm4-80", "power_limit"),
    ("facts", "show", "AutoDL"),
    ("facts", "show", "vllm"),
    ("facts", "show", "nf4"),
    ("facts", "show", "meta-llama/Llama-2-7b-hf"),
    ("facts", "list"),
    ("facts", "list", "cards"),
    ("facts", "list", "providers"),
    ("facts", "check"),
    ("facts", "check", "examples/own-facts"),
    ("facts", "path"),
)
OFFERS = (
    ("offers",),
    ("offers", "--gpu", "a100", "--gpu", "H100 SXM", "--region", "us", "--currency", "CNY"),
    ("offers", "--min-memory", "80", "--group-by", "card"),
    ("offers", "--group-by", "provider", "--sort", "-gpus,price", "--top", "5"),
    ("offers", "--provider", "gcp", "--market", "spot", "--sort", "-seen", "--top", "3"),
    ("offers", "--need", "payment=card", "--priced-in", "USD", "--seen-since", "2026-01-01", "--top", "200"),
    ("offers", "--history", "--max-price", "3 EUR", "--min-gpus", "2", "--vendor", "nvidia"),
)
NO_OFFERS = (
    ("offers", "--gpu", "a40", "--max-price", "0.01"),
    ("offers", "--gpu", "a40", "--provider", "aws"),
    ("offers", "--need", "no_company_verification"),
)
REFUSED = (
    ("plan",),
    ("plan", "examples/no-such-file.toml"),
    ("plan", "examples"),
    ("plan", *MODEL, "--task", "cooking"),
    ("plan", *MODEL, "--task", "render"),
    ("plan", *MODEL, "--gpu", "a1000"),
    ("plan", *MODEL, "--gpuz", "a40"),
    ("plan", *MODEL, "--rank-by", "love"),
    ("plan", *MODEL, "--top", "0"),
    ("plan", *MODEL, "--top"),
    ("plan", *MODEL, "one.toml", "two.toml"),
    ("fit", *MODEL, "--tensor-parallel", "3"),
    ("fit", *MODEL, "--cache-precision", "q8_0"),
    ("fit", *MODEL, "--gpu", "a100"),
    ("speed",),
    ("speed", *MODEL, "--gpu", "a1000"),
    ("speed", *MODEL, "--gpu", "a40", "--gpus", "0"),
    ("fit", *MODEL, "--gpu", "a40", "--gpus", "1000000"),
    ("gpu", "a100"),
    ("gpu", "voodoo2"),
    ("gpu", "a40", "--currency", "XYZ"),
    ("model", "meta-llama/Llama-9"),
    ("model", "llama"),
    ("model", "./no-such-model.gguf"),
    ("model", "org/no-such-model"),
    ("model", "--family", "Gema 3"),
    ("model", "gpt2", "--family", "GPT-2"),
    ("fit", "--model", "./no-such-folder", "--gpu", "a40"),
    ("completion", "tcsh"),
    ("offers", "--gpu", "voodoo2"),
    ("offers", "--region", "atlantis"),
    ("offers", "--sort", "prise"),
    ("offers", "--columns", "colour"),
    ("offers", "--max-price", "cheap"),
    ("offers", "--max-price", "3 USD/month"),
    ("offers", "--currency", "XYZ"),
    ("offers", "--seen-since", "20261101"),
    ("offers", "--need", "a_friend"),
    ("offers", "--offers", "no-such-list.csv"),
    ("offers", "--offers", "examples"),
    ("offers", "--offers", "README.md"),
    ("offers", "a40"),
    ("offers", "pack", "examples", "nowhere/offers.columns"),
    ("plan", *MODEL, "--offers", "examples/lora-7b.toml"),
    ("plan", *MODEL, "--need", "payment=gold"),
    ("facts", "show"),
    ("facts", "show", "voodoo2"),
    ("facts", "show", "a100"),
    ("facts", "show", "a40", "bandwith"),
    ("facts", "list", "cookies"),
    ("facts", "chek"),
    ("plann",),
    ("--vresion",),
)


class Ran(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The JSON that it printed; a number that is not finite is an error."""
        return json.loads(self.out, parse_constant=_not_a_number)


def _not_a_number(name):
    raise AssertionError(f"{name} is no JSON")


def run(*args, env=None, stdin=None):
    """Run ``rackrate`` with ``args`` in the working folder; an exception that it lets out is raised here."""
    clean = {"COLUMNS": None, "NO_COLOR": None, "TERM": None}
    try:
        ended = CliRunner(env=clean | (env or {})).invoke(
            main, [str(arg) for arg in args], input=stdin, prog_name="rackrate", catch_exceptions=False
        )
    finally:
        gc.enable()  # a verb switches it off, for a process of its own
    return Ran(ended.exit_code, ended.stdout, ended.stderr)


@functools.cache
def answer(*args):
    """What ``rackrate`` says to ``args`` on ``DAY``; asked once."""
    return run(*args, "--as-of", DAY)


def name_of(args):
    """A command line as the name of a test."""
    return " ".join(args)
