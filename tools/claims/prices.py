"""Claims about money: prices per GB-hour, terms, billing steps, and what decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from rackrate.app.context import facts, offers
from rackrate.app.wire.gpus import GpuDoc
from rackrate.app.wire.plan import PlanDocument
from rackrate.cost.compare import break_even_hours, price_per_gb_hour
from rackrate.facts.bundled import providers
from rackrate.money import Money
from rackrate.offers.meter import meter_of
from rackrate.plan.answer import Plan

from .asking import AS_OF, gib, gpus, percent, plan, words
from .by_hand import metered, offer, planned
from .registry import Shown, shows

LLAMA_13B = "meta-llama/Llama-2-13b-hf"
NAMED_PRICES = {"40 GB at 10": ("a100-sxm4-40", "10"), "80 GB at 18": ("a100-sxm4-80", "18")}
NAMED_PRICES_MORE = NAMED_PRICES | {"80 GB at 22": ("a100-sxm4-80", "22")}
FULL = 4096
REQUESTS = 20_000


@shows("C11")
def too_large_and_too_small() -> Shown:
    """Idle memory in money, and days to finish."""
    small = "rackrate plan --model Qwen/Qwen2.5-0.5B-Instruct --task inference --gpu a40 --max-gpus 1"
    large = "rackrate plan --model meta-llama/Llama-2-7b-hf --task pretrain --tokens 2T --gpu a40 --gpus 8"
    idle = plan(small).plans[0].idle_memory
    days = _days_of(plan(large))
    return Shown(
        commands=(small, large),
        text=f"Over-sized: Qwen2.5-0.5B leaves {gib(idle.bytes)} of an A40 idle ({percent(idle.fraction)}), "
        f"{Decimal(idle.cost):,.0f} USD of the month. Under-sized: pretraining Llama-2-7B on its 2 trillion tokens "
        f"takes eight A40 {days:,.0f} days.",
        values={"idle_fraction": idle.fraction, "idle_cost_usd": float(idle.cost), "days": days},
    )


def _days_of(document: PlanDocument) -> float:
    """Days of the first plan."""
    return document.plans[0].hours.likely / 24


@shows("C12")
def per_gb_hour() -> Shown:
    """The cheapest on-demand price per GB-hour of four cards."""
    command = "rackrate gpu a40 l40s a6000 a100-sxm4-80"
    cheapest = {name: _on_demand(card) for name, card in gpus(command).items()}
    listed = ", ".join(f"{name} {price:.4f}" for name, price in sorted(cheapest.items(), key=lambda p: p[1]))
    return Shown(
        commands=(f"{command} --md",),
        text=f"Cheapest on-demand offer seen, USD per GB-hour as sold: {listed}. It depends on the offers of the day.",
        values=dict(cheapest),
    )


def _on_demand(card: GpuDoc) -> float:
    """The least price per GB-hour of a card among its on-demand markets."""
    kept = (p for p in card.prices if p.market.startswith("on_demand") and not p.market.endswith("from"))
    return min(float(p.per_gb_hour_as_sold) for p in kept)


@shows("C21")
def idle_memory() -> Shown:
    """Memory paid for and left unused, in money."""
    command = f"rackrate plan --model {LLAMA_13B} --task inference --context 4096 --gpu a100-pcie-40 --gpu a100-sxm4-40"
    best = plan(f"{command} --max-gpus 1").plans[0]
    idle, cost = best.idle_memory, Decimal(best.cost.likely)
    return Shown(
        commands=(f"{command} --max-gpus 1",),
        text=f"Llama-2-13B, one request at a time: {gib(idle.bytes)} of the 40 GB card idle "
        f"({percent(idle.fraction)}), {Decimal(idle.cost):,.0f} of {cost:,.0f} {best.cost.currency} a month. "
        "That is a reason to raise the "
        "concurrency, not by itself to take a smaller card: cost per result decides.",
        values={"fraction": idle.fraction, "idle_cost": float(idle.cost), "cost": float(cost)},
    )


@shows("C27")
def month_or_hours() -> Shown:
    """Where a month's package begins to pay."""
    command = (
        "rackrate plan --model meta-llama/Llama-2-7b-hf --task inference --engine llama.cpp --quantization gguf-q4_k_m "
        "--gpu p40 --provider tencent --region ap-guangzhou --max-gpus 1 --days 30 --hours-per-day "
    )
    best = {hours: plan(f"{command}{hours}").plans[0].market for hours in (8, 12)}
    hourly, month = (_price_of("GN8.LARGE56", market) for market in ("on_demand", "monthly_package"))
    hours = break_even_hours(hourly, month)
    assert hours is not None
    return Shown(
        commands=(f"{command}8", f"{command}12"),
        text=f"By the offers: {hourly} an hour or {month} a month at Tencent (P40) break even at {hours:.0f} hours. "
        f"`plan` takes the {words(best[8])} price at 8 hours a day and the {words(best[12])} at 12.",
        values={"break_even_hours": float(hours), "at_8_hours": best[8], "at_12_hours": best[12]},
    )


def _price_of(name: str, market: str) -> Money:
    """The price of a machine of Tencent in Guangzhou."""
    found = [
        o
        for o in offers(AS_OF).table.records()
        if o.provider == "tencent" and o.name == name and o.market == market and "ap-guangzhou" in o.region
    ]
    return found[0].price


@shows("C28")
def billing_steps() -> Shown:
    """Billing steps by provider, and an hour's minimum for each start."""
    book = facts()
    seen: Counter[str] = Counter()
    for provider in providers():
        meter = meter_of(book.rules_of(provider.id), "", interruptible=False, at=AS_OF)
        if meter.is_known:
            seen[_step(max(meter.granularity_s, meter.minimum_s))] += 1
    answer = _three_short_starts()
    listed = ", ".join(f"{count} {step}" for step, count in seen.most_common())
    return Shown(
        commands=("python -m tools.claims C28",),
        text=f"Least time billed for a start, by the {seen.total()} providers whose step was seen: {listed}. "
        f"Three starts of {answer[0]:.0f} minutes with an hour's minimum each are billed {answer[1]:g} hours.",
        values={**{step: float(count) for step, count in seen.items()}, "billed_hours": answer[1]},
    )


def _step(seconds: Decimal) -> str:
    """The least that a start is billed, in words."""
    for most, name in ((1, "a second"), (60, "up to a minute"), (3599, "up to an hour")):
        if seconds <= most:
            return name
    return "an hour" if seconds == 3600 else "more than an hour"  # noqa: PLR2004 - seconds in an hour


def _three_short_starts() -> tuple[float, float]:
    """Minutes of each of three starts of a small job, and the hours billed under an hour's minimum per start."""
    sizes = {"mode": "offline", "requests": 20, "prompt_tokens": 512, "output_tokens": 128}
    job = {"model": LLAMA_13B, "task": "inference", "currency": "CNY", "serving": sizes, "use": {"starts": 3}}
    held = metered(minimum_charge_s="3600", minimum_scope="per_start")
    best = planned(job, [offer("a100-sxm4-40", "10")], held).plans[0]
    estimate = best.estimates[0]
    minutes = 60 * (estimate.startup_hours.likely + estimate.work_hours.likely / 3)
    return minutes, float(best.cost.billed_hours)


@shows("C29")
def price_of_80_over_40() -> Shown:
    """What the 80 GB card costs over the 40 GB card at sellers of both, by form factor and market."""
    least: dict[tuple[str, str, str, int], Money] = {}
    for row in offers(AS_OF).table.records():
        form, _, size = row.cards[0].removeprefix("a100-").partition("-") if len(row.cards) == 1 else ("", "", "")
        if row.cards[:1] != (f"a100-{form}-{size}",) or row.superseded or row.share < 1 or row.excludes:
            continue
        key, each = (row.provider, form, row.market, int(size)), row.price_per_hour * (Decimal(1) / row.gpus)
        least[key] = min(least.get(key, each), each, key=lambda money: money.amount)
    ratios = {
        f"{provider} {form.upper()} {words(market)}": float(least[provider, form, market, 80].amount / small.amount)
        for (provider, form, market, size), small in least.items()
        if size == 40 and (provider, form, market, 80) in least  # noqa: PLR2004 - GB as sold
    }
    listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in sorted(ratios.items(), key=lambda pair: pair[1]))
    return Shown(
        commands=("python -m tools.claims C29", "rackrate gpu a100-pcie-40 a100-pcie-80 a100-sxm4-40 a100-sxm4-80"),
        text=f"Cheapest 80 GB card-hour over cheapest 40 GB card-hour at the same seller: {listed}.",
        values=dict(ratios),
    )


@shows("C30")
def gb_hours_as_sold() -> Shown:
    """Prices per GB-hour as sold."""
    found = {
        name: price_per_gb_hour(Money(Decimal(price), "CNY"), Decimal(str(facts().accelerators[card].memory_sold_gb)))
        for name, (card, price) in NAMED_PRICES_MORE.items()
    }
    listed = ", ".join(f"{name} CNY = {money.amount.normalize():f}" for name, money in found.items())
    return Shown(
        commands=("python -m tools.claims C30", "rackrate gpu a100-sxm4-40 a100-sxm4-80 --currency CNY"),
        text=f"CNY per GB-hour as sold: {listed}.",
        values={name: float(money.amount) for name, money in found.items()},
    )


@shows("C31")
def crossover() -> Shown:
    """13B serving at 4k: one stream against a full cache, by cost per token."""
    (one_40, one_80), (full_40, full_80) = _per_million(1), _per_million(64)
    cheaper_40, cheaper_80 = 1 - one_40 / one_80, 1 - full_80 / full_40
    prompts_40, prompts_80 = per_million(served(64, FULL - 128, 128), 128)
    prefill = prompts_80 / prompts_40
    at = next(n for n in range(1, 65) if _first(n) == "a100-sxm4-80")
    return Shown(
        commands=("python -m tools.claims C31",),
        text="Llama-2-13B, sequences that grow to 4,096 (512 in, 3,584 out), A100 SXM4 at 10 and 18 CNY an hour, CNY "
        f"per million output tokens: one stream {one_40:.1f} on 40 GB and {one_80:.1f} on 80 GB "
        f"({percent(cheaper_40)} cheaper on 40 GB); full cache {full_40:.1f} and {full_80:.1f} "
        f"({percent(cheaper_80)} cheaper on 80 GB). `plan` puts the 80 GB card first from {at} requests in flight on. "
        f"With long prompts and short answers (3,968 in, 128 out) a full cache costs {percent(prefill - 1, '+')} on "
        "80 GB: arithmetic decides then, which is the same on both.",
        values={
            "one_stream_cheaper_on_40": cheaper_40,
            "full_cache_cheaper_on_80": cheaper_80,
            "full_cache_of_prompts_80_over_40": prefill,
            "crossover_requests": at,
            "first_at_one": _first(1),
            "first_at_full": _first(64),
        },
    )


def served(concurrency: int, prompt_tokens: int = 512, output_tokens: int = FULL - 512) -> Sequence[Plan]:
    """Plans for a large batch of requests to Llama-2-13B, best first, at the prices that the article names."""
    sizes = {
        "mode": "offline",
        "requests": REQUESTS,
        "context_tokens": FULL,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "concurrency": concurrency,
    }
    job = {"model": LLAMA_13B, "task": "inference", "currency": "CNY", "serving": sizes}
    return planned(job, [offer(card, price) for card, price in NAMED_PRICES.values()]).plans


def per_million(plans: Sequence[Plan], output_tokens: float) -> tuple[float, float]:
    """All-in CNY per million output tokens, on the 40 GB and on the 80 GB card."""
    cost = {p.offer.cards[0]: float(p.cost.likely.amount) / (REQUESTS * output_tokens) * 1e6 for p in plans}
    return cost["a100-sxm4-40"], cost["a100-sxm4-80"]


def _per_million(concurrency: int) -> tuple[float, float]:
    return per_million(served(concurrency), FULL - 512)


def _first(concurrency: int) -> str:
    return served(concurrency)[0].offer.cards[0]


@shows("C32")
def hidden_items() -> Shown:
    """What disk and traffic add to the bills of a plan."""
    command = "rackrate plan examples/lora-7b.toml --top 200"
    shares = []
    for each in plan(command).plans:
        amounts = {line.name: Decimal(line.amount) for line in each.cost.lines}
        unknown = any(w.code == "unknown_rule" and w.severity == "warning" for w in each.warnings)
        whole = sum(amounts.values())
        if whole and not unknown:
            compute = sum(amounts.get(name, Decimal(0)) for name in ("compute", "term"))
            shares.append(float(1 - compute / whole))
    shares.sort()
    middle = shares[len(shares) // 2]
    return Shown(
        commands=(command,),
        text="Computed per offer. Of the plans for examples/lora-7b.toml whose disk and traffic have known prices "
        f"({len(shares)}), these add {percent(shares[0])} to {percent(shares[-1])} of the bill, "
        f"{percent(middle)} in the middle.",
        values={"least": shares[0], "middle": middle, "most": shares[-1], "plans": len(shares)},
    )
