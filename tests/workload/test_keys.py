"""The key table is sound, and the reference says all of it."""

import tomllib

import pytest

from rackrate.problems import Finding
from rackrate.workload.draft import similar_keys
from rackrate.workload.keys import KEYS, SECTIONS, flag_keys, shorthand_of
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.reasons import REASONS
from rackrate.workload.reference import EXAMPLE, workload_reference
from rackrate.workload.request import request_from_table
from rackrate.workload.requirements import PROPERTIES
from rackrate.workload.values import read_value

PROMISED = "--model --task --gpu --gpus --engine --batch --context --concurrency --tokens --precision --quantization --deadline --budget"


def test_the_promised_flags_exist():
    assert set(PROMISED.split()) <= {key.flag for key in flag_keys()}


def test_no_flag_means_two_keys():
    names = [name for key in flag_keys() for name in (key.flag, *key.flag_aliases)]
    assert len(names) == len(set(names))
    assert all(name.startswith("--") and name == name.lower() for name in names)


def test_every_key_can_be_said_by_a_flag():
    assert all(key.flag or shorthand_of(key.path) for key in KEYS.values())


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.path)
def test_a_key_is_complete(key):
    section, _, name = key.path.rpartition(".")
    assert section in {"", *SECTIONS}
    assert name
    assert key.help.endswith(".")
    assert key.low <= key.high
    assert not (key.rule and key.default is not None)
    assert (key.default is None) == (not key.why)
    assert not key.why or key.why in REASONS
    if key.default is not None:
        assert not isinstance(read_value(key, key.default, "here"), Finding)
    if key.example:
        assert not isinstance(read_value(key, key.example, "here"), Finding)
    assert key.metavar


def test_no_two_keys_share_their_last_name_but_the_two_of_context():
    names = [path.rpartition(".")[2] for path in KEYS]
    assert {name for name in names if names.count(name) > 1} == {"context"}
    assert similar_keys("training.context") == ["context", "parallel.context"]
    assert similar_keys("parallel.contxt")[0] == "parallel.context"


def test_a_shorthand_stands_for_keys():
    shorthands = [key for key in KEYS.values() if key.stands_for]
    assert [key.path for key in shorthands] == ["batch", "context"]
    assert all(target in KEYS for key in shorthands for target in key.stands_for if target)


def test_names_of_other_tools_lead_to_the_key():
    for key in KEYS.values():
        for name in key.known_as:
            assert key.path in similar_keys(name), name


def test_no_name_of_another_tool_is_a_key():
    assert not {name for key in KEYS.values() for name in key.known_as} & {k for k in KEYS if "." not in k}


def test_the_reference_says_every_key_flag_property_and_reason():
    page = workload_reference()
    for key in KEYS.values():
        assert f"`{key.path.rpartition('.')[2]}`" in page
        assert not key.flag or f"`{key.flag}`" in page
    assert all(name in page for name in (*PROPERTIES, *REASONS))


def test_the_example_of_the_reference_parses(book):
    parsed = parse(request_from_table(tomllib.loads(EXAMPLE)), book)
    assert isinstance(parsed, Parsed)
    assert parsed.workload.training.tokens == 50_000 * 3 * 512
