"""Hosted APIs on the screens and in the tables of ``plan`` and ``model``."""

import csv
import io
import re

import pytest
from tests.cli.ask import answer, run

SERVICE = ("plan", "examples/serve-13b.toml")
BATCH = ("plan", "examples/batch-70b.json")
UNSOLD = ("plan", "--model", "Qwen/Qwen2.5-14B-Instruct", "--task", "inference", "--top", "2")
DEAR = ("plan", "--model", "meta-llama/Llama-2-70b-hf", "--task", "inference", "--gpu", "h100-sxm5-80", "--hosted")
LISTED = ("model", "meta-llama/Llama-3.3-70B-Instruct")


def text_of(args):
    return " ".join(answer(*args).out.split())


def test_a_service_is_shown_beside_apis():
    text, hosted = text_of(SERVICE), answer(*SERVICE, "--json").document["hosted"]
    assert "Hosted APIs for meta-llama/Llama-2-13b-hf, " in text
    assert "requests in 30.0 days, as many as the first plan answers with 8 in flight" in text
    assert re.search(r"openrouter meta-llama/llama- 0\.22 0\.22 [\d.]+ \([\d.]+ to [\d.]+M", text)
    assert "~ the same model, otherwise tuned" in text
    span = r"[\d.]+M \([\d.]+M to [\d.]+M\)"  # each day starts up, and how long that takes is not certain
    assert re.search(rf"cheaper than openrouter from {span} tokens a day on, in and out; it carries {span}", text)
    assert hosted["plans"][0]["break_even"]["carried"] == "yes"


def test_a_job_is_shown_beside_apis():
    text = text_of(BATCH)
    assert "Hosted APIs for meta-llama/Llama-3.3-70B-Instruct, 100k requests:" in text
    assert re.search(r"\d+ more: --json, under hosted\.", text)


def test_a_model_without_a_price_says_so_and_names_others():
    text = text_of(UNSOLD)
    assert "No hosted price known for Qwen/Qwen2.5-14B-Instruct. Other models of the family and size, in USD" in text
    assert "Qwen/Qwen3-14B at " in text


def test_a_plan_that_never_pays_says_so():
    text, document = text_of((*DEAR, "gpt-oss-20b")), answer(*DEAR, "gpt-oss-20b", "--json").document
    assert document["hosted"]["plans"][0]["break_even"]["carried"] == "no"
    assert "never on this" in text
    assert re.search(r"Renting the first plan is never cheaper than \S+: its price buys [\d.]+[MB] tokens a day", text)


def test_no_hosted_leaves_it_out():
    args = (*SERVICE, "--no-hosted")
    assert answer(*args, "--json").document["hosted"] is None
    assert "Hosted APIs" not in text_of(args)
    assert "No hosted price" not in text_of(args)


def test_another_hosted_model_is_chosen():
    hosted = answer(*SERVICE, "--hosted", "gpt-4o-mini", "--json").document["hosted"]
    assert (hosted["model"], hosted["chosen"]) == ("gpt-4o-mini", True)
    assert {one["price"]["match"] for one in hosted["prices"]} == {"chosen"}
    assert "openai" in {one["price"]["provider"] for one in hosted["prices"]}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ((*SERVICE, "--hosted", "gpt-4o-mni"), "did you mean .*gpt-4o-mini"),
        (("plan", "examples/lora-7b.toml", "--hosted", "gpt-4o-mini"), "leave it out, or choose task inference"),
    ],
)
def test_refused(args, says):
    ended = run(*args)
    assert ended.code == 2
    assert re.search(says, " ".join(ended.err.split()))


@pytest.mark.parametrize("args", [SERVICE, BATCH, UNSOLD, (*DEAR, "gpt-oss-20b")])
def test_every_row_has_the_break_even_of_its_plan(args):
    document = answer(*args, "--json").document
    hosted = document["hosted"]
    evens = {one["offer_id"]: one["break_even"] for one in hosted["plans"]}
    rows = list(csv.DictReader(io.StringIO(answer(*args, "--csv").out)))
    assert len(rows) == len(document["plans"]) > 0
    for row, plan in zip(rows, document["plans"], strict=True):
        even = evens.get(plan["offer_id"])
        if even is None:
            assert (row["hosted_compared"], row["break_even_tokens_per_day"], row["break_even_carried"]) == ("", "", "")
            continue
        assert row["hosted_compared"] == hosted["compared"]
        assert row["hosted_cost"] == hosted["prices"][0]["cost"]["likely"]
        assert row["break_even_tokens_per_day"] == f"{even['tokens_per_day']['likely']:.0f}"
        assert row["capacity_tokens_per_day"] == f"{even['capacity_tokens_per_day']['likely']:.0f}"
        assert row["break_even_carried"] == even["carried"]


def test_a_model_lists_what_apis_charge():
    text, hosted = text_of(LISTED), answer(*LISTED, "--json").document["models"][0]["hosted"]
    assert "hosted by" in text
    assert f"{len(hosted) - 8} more: --json, under hosted." in text
    rows = list(csv.DictReader(io.StringIO(answer(*LISTED, "--csv").out)))
    shown = {row["of"]: row["value"] for row in rows if row["figure"] == "hosted_input_per_million_USD"}
    assert shown == {f"{one['provider']}:{one['model']}": one["input_per_million"]["likely"] for one in hosted}


def test_hosted_models_complete():
    env = {"COMP_WORDS": "rackrate plan --hosted gpt-4o-m", "COMP_CWORD": "3"}
    offered = run(env={"_RACKRATE_COMPLETE": "bash_complete", **env}).out.splitlines()
    assert "plain,gpt-4o-mini" in offered
