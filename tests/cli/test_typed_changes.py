"""What the screen of ``offers`` says would bring an offer in is typed, and the offer is then in."""

import re
import shlex

import pytest

from .ask import answer, run

ASKED = (
    ("offers", "--gpu", "l4", "--provider", "aws", "--region", "us"),
    ("offers", "--gpu", "rtx4090", "--region", "eu", "--market", "spot"),
    ("offers", "--require", "fp8_compute", "--require", "nvswitch", "--min-memory", "200", "--vendor", "nvidia"),
    ("offers", "--min-memory", "100", "--max-price-per-gpu", "1"),
    ("offers", "--gpu", "a40", "--max-price", "0.01"),
    ("offers", "--gpu", "h200", "--min-gpus", "8", "--exclude-provider", "verda"),
    ("offers", "--gpu", "a100", "--gpus", "1", "--max-gpus", "2", "--priced-in", "EUR"),
    ("offers", "--seen-since", "2026-11-29", "--provider", "aws"),
    ("offers", "--need", "payment=card", "--gpu", "h100"),
)


def typed(text):
    """The changes of a screen, in order: with or without, and flags with their values."""
    for how, flags in re.findall(r"; in (with|without) (--.+?)(?= \d+ (?!instead)[a-z]| Prices as of|$)", text):
        words = shlex.split(flags.partition(" instead of ")[0])
        yield (
            how,
            [(word, words[i + 1] if i + 1 < len(words) else "") for i, word in enumerate(words) if word[:2] == "--"],
        )


def changed(args, how, flags):
    """``args`` with flags set or dropped."""
    pairs = list(zip(args[1::2], args[2::2], strict=True))
    for flag, value in flags:
        if flag == "--history":
            return (*args, "--history")
        pairs = [(f, v) for f, v in pairs if f != flag or (how == "without" and flag == "--require" and v != value)]
        pairs += [(flag, value)] if how == "with" else []
    return ("offers", *(part for pair in pairs for part in pair))


@pytest.mark.parametrize("args", ASKED, ids=" ".join)
def test_each_change_brings_its_offer_in_as_it_is_typed(args):
    document = answer(*args, "--json").document
    groups = [g for g in document["left_out"] if g["nearest"] and g["change"]]
    said = list(typed(" ".join(answer(*args).out.split())))
    assert len(said) == len(groups) > 0
    for group, (how, flags) in zip(groups, said, strict=True):
        found = answer(*changed(args, how, flags), "--json", "--top", "1000")
        listed = {offer["offer_id"] for offer in found.document["offers"]}
        assert group["nearest"]["offer_id"] in listed, (how, flags)


def test_a_day_before_all_prices_has_nothing_that_was_left_out():
    for verb, text in (("offers", "No offer: no price"), ("plan", "No plan: no price")):
        extra = ("examples/lora-7b.toml",) if verb == "plan" else ()
        found = run(verb, *extra, "--as-of", "2001-01-01")
        assert found.code == 3
        assert f"{text} is known that was seen by 2001-01-01." in " ".join(found.out.split())


def test_a_from_price_is_explained_where_one_is_listed():
    said = "from price: the lowest of several"
    assert said in " ".join(answer("offers", "--gpu", "rtx3090", "--market", "on_demand").out.split())
    assert said not in " ".join(answer("offers", "--gpu", "a40", "--provider", "cudo").out.split())
