"""Claims about inference: weights, KV cache, and what several cards do for one model."""

from __future__ import annotations

from rackrate.app.context import facts
from rackrate.plan.answer import Plan

from .asking import fit, gb, gib, gpus, part, words
from .by_hand import offer, planned
from .registry import Shown, Value, shows

LLAMA_7B = "meta-llama/Llama-2-7b-hf"
LLAMA_13B = "meta-llama/Llama-2-13b-hf"
LINKS = {"nvlink_bridge": "an NVLink bridge", "pcie": "PCIe", "nvswitch": "NVSwitch"}
FORMATS = ("fp32", "fp16", "int8", "fp8", "awq-int4", "nf4-dq")


def serve(model: str, card: str, more: str = "") -> str:
    """The command that shows how ``model`` fits at a context of 4096."""
    return f"rackrate fit --model {model} --task inference --context 4096 --gpu {card}{more}"


@shows("C07")
def more_than_two_a40() -> Shown:
    """What joins more than two A40, and what it costs."""
    links = {n: fit(serve("01-ai/Yi-34B", "a40", f" --gpus {n}")).interconnect for n in (2, 4, 8)}
    per_user = {p.offer.gpus: p.pace.likely for p in _one_stream("01-ai/Yi-34B", "a40", (2, 4, 8))}
    gain = per_user[8] / per_user[2]
    speeds = ", ".join(f"{n} cards {rate:.0f}" for n, rate in sorted(per_user.items()))
    return Shown(
        commands=(serve("01-ai/Yi-34B", "a40", " --gpus 8"), "python -m tools.claims C07"),
        text=f"No NVSwitch; {LINKS[links[2]]} between two, {LINKS[links[8]]} beyond. Yi-34B, one stream, "
        f"tokens/s: {speeds}: four times the cards are {gain:.1f} times as fast.",
        values={
            "nvswitch": gpus("rackrate gpu a40")["a40"].nvswitch,
            "link_of_2": links[2],
            "link_of_4": links[4],
            "link_of_8": links[8],
            "gain_8_over_2": gain,
        },
    )


def _one_stream(model: str, card: str, counts: tuple[int, ...]) -> list[Plan]:
    """Plans for one request at a time on machines of ``counts`` cards."""
    sizes = {"mode": "offline", "requests": 1000, "prompt_tokens": 512, "output_tokens": 512, "concurrency": 1}
    workload = {"model": model, "task": "inference", "currency": "CNY", "serving": sizes}
    return list(planned(workload, [offer(card, "10", gpus=n) for n in counts]).plans)


@shows("C10")
def inference_on_a40() -> Shown:
    """What the A40 serves in 16 bits and below."""
    tried = {
        "7B FP16": serve(LLAMA_7B, "a40"),
        "20B FP16": serve("internlm/internlm2-20b", "a40"),
        "34B BF16": serve("01-ai/Yi-34B", "a40"),
        "34B 8 bits": serve("01-ai/Yi-34B", "a40", " --quantization gptq-int8"),
        "34B 4 bits": serve("01-ai/Yi-34B", "a40", " --quantization awq-int4"),
    }
    verdicts = {name: words(fit(command).verdict) for name, command in tried.items()}
    held = {name: fit(command).cache for name, command in tried.items()}
    listed = ", ".join(
        f"{name} {verdict}"
        + (f" ({cache.full_sequences} sequences of 4,096)" if cache and verdict != "does not fit" else "")
        for (name, verdict), cache in zip(verdicts.items(), held.values(), strict=True)
    )
    return Shown(commands=(tried["20B FP16"], tried["34B 8 bits"]), text=f"{listed}.", values=dict(verdicts))


@shows("C14")
def weights_of_7b() -> Shown:
    """Weights of a 7B model in FP16."""
    command = serve(LLAMA_7B, "a100-pcie-40")
    size = part(fit(command), "weights")
    params = facts().model(LLAMA_7B).params_total
    return Shown(
        commands=(command,),
        text=f"Llama-2-7B has {params / 1e9:.3f} billion parameters: {gb(size)} = {gib(size)} in FP16 "
        f"(a nominal 7 billion: {gb(7e9 * size / params)}).",
        values={"weights_bytes": size, "nominal_bytes": 7e9 * size / params},
    )


@shows("C15")
def sequences_of_7b_on_40_gb() -> Shown:
    """How many full sequences of a 7B FP16 model fit on 40 GB."""
    command = serve(LLAMA_7B, "a100-pcie-40", " --concurrency 16")
    document = fit(command)
    assert document.cache is not None
    queues = next((w.action for w in document.warnings if w.code == "short_of_concurrency"), "")
    return Shown(
        commands=(command,),
        text=f"{document.cache.full_sequences} full sequences of 4,096 beside the weights "
        f"({document.cache.bytes_per_token / 1e6:.3f} MB of KV a token); with 16 asked for it still "
        f"{document.verdict}, and the rest wait in vLLM's queue.",
        values={
            "sequences": document.cache.full_sequences,
            "bytes_per_token": document.cache.bytes_per_token,
            "verdict": document.verdict,
            "says_that_the_rest_wait": "queue" in queues,
        },
    )


@shows("C22")
def bytes_by_format() -> Shown:
    """Weights of Llama-2-7B by format."""
    params = facts().model(LLAMA_7B).params_total
    command = serve(LLAMA_7B, "a100-sxm4-80", " --quantization {}")
    engine = {"int8": " --engine transformers", "nf4-dq": " --engine transformers"}
    sizes = {
        name: part(fit(serve(LLAMA_7B, "a100-sxm4-80", f" --quantization {name}{engine.get(name, '')}")), "weights")
        for name in FORMATS
    }
    listed = ", ".join(f"{name} {gb(size)} ({size / params:.2f} B each)" for name, size in sizes.items())
    return Shown(
        commands=(command.format("awq-int4"),),
        text=f"Llama-2-7B, scales and 16-bit parts included: {listed}.",
        values={name: size / params for name, size in sizes.items()},
    )


@shows("C25")
def four_bit_7b() -> Shown:
    """A 7B model in 4 bits on 40 GB."""
    command = serve(LLAMA_7B, "a100-pcie-40", " --quantization awq-int4")
    document = fit(command)
    assert document.cache is not None
    size = part(document, "weights")
    instances = int(document.usable_bytes // document.peak_bytes.likely)
    return Shown(
        commands=(command,),
        text=f"{gb(size)} of weights. One engine holds {document.cache.full_sequences} full sequences of 4,096; as "
        f"separate instances with one sequence each ({gib(document.peak_bytes.likely)}), {instances} fit side by side. "
        "`fit` does not count replicas on one card yet.",
        values={"weights_bytes": size, "sequences": document.cache.full_sequences, "instances": instances},
    )


@shows("C36")
def sequences_of_13b() -> Shown:
    """Llama-2-13B in FP16 on 40 GB and 80 GB."""
    commands = {40: serve(LLAMA_13B, "a100-pcie-40"), 80: serve(LLAMA_13B, "a100-pcie-80")}
    found = {size: fit(command) for size, command in commands.items()}
    caches = {size: document.cache for size, document in found.items()}
    small, large = caches[40], caches[80]
    assert small is not None
    assert large is not None
    values: dict[str, Value] = {
        "weights_bytes": part(found[40], "weights"),
        "bytes_per_token": small.bytes_per_token,
        "tokens_40": small.tokens.likely,
        "tokens_80": large.tokens.likely,
        "sequences_40": small.full_sequences,
        "sequences_80": large.full_sequences,
    }
    return Shown(
        commands=tuple(commands.values()),
        text=f"{gb(part(found[40], 'weights'))} of weights, {small.bytes_per_token / 1e6:.2f} MB of KV a token: room "
        f"for {small.tokens.likely:,.0f} tokens = {small.full_sequences} full sequences of 4,096 on 40 GB, "
        f"{large.tokens.likely:,.0f} = {large.full_sequences} on 80 GB.",
        values=values,
    )


@shows("C37")
def few_large_or_many_small() -> Shown:
    """One large card against two small ones, and PCIe against NVSwitch."""
    model = LLAMA_13B
    large, small = _one_stream(model, "a100-pcie-80", (1,))[0], _one_stream(model, "a100-pcie-40", (2,))[0]
    pcie, switched = (
        {p.offer.gpus: p.pace.likely for p in _one_stream("meta-llama/Llama-2-70b-hf", card, (2, 8))}
        for card in ("a100-pcie-80", "a100-sxm4-80")
    )
    ratio = small.pace.likely / large.pace.likely
    return Shown(
        commands=("python -m tools.claims C37",),
        text="It depends on the link. Llama-2-70B, one stream, from 2 to 8 A100 80 GB: "
        f"{pcie[8] / pcie[2]:.1f} times as fast over PCIe, {switched[8] / switched[2]:.1f} times over NVSwitch. "
        "Llama-2-13B, which needs no second card: two 40 GB cards on an NVLink bridge read it "
        f"{ratio:.2f} times as fast as one 80 GB card, so at the same price for both the pair wins.",
        values={
            "gain_pcie": pcie[8] / pcie[2],
            "gain_nvswitch": switched[8] / switched[2],
            "two_small_over_one_large": ratio,
        },
    )
