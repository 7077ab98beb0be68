"""Flags on which an answer does not depend are told; and it really does not depend on them."""

from datetime import date

import msgspec
import pytest

from rackrate import api
from rackrate.app.asking import BESIDE_THE_WORK
from rackrate.app.fitting import NOT_USED
from rackrate.app.speeds import CHOOSE_CARDS
from rackrate.problems import Refused

AT = date(2026, 11, 30)
JOBS = {
    "lora": {"model": "meta-llama/Llama-2-7b-hf", "task": "lora"},
    "chat": {"model": "meta-llama/Llama-2-13b-hf", "task": "inference", "serving": {"concurrency": 8}},
    "batch": {
        "model": "meta-llama/Llama-2-13b-hf",
        "task": "inference",
        "serving": {"mode": "offline", "requests": 1000},
    },
}
VALUES = {
    "use.hours_per_day": "3",
    "use.horizon_days": "11",
    "use.starts": "3",
    "use.disk": "300 GB",
    "use.data_in": "700 GB",
    "use.data_out": "900 GB",
    "use.keep_disk_days": "5",
    "limits.deadline": "0.2 h",
    "limits.budget": "2 USD",
    "limits.max_gpus": "1",
    "limits.regions": ["eu"],
    "limits.providers": ["aws"],
    "limits.exclude_providers": ["aws"],
    "limits.markets": ["spot"],
    "limits.interruptible": True,
    "limits.require": ["fp8_compute"],
    "limits.vendors": ["AMD"],
    "limits.access": ["payment=card"],
    "serving.hosted": "gpt-4o",
    "training.checkpoint_every": 100,
    "training.evaluate_every": 100,
}
CARD = {"limits.gpus": ["a100-sxm4-80"]}


def answer(ask, job, flags):
    """The document without what repeats the question, and the codes and subjects of its warnings."""
    document = msgspec.to_builtins(ask(job, flags, at=AT))
    told = {(w["code"], w["subject"]) for w in document["warnings"]}
    return {k: v for k, v in document.items() if k not in {"workload", "warnings", "assumptions"}}, told


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(("ask", "unused"), [(api.fit, NOT_USED), (api.speed, (*BESIDE_THE_WORK, *CHOOSE_CARDS))])
def test_what_is_told_to_be_unused_changes_nothing_and_all_else_is_used(job, ask, unused):
    plain, told = answer(ask, JOBS[job], CARD)
    assert not any(code == "not_used" for code, _ in told)
    for path, value in VALUES.items():
        try:
            found, told = answer(ask, JOBS[job], CARD | {path: value})
        except Refused:  # of another kind of work
            continue
        flags = [subject for code, subject in told if code == "not_used"]
        assert bool(flags) is (path in unused)
        assert (found == plain) is (path in unused), path


def test_limits_choose_among_the_usual_cards():
    _, told = answer(api.speed, JOBS["chat"], {"limits.vendors": ["AMD"], "limits.regions": ["eu"]})
    assert [subject for code, subject in told if code == "not_used"] == ["--region"]


def test_a_file_that_all_verbs_share_is_not_told_off():
    job = JOBS["lora"] | {"limits": {"gpus": ["a40"], "budget": "9 USD", "regions": ["eu"]}}
    assert "not_used" not in {code for code, _ in answer(api.fit, job, {})[1]}


@pytest.mark.parametrize(
    ("text", "card"),
    [
        ("a100 1g.10gb", "a100-pcie-40 (or a100-pcie-80, a100-sxm4-40, a100-sxm4-80)"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "a100-sxm4-80;"),
        ("h100-sxm5-80 1g.10gb+me", "h100-sxm5-80;"),
    ],
)
@pytest.mark.parametrize("ask", [api.fit, api.plan, api.speed])
def test_a_slice_is_never_taken_for_the_whole_card(ask, text, card):
    with pytest.raises(Refused) as refused:
        ask(JOBS["chat"], {"limits.gpus": [text]}, at=AT)
    (problem,) = refused.value.findings
    assert "is a slice of one" in problem.expected
    assert f"name the card, {card}" in problem.action


def test_a_slice_of_nothing_known_is_an_unknown_name():
    with pytest.raises(Refused) as refused:
        api.fit(JOBS["chat"], {"limits.gpus": ["foo 1g.5gb"]}, at=AT)
    assert [f.code for f in refused.value.findings] == ["unknown_name"]
