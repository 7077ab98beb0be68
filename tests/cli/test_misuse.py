"""A command line that is wrong: what is missing and what is bad are told apart, by the flag that they are about."""

import json

import pytest
from tests.cli.ask import run


@pytest.mark.parametrize(
    ("args", "code", "subject"),
    [
        (("plan", "--model"), "missing_value", "--model"),
        (("facts", "show"), "missing_value", "name"),
        (("plan", "--top", "many"), "bad_value", "--top"),
        (("plan", "--as-of", "soon"), "bad_value", "--as-of"),
        (("plan", "--modle", "x"), "unknown_key", "--modle"),
        (("plan", "--model", "m", "one", "two"), "bad_syntax", "rackrate plan"),
    ],
)
def test_misuse_has_a_code_of_its_own(args, code, subject):
    ended = run(*args, "--json") if args != ("plan", "--model") else run("plan", "--json", "--model")
    assert ended.code == 2
    (problem,) = json.loads(ended.out)["problems"]
    assert problem["code"] == code
    assert problem["subject"] == subject
    assert problem["action"]
