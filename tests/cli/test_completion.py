"""Shells complete verbs, flags, cards, models and choices."""

import pytest
from tests.cli.ask import run


def completed(line, dialect="bash"):
    """What the shell offers for the last word of ``line``."""
    words = line.split(" ")
    if dialect == "bash":
        env = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    else:
        env = {"COMP_WORDS": " ".join(words[:-1]), "COMP_CWORD": words[-1]}
    ended = run(env={"_RACKRATE_COMPLETE": f"{dialect}_complete", **env})
    assert (ended.code, ended.err) == (0, "")
    return [offered.removeprefix("plain,").partition("\t")[0] for offered in ended.out.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("rackrate ", ["plan", "fit", "speed", "gpu", "facts", "completion"]),
        ("rackrate facts ", ["show", "list", "check", "path"]),
        ("rackrate facts show a4", ["a40", "a4000"]),
        ("rackrate facts show AUTO", ["AutoDL"]),
        ("rackrate facts show a40 band", ["bandwidth"]),
        ("rackrate facts list c", ["cards"]),
        ("rackrate pl", ["plan"]),
        ("rackrate plan --ta", ["--task"]),
        ("rackrate plan --task q", ["qlora"]),
        ("rackrate plan --rank-by t", ["time"]),
        ("rackrate plan --gpu a10", ["a10", "a10g", "a100-pcie-40", "a100-pcie-80", "a100-sxm4-40", "a100-sxm4-80"]),
        ("rackrate fit --gpu A4", ["a4000", "a4500", "a40"]),
        ("rackrate speed --gpu A4", ["a4000", "a4500", "a40"]),
        ("rackrate sp", ["speed"]),
        ("rackrate gpu a40 a6", ["a6000"]),
        ("rackrate plan --model meta-llama/llama-2-7", ["meta-llama/Llama-2-7b-hf"]),
        ("rackrate plan --model llama-2-7", ["Llama-2-7b-hf"]),
        ("rackrate model llama-2-7", ["Llama-2-7b-hf"]),
        ("rackrate plan --gpu a40,l4", ["a40,l4", "a40,l40s"]),
        ("rackrate plan --lora-targets q,k,ga", ["q,k,gate"]),
        ("rackrate plan --region chi", ["china"]),
        ("rackrate plan --engine v", ["vllm"]),
        ("rackrate model qwen/qwen3-8", ["Qwen/Qwen3-8B"]),
        ("rackrate completion f", ["fish"]),
        ("rackrate plan --region us-ea", ["us-east-1"]),
        ("rackrate plan --market sp", ["spot"]),
        ("rackrate fit --require fp8", ["fp8_compute"]),
        ("rackrate plan --currency c", ["CNY"]),
        ("rackrate plan --need no_q", ["no_quota"]),
        ("rackrate plan --vendor n", ["NVIDIA"]),
        ("rackrate offers ", ["pack"]),
        ("rackrate offers --gpu a10", ["a10", "a10g"]),
        ("rackrate offers --region eur", ["europe"]),
        ("rackrate offers --market on_demand_s", ["on_demand_secure"]),
        ("rackrate offers --priced-in u", ["USD"]),
        ("rackrate offers --sort per", ["per_gpu", "per_gb"]),
        ("rackrate offers --group-by c", ["card"]),
        ("rackrate offers --columns price_per", ["price_per_hour"]),
        ("rackrate offers --provider run", ["runpod"]),
    ],
)
def test_bash(line, offered):
    assert set(offered) <= set(completed(line))
    last = line.rpartition(" ")[2].lower()
    assert all(word.lower().startswith(last) for word in completed(line))


def test_fish():
    assert completed("rackrate pl", dialect="fish") == ["plan"]


@pytest.mark.parametrize(
    "line", ["rackrate nonsense ", "rackrate nonsense --", "rackrate plan --nonsense x", "rackrate plan --gpu zzz"]
)
def test_nonsense_completes_to_nothing(line):
    assert not [word for word in completed(line) if word.startswith("zzz")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_for_the_variable(shell):
    out = run("completion", shell).out
    assert f"_RACKRATE_COMPLETE={shell}_complete" in out
