"""Exit codes for scripts: 0 it is found or fits, 3 it is not, 2 the question could not be understood."""

import pytest
from tests.cli.ask import (
    CARDS,
    FACTS,
    FITS,
    MODEL,
    MODELS,
    NO_FITS,
    NO_OFFERS,
    NO_PLANS,
    NO_SPEEDS,
    OFFERS,
    PLANS,
    REFUSED,
    SPEEDS,
    answer,
    name_of,
    run,
)

FORMS = [(), ("--json",), ("--csv",), ("--md",)]


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("args", [*PLANS, *FITS, *CARDS, *MODELS, *FACTS, *OFFERS, *SPEEDS], ids=name_of)
def test_an_answer_is_0(args, form):
    assert answer(*args, *form).code == 0
    assert answer(*args, *form).err == ""


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("args", [*NO_PLANS, *NO_FITS, *NO_OFFERS, *NO_SPEEDS], ids=name_of)
def test_no_is_3(args, form):
    assert answer(*args, *form).code == 3
    assert answer(*args, *form).out


def test_tight_is_0():
    """Somewhere between what fits and what does not, only the likely value fits."""
    verdicts = []
    for context in range(1024, 16384, 256):
        ended = run("fit", *MODEL, "--task", "lora", "--gpu", "rtx4090", "--context", context, "--json")
        verdicts.append(ended.document["verdict"])
        assert ended.code == (3 if verdicts[-1] == "does_not_fit" else 0)
    assert list(dict.fromkeys(verdicts)) == ["fits", "tight", "does_not_fit"]


@pytest.mark.parametrize("form", [("--csv",), ("--md",)], ids=name_of)
def test_a_table_without_plans_says_so_beside_it(form):
    for args, word in ((NO_PLANS[0], "plan"), (NO_OFFERS[0], "offer")):
        ended = answer(*args, *form)
        assert len(ended.out.splitlines()) == (1 if form == ("--csv",) else 2)
        assert ended.err.startswith(f"no {word}: ")


@pytest.mark.parametrize("form", FORMS, ids=name_of)
@pytest.mark.parametrize("args", REFUSED, ids=name_of)
def test_bad_input_is_2(args, form):
    ended = run(*args, *form)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert bool(ended.out) == (form == ("--json",))


@pytest.mark.parametrize(
    "args", [("--version",), ("--help",), (), ("plan", "--help"), ("completion", "bash")], ids=name_of
)
def test_help_is_0(args):
    ended = run(*args)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out


def test_the_last_form_wins():
    assert run(*FITS[0], "--json", "--csv").out == run(*FITS[0], "--csv").out
