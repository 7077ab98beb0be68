"""``facts``: every source of a number and why it counts, what is known, what is wrong, where own facts are."""

import csv
import io
import os
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.cli.ask import DAY, FACTS, ROOT, answer, name_of, run

from rackrate.cli.words import STEPS
from rackrate.facts.explain import Step

EXAMPLE = "examples/own-facts"
SHOWN = [args for args in FACTS if args[1] == "show"]


def rows(args):
    """The rows of the CSV form."""
    return list(csv.DictReader(io.StringIO(answer(*args, "--csv").out)))


def told(*args, **env):
    """The screen in one line, with facts of one's own or not."""
    return " ".join(run("facts", *args, "--as-of", DAY, env=env).out.split())


def plain(value):
    return str(value).lower() if isinstance(value, bool) else value


@pytest.mark.parametrize("args", SHOWN, ids=name_of)
def test_the_sources_are_the_same_in_all_forms(args):
    facts = answer(*args, "--json").document["facts"]
    assert facts
    assert rows(args) == [{key: plain(value) for key, value in fact.items()} for fact in facts]
    assert len(answer(*args, "--md").out.splitlines()) == len(facts) + 2
    screen = " ".join(answer(*args).out.split())
    for fact in facts:
        assert fact["quantity"] in screen
        assert fact["value"].split(", ")[0] in screen
    assert {"".join(fact["source"].split()) for fact in facts} <= sources("".join(answer(*args).out.split()), facts)


def sources(squeezed, facts):
    found = {"".join(fact["source"].split()) for fact in facts}
    return {source for source in found if source in squeezed}


@pytest.mark.parametrize("args", SHOWN, ids=name_of)
def test_of_each_quantity_at_most_one_row_counts(args):
    found = answer(*args, "--json").document["facts"]
    by_state = args[2] == "AutoDL"  # a rule of another state, and a column of providers.csv, are other things
    for quantity, state in {(f["quantity"], f["condition"] if by_state else "") for f in found}:
        same = [f for f in found if f["quantity"] == quantity and (not by_state or f["condition"] == state)]
        assert [f["used"] for f in same].count(True) == 1, quantity
        assert same[0]["used"]
        assert (same[0]["step"] in {"only", "ruled"}) == (len(same) == 1)


def test_every_step_has_words():
    assert set(STEPS) == set(Step)


def test_losing_rows_say_why():
    facts = answer("facts", "show", "a100-sxm4-80", "power_limit", "--json").document["facts"]
    assert len(facts) > 2
    assert {fact["quantity"] for fact in facts} == {"power_limit"}
    steps = {fact["step"] for fact in facts if not fact["used"]}
    assert steps <= {"condition", "kind", "newest", "order"}
    assert told("show", "a100-sxm4-80", "power_limit").count(" no: ") == len(facts) - 1


def test_a_quantity_has_two_names():
    one, other = (
        run("facts", "show", "a40", name, "--json").document["facts"] for name in ("bandwidth", "bandwidth_bytes_per_s")
    )
    assert one == other


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("NVIDIA A40", "card", "a40"),
        ("A100 PCIe 40GB", "card", "a100-pcie-40"),
        ("trt-llm", "engine", "tensorrt-llm"),
        ("VLLM", "engine", "vllm"),
        ("Llama-2-7b", "model", "meta-llama/Llama-2-7b-hf"),
        ("NF4", "format", "nf4"),
        ("AWS", "provider", "aws"),
        ("九章云极 AladdinEdu", "provider", "AladdinEdu"),
    ],
)
def test_names_are_understood(name, kind, found):
    document = run("facts", "show", name, "--json").document
    assert (document["kind"], document["id"]) == (kind, found)


def test_what_is_derived_by_rule_says_so():
    facts = [run("facts", "show", card, "memory_total", "--json").document["facts"] for card in ("a40", "p4")]
    assert [f[0]["step"] for f in facts] == ["only", "ruled"]
    assert "rule " in facts[1][0]["source"]


def test_a_provider_shows_what_it_asks_of_a_renter():
    text = told("show", "runpod")
    assert "payment_methods card|crypto" in text
    assert "stock_signal api" in text


# ---------------------------------------------------------------- own facts


def test_an_own_number_is_shown_over_the_bundled_one():
    text = told("show", "a40", "bandwidth", RACKRATE_FACTS=EXAMPLE)
    assert "bandwidth 651 GB/s measured yes: your own goes before [1]" in text
    assert "bandwidth 695.8 GB/s published no: your own goes before it [2]" in text
    assert "[1] own: our copy test" in text


def test_a_record_replaced_by_an_own_one_is_shown(tmp_path):
    (tmp_path / "formats.csv").write_text("id,bits_per_weight\nnf4,4.25\n", "utf-8")
    found = run("facts", "show", "nf4", "bits_per_weight", "--json", env={"RACKRATE_FACTS": str(tmp_path)}).document
    assert [(f["value"], f["used"], f["own"], f["step"]) for f in found["facts"]] == [
        ("4.25", True, True, "record"),
        ("4.5", False, False, "record"),
    ]


def test_an_own_engine_is_shown_over_the_bundled_one(tmp_path):
    text = (ROOT / "src/rackrate/facts/data/engines/vllm.toml").read_text("utf-8")
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines/vllm.toml").write_text(text.replace("memory_share = 0.92", "memory_share = 0.5"), "utf-8")
    found = run("facts", "show", "vllm", "serving.memory_share", "--json", env={"RACKRATE_FACTS": str(tmp_path)})
    assert [(f["value"], f["used"]) for f in found.document["facts"]] == [("0.5", True), ("0.92", False)]


def test_a_seller_that_only_own_prices_name_is_a_provider():
    found = run("facts", "show", "our cellar", "--json", env={"RACKRATE_FACTS": EXAMPLE}).document
    assert found["kind"] == "provider"
    assert "price of node 1" in {fact["quantity"] for fact in found["facts"]}
    assert all(fact["own"] for fact in found["facts"])


def test_lists_mark_what_is_own():
    env = {"RACKRATE_FACTS": EXAMPLE}
    kinds = {k["kind"]: k["own"] for k in run("facts", "list", "--json", env=env).document["kinds"]}
    assert kinds == {"cards": 2, "models": 1, "engines": 0, "formats": 0, "providers": 4}
    items = run("facts", "list", "cards", "--json", env=env).document["items"]
    assert [item["id"] for item in items if item["own"]] == ["a40", "rtx4080super-32-mod"]
    assert told("list", "models", RACKRATE_FACTS=EXAMPLE).count(" own ") == 1


def test_completion_knows_own_ids():
    line = "rackrate facts show rtx4080super-"
    env = {"COMP_WORDS": line, "COMP_CWORD": "3", "_RACKRATE_COMPLETE": "bash_complete", "RACKRATE_FACTS": EXAMPLE}
    assert "rtx4080super-32-mod" in run(env=env).out


def test_the_list_is_the_same_in_all_forms():
    items = answer("facts", "list", "providers", "--json").document["items"]
    assert [(row["id"], row["title"]) for row in rows(("facts", "list", "providers"))] == [
        (i["id"], i["title"]) for i in items
    ]
    assert [i["id"] for i in items] == sorted(i["id"] for i in items)
    screen = answer("facts", "list", "providers").out
    assert all(item["id"] in screen for item in items)


# ---------------------------------------------------------------- check


@pytest.fixture
def broken(tmp_path):
    """A folder with one good row and two bad ones."""
    rows = "mybox,a,a40,1,1.2,USD,hour,2026-11-01\nmybox,b,a41,1,1,USD,hour,2026-11-01\nmybox,c,a40,1,0,USD,hour,2026-11-01"
    (tmp_path / "offers.csv").write_text(f"provider,name,card,gpus,price,currency,term,observed_on\n{rows}\n", "utf-8")
    return str(tmp_path)


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",), ("--md",)], ids=name_of)
def test_problems_are_the_answer_and_exit_with_2(broken, form):
    ended = run("facts", "check", broken, "--as-of", DAY, *form)
    assert (ended.code, ended.err) == (2, "")
    squeezed = " ".join(ended.out.split())
    for word in ("offers.csv:3 card", "a41", "a40", "offers.csv:4 price", "what an hour of it costs you"):
        assert word in squeezed
    assert not form or "2 problems" not in squeezed


def test_the_screen_of_a_check_counts(broken):
    lines = run("facts", "check", broken, "--as-of", DAY).out.splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    assert "2 problems in the bundled files and" in " ".join(lines)
    offers = next(line.split() for line in lines if line.startswith("offers.csv  "))
    assert offers[2:] == ["1", "2"]


def test_a_folder_that_is_not_there_is_a_problem():
    ended = run("facts", "check", "no/such/folder", "--json")
    assert ended.code == 2
    assert [p["code"] for p in ended.document["problems"]] == ["file_unreadable"]


def test_a_folder_given_is_checked_instead_of_those_that_are_read(broken):
    env = {"RACKRATE_FACTS": broken}
    assert run("facts", "check", env=env).code == 2
    assert run("facts", "check", EXAMPLE, env=env).code == 0


def test_the_example_has_no_problem_and_its_prices_are_told():
    found = answer("facts", "check", EXAMPLE, "--json").document
    assert found["folders"] == [EXAMPLE]
    assert [price["standing"] for price in found["prices"]] == ["replaces", "stands", "stands", "stands"]


# ---------------------------------------------------------------- path and warnings


def test_paths(tmp_path):
    folders = os.pathsep.join([EXAMPLE, str(tmp_path / "none")])
    ended = run("facts", "path", "--json", env={"RACKRATE_FACTS": folders, "XDG_CONFIG_HOME": str(tmp_path)})
    mine, none, usual = ended.document["folders"]
    assert (mine["folder"], mine["named_by"], mine["read"]) == (EXAMPLE, "RACKRATE_FACTS", True)
    assert mine["files"] == sorted(path.name for path in Path(ROOT, EXAMPLE).glob("*.csv"))
    assert (none["exists"], none["read"], none["files"]) == (False, False, [])
    assert (usual["named_by"], usual["read"]) == ("default", False)
    text = told("path", RACKRATE_FACTS=folders)
    assert f"{EXAMPLE} named by RACKRATE_FACTS; read: accelerator_facts.csv, " in text


def test_a_plan_marks_own_prices_and_warns_of_rows_left_out(broken):
    env = {"RACKRATE_FACTS": broken}
    text = " ".join(run("plan", "examples/lora-7b.toml", "--provider", "mybox", "--as-of", DAY, env=env).out.split())
    assert "a40 1 mybox (own) on demand" in text
    assert "days ago; your own price" in text
    assert (
        "! overlay row ignored: offers.csv:3 card: unknown name a41 (expected a known card); offers.csv:4 price: "
        in text
    )
    assert "`rackrate facts check` says what to do about each" in text


def test_the_rows_of_a_plan_name_their_source(broken):
    ended = run("plan", "examples/lora-7b.toml", "--provider", "mybox", "--csv", env={"RACKRATE_FACTS": broken})
    assert [row["price_source"] for row in csv.DictReader(io.StringIO(ended.out))] == ["own"]


def test_the_same_folder_gives_the_same_answer():
    args = ("plan", "examples/lora-7b.toml", "--json", "--as-of", DAY)
    env = {"RACKRATE_FACTS": EXAMPLE}
    first = run(*args, env=env)
    assert first == run(*args, env=env)
    assert first.document["facts_digest"] != run(*args).document["facts_digest"]
