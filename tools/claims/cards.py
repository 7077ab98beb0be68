"""Claims about cards: what ``gpu`` says, and what several cards of a kind are."""

from __future__ import annotations

from rackrate.facts.bundled import mig_profiles
from rackrate.units import GB, MIB, TERA

from .asking import fact, fit, gb, gpus, percent, plan
from .registry import Shown, Value, shows

A40 = "rackrate gpu a40"
FOUR_A100 = "rackrate gpu a100-pcie-40 a100-pcie-80 a100-sxm4-40 a100-sxm4-80"
GENERATIONS = "rackrate gpu v100-sxm2-16 a100-sxm4-80 h100-sxm5-80"
RATES = ("fp32", "tf32", "bf16", "fp16", "int8")


def tera(card: str, command: str, rate: str) -> float:
    """A dense rate in TFLOPS or TOPS."""
    return fact(gpus(command)[card], f"peak_{rate}_flop_per_s") / TERA


@shows("C01")
def memory_of_a40() -> Shown:
    """Memory of the A40."""
    card = gpus(A40)["a40"]
    total = card.memory_total_bytes or 0.0
    return Shown(
        commands=(A40,),
        text=f"{card.memory_sold_gb:g} GB {card.memory_type} as sold, {'with' if card.ecc else 'without'} ECC; "
        f"the driver reports {total / MIB:,.0f} MiB.",
        values={"sold_gb": card.memory_sold_gb, "total_bytes": total, "type": card.memory_type, "ecc": bool(card.ecc)},
    )


@shows("C02")
def bandwidth_of_a40() -> Shown:
    """Memory bandwidth of the A40."""
    known = next(f for f in gpus(A40)["a40"].facts if f.quantity == "bandwidth_bytes_per_s")
    return Shown(
        commands=(A40,),
        text=f"{known.value / GB:,.1f} GB/s ({known.kind}: {known.source}).",
        values={"bandwidth_bytes_per_s": known.value},
    )


@shows("C03")
def rates_of_a40() -> Shown:
    """Dense rates of the A40."""
    rates = {name: tera("a40", A40, name) for name in RATES}
    text = ", ".join(f"{name.upper()} {value:.1f}" for name, value in rates.items())
    return Shown(commands=(A40,), text=f"Dense, in TFLOPS (INT8: TOPS): {text}.", values=rates)


@shows("C04")
def sparsity_of_a40() -> Shown:
    """What 2:4 sparsity is worth."""
    card = gpus(A40)["a40"]
    note = next(note for note in card.notes if "2:4" in note)
    return Shown(
        commands=(A40,),
        text=f"FP16 {tera('a40', A40, 'fp16'):.1f} TFLOPS dense, which is what every estimate reckons with; {note}.",
        values={"fp16": tera("a40", A40, "fp16"), "sparsity_2_4": bool(card.sparsity_2_4)},
    )


@shows("C05")
def fp8_on_a40() -> Shown:
    """FP8 arithmetic excludes the A40, FP8 weights do not."""
    service = "--model meta-llama/Llama-2-7b-hf --task inference"
    compute = f"rackrate plan {service} --precision fp8 --gpu a40"
    required = f"rackrate plan {service} --require fp8_compute --gpu a40"
    weights = f"rackrate fit {service} --quantization fp8-weight-only --gpu a40"
    planned = f"rackrate plan {service} --quantization fp8-weight-only --gpu a40"
    held = fit(weights)
    stored = sum(c.bytes.likely for c in held.components if c.name == "weights")
    left = {r.reason: r.count for r in plan(required).rejected}
    out = left.get("card_property", 0)
    values: dict[str, Value] = {
        "lacks_fp8": "fp8" in gpus(A40)["a40"].lacks,
        "plans_with_fp8_compute": len(plan(compute).plans),
        "plans_with_required_fp8": len(plan(required).plans),
        "left_out_for_the_property": out,
        "plans_with_fp8_weights": len(plan(planned).plans),
        "weights_bytes": stored,
        "verdict": held.verdict,
    }
    return Shown(
        commands=(required, weights),
        text=f"No FP8 arithmetic: {out} offers of the A40 are left out when it is "
        f"required. FP8 weights alone: {gb(stored)} for Llama-2-7B, which {held.verdict} the A40 and computes in FP16.",
        values=values,
    )


@shows("C06")
def pair_of_a40() -> Shown:
    """Two A40 over NVLink are two devices."""
    alone = "rackrate fit --model 01-ai/Yi-34B --task inference --context 4096 --gpu a40"
    pair = f"{alone} --gpus 2"
    one, two = fit(alone), fit(pair)
    card = gpus(A40)["a40"]
    each_way = fact(card, "nvlink_bytes_per_s_one_way")
    share = sum(c.bytes.likely for c in two.components if c.name == "weights")
    return Shown(
        commands=(pair,),
        text=f"{card.pair[0].upper()}{card.pair[1:]}, {two.memory_total_bytes / MIB:,.0f} MiB on each; "
        f"{each_way / GB:g} GB/s each way ({2 * each_way / GB:g} both ways). Yi-34B in 16 bits does not fit on one; "
        f"on two the engine must shard it ({two.layout}): {gb(share)} of weights on each device.",
        values={
            "pair": card.pair,
            "total_bytes": two.memory_total_bytes,
            "both_ways_bytes_per_s": 2 * each_way,
            "verdict_of_one": one.verdict,
            "verdict_of_two": two.verdict,
            "layout": two.layout,
            "interconnect": two.interconnect,
            "weights_per_device": share,
            "weights_whole": sum(c.bytes.likely for c in one.components if c.name == "weights"),
        },
    )


@shows("C08")
def power_of_a40() -> Shown:
    """Power and cooling of the A40."""
    card = gpus(A40)["a40"]
    watts = fact(card, "power_limit_w")
    return Shown(
        commands=(A40,),
        text=f"{card.cooling.capitalize()}, {watts:g} W default power limit.",
        values={"watts": watts, "cooling": card.cooling},
    )


@shows("C17")
def bandwidth_of_a100() -> Shown:
    """Bandwidth of the A100 80 GB over the 40 GB, by form factor."""
    cards = gpus(FOUR_A100)
    rates = {name: fact(card, "bandwidth_bytes_per_s") for name, card in cards.items()}
    pcie = rates["a100-pcie-80"] / rates["a100-pcie-40"] - 1
    sxm = rates["a100-sxm4-80"] / rates["a100-sxm4-40"] - 1
    listed = ", ".join(f"{name} {rate / GB:,.0f}" for name, rate in rates.items())
    return Shown(
        commands=(FOUR_A100,),
        text=f"GB/s: {listed}; PCIe {percent(pcie, '+')}, SXM {percent(sxm, '+')}.",
        values={**rates, "pcie_gain": pcie, "sxm_gain": sxm},
    )


@shows("C18")
def memory_types_of_a100() -> Shown:
    """Memory types of the A100."""
    types = {name: card.memory_type for name, card in gpus(FOUR_A100).items()}
    listed = ", ".join(f"{name} {kind}" for name, kind in types.items())
    return Shown(commands=(FOUR_A100,), text=f"{listed}.", values=dict(types))


@shows("C19")
def compute_of_a100() -> Shown:
    """Dense rates and power limits of the A100 variants."""
    cards = gpus(FOUR_A100)
    same = all(len({tera(card, FOUR_A100, rate) for card in cards}) == 1 for rate in RATES)
    watts = {name: fact(card, "power_limit_w") for name, card in cards.items()}
    listed = ", ".join(f"{name} {value:g} W" for name, value in watts.items())
    bf16 = tera("a100-sxm4-80", FOUR_A100, "bf16")
    return Shown(
        commands=(FOUR_A100,),
        text=f"The same dense rates on all four (BF16 {bf16:g} TFLOPS); power limits differ: {listed}.",
        values={"same": same, "bf16": bf16, **watts},
    )


@shows("C20")
def slices_of_a100() -> Shown:
    """MIG slices of the A100 40 GB and 80 GB."""
    cards = gpus(FOUR_A100)
    count = {size: cards[f"a100-sxm4-{size}"].mig_instances for size in (40, 80)}
    smallest = {
        size: min(p.memory_label_gb for p in mig_profiles() if f"a100-sxm4-{size}" in p.accelerators)
        for size in (40, 80)
    }
    return Shown(
        commands=(FOUR_A100,),
        text=f"Up to {count[40]} instances on the 40 GB card and up to {count[80]} on the 80 GB card; the smallest "
        f"slice is {smallest[40]:g} GB on one and {smallest[80]:g} GB on the other.",
        values={f"instances_{k}": v for k, v in count.items()} | {f"smallest_{k}": v for k, v in smallest.items()},
    )


@shows("C40")
def power_limits_of_a100() -> Shown:
    """Power limits of the A100 by form factor."""
    watts = {name: fact(card, "power_limit_w") for name, card in gpus(FOUR_A100).items()}
    notes = [note for note in gpus(FOUR_A100)["a100-sxm4-80"].notes if " W " in note]
    listed = ", ".join(f"{name} {value:g} W" for name, value in watts.items())
    return Shown(
        commands=(FOUR_A100,),
        text=f"{listed}.{''.join(f' {note[0].upper()}{note[1:]}.' for note in notes)}",
        values=dict(watts),
    )


@shows("C46")
def bandwidth_of_v100() -> Shown:
    """Bandwidth of the V100 against the A100 40 GB."""
    command = "rackrate gpu v100-sxm2-16 a100-sxm4-40"
    old, new = (fact(card, "bandwidth_bytes_per_s") for card in gpus(command).values())
    return Shown(
        commands=(command,),
        text=f"V100 {old / GB:,.0f} GB/s, A100 40 GB {new / GB:,.0f} GB/s: {percent(old / new)}.",
        values={"v100": old, "a100": new, "share": old / new},
    )


@shows("C47")
def power_of_eight_a100() -> Shown:
    """Power limits of eight A100 together."""
    watts = {name: 8 * fact(card, "power_limit_w") for name, card in gpus(FOUR_A100).items()}
    return Shown(
        commands=(FOUR_A100,),
        text=f"The cards alone: 8 x 400 W = {watts['a100-sxm4-40'] / 1e3:.1f} kW as SXM4, "
        f"{watts['a100-pcie-40'] / 1e3:.1f} kW as PCIe 40 GB. The server around them comes with the verb `buy`.",
        values={"sxm_w": watts["a100-sxm4-40"], "pcie_w": watts["a100-pcie-40"]},
    )


@shows("C49")
def nvlink_by_generation() -> Shown:
    """NVLink by generation, both ways."""
    cards = gpus(GENERATIONS)
    both = {name: 2 * fact(card, "nvlink_bytes_per_s_one_way") for name, card in cards.items()}
    listed = ", ".join(
        f"{name} {both[name] / GB:g} GB/s ({card.nvlink.split(',')[0]}{', switched' if card.nvswitch else ''})"
        for name, card in cards.items()
    )
    version = cards["a100-sxm4-80"].nvlink.split(",")[0]
    return Shown(
        commands=(GENERATIONS,),
        text=f"Both ways: {listed}. Third-generation NVSwitch is the H100's; the A100 has the second.",
        values={**both, "a100_version": version, "a100_switched": cards["a100-sxm4-80"].nvswitch},
    )
