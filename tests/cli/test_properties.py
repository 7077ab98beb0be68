"""Whatever comes in, the command line answers or says what is wrong: it never breaks, and never says nothing."""

import json
import re
import string
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.ask import DAY, EXAMPLES, ROOT, run

from rackrate.workload.keys import KEYS, flag_keys

TABLES = [
    json.loads((ROOT / name).read_text("utf-8"))
    if name.endswith(".json")
    else tomllib.loads((ROOT / name).read_text("utf-8"))
    for name in EXAMPLES
]

numbers = st.sampled_from(
    [0, -1, 1, 3, 0.5, 1e-9, 1e15, 10**30, 10**400, float("inf"), float("-inf"), float("nan"), True]
)
texts = st.sampled_from(
    ["", " ", "a", "\x00", "\x1b[31m", "𝟙", "算力", "é" * 500, "1e999", "nan", "30M", "5 USD", "-3 h", "\ud800"]
) | (st.text(max_size=12))
junk = st.recursive(
    numbers | texts | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def examples(number):
    """A budget for a property: each example is a run of a verb."""
    return settings(
        max_examples=number, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    )


def answered(ended):
    """The command ended as it should: an answer, or what is wrong, where and what to do."""
    assert ended.code in {0, 2, 3}
    assert "Traceback" not in ended.err
    if ended.code != 2:
        assert ended.out
        return
    assert ended.err
    blocks = re.findall(r"^(error|warning): \S.*?: \w[\w ]*(?:; .*)?\n  next: \S.*$", ended.err, re.MULTILINE)
    assert len(blocks) * 2 == len(ended.err.splitlines()), ended.err
    assert "error" in blocks
    assert all(ord(character) >= 32 or character == "\n" for character in ended.err)


def finite(ended):
    """Whether all numbers of the document are finite: reading NaN or Infinity raises."""
    return ended.document is not None


@st.composite
def mutated(draw):
    """An example with a few of its keys gone, renamed or holding something else."""
    table = json.loads(json.dumps(draw(st.sampled_from(TABLES))))
    for _ in range(draw(st.integers(1, 3))):
        sections = [table, *(value for value in table.values() if isinstance(value, dict))]
        section = draw(st.sampled_from(sections))
        if not section:
            continue
        key = draw(st.sampled_from(sorted(section)))
        how = draw(st.sampled_from(["drop", "replace", "rename", "add", "scale"]))
        if how == "drop":
            del section[key]
        elif how == "replace":
            section[key] = draw(junk)
        elif how == "rename":
            section[draw(texts)] = section.pop(key)
        elif how == "add":
            name = draw(st.sampled_from(sorted(KEYS)))
            section[name.rpartition(".")[2]] = draw(junk)
        elif isinstance(section[key], int | float):
            section[key] *= draw(st.sampled_from([0, -1, 1e-6, 1e6, 10**12]))
    return table


@examples(60)
@given(
    table=mutated(),
    verb=st.sampled_from(
        [("plan",), ("plan", "--json"), ("fit", "--gpu", "a40", "--json"), ("speed", "--gpu", "a40", "--json")]
    ),
)
def test_mutated_examples(table, verb, tmp_path):
    path = tmp_path / "job.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    ended = run(verb[0], path, *verb[1:], "--as-of", DAY)
    answered(ended)
    if "--json" in verb:
        assert finite(ended)


@examples(30)
@given(
    name=st.sampled_from(EXAMPLES),
    cut=st.tuples(st.integers(0, 400), st.integers(0, 40)),
    put=st.sampled_from(
        ["", "[", "]]", '"', "=", "{", "\x00", "\\", "nan", "'''", "[training]\n", "\ufeff", "1e400", "、"]
    ),
)
def test_broken_files(name, cut, put, tmp_path):
    text = (ROOT / name).read_text("utf-8")
    path = tmp_path / f"job{name[-5:]}"
    path.write_text(text[: cut[0]] + put + text[cut[0] + cut[1] :], encoding="utf-8")
    answered(run("plan", path, "--as-of", DAY))


@examples(20)
@given(raw=st.binary(max_size=60), ending=st.sampled_from([".toml", ".json", "", ".yaml"]))
def test_binary_files(raw, ending, tmp_path):
    path = tmp_path / f"job{ending}"
    path.write_bytes(raw)
    ended = run("plan", path, "--json")
    answered(ended)
    assert ended.code == 2
    assert ended.document["problems"]


FLAGS = [name for key in flag_keys() for name in (key.flag, *key.flag_aliases)]
KNOWN = ["a40", "a100", "vllm", "bf16", "fp8", "meta-llama/Llama-2-7b-hf", "lora", "inference", "1", "8", "2048", "30M"]
OTHERS = [
    ["--as-of", "0001-01-01"],
    ["--as-of", "9999-12-31"],
    ["--as-of", "x"],
    ["--top", "1"],
    ["--top", "x"],
    ["--rank-by", "both"],
]
values = st.sampled_from(KNOWN) | numbers.map(str) | st.text(string.printable, max_size=8)
flags = st.lists(
    st.tuples(st.sampled_from(FLAGS), values).map(list)
    | st.sampled_from(FLAGS).map(lambda flag: [flag])
    | st.sampled_from(OTHERS),
    max_size=4,
)


@examples(60)
@given(
    said=flags,
    verb=st.sampled_from(["plan", "fit", "speed"]),
    form=st.sampled_from([[], ["--json"], ["--csv"], ["--md"]]),
)
def test_random_flags(said, verb, form):
    words = [word for flag in said for word in flag]
    ended = run(verb, "examples/lora-7b.toml", *words, *form)
    if "--help" not in words and "-h" not in words:
        answered(ended)
    if form == ["--json"]:
        assert finite(ended)


@examples(15)
@given(
    words=st.lists(
        st.sampled_from(["gpu", "a40", "--json", "--csv", "--currency", "EUR", "rtx", ""]) | texts, max_size=4
    )
)
def test_random_words(words):
    ended = run(*words)
    if ended.code == 0 and not ended.out.startswith("Usage"):
        assert ended.out
    elif ended.code != 0:
        answered(ended)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "0", '"text"', "[" * 5000, "{" * 5000, '{"a":' * 3000, "9" * 5000, "\n" * 9]
)
@pytest.mark.parametrize("ending", [".toml", ".json"])
def test_odd_documents(text, ending, tmp_path):
    path = tmp_path / f"job{ending}"
    path.write_text(text, encoding="utf-8")
    ended = run("plan", path, "--json")
    answered(ended)
    assert ended.code == 2
    assert all(problem["action"] for problem in ended.document["problems"])


@pytest.mark.parametrize(
    "name", ["", ".", "/", "no/such/file.toml", "a\x00b", "x" * 5000, "examples", "~", "-x", "é.toml"]
)
def test_odd_paths(name):
    ended = run("plan", "--", name)
    answered(ended)
    assert ended.code == 2


def test_a_file_from_standard_input():
    ended = run("plan", "-", "--json", stdin=(ROOT / EXAMPLES[2]).read_text("utf-8"))
    assert ended.code == 0
    assert ended.document["plans"]


def test_a_near_miss_is_named():
    assert "did you mean examples/lora-7b.toml" in run("plan", "examples/lora-7.toml").err
    assert "did you mean plan?" in run("plans").err
    assert "did you mean --gpu" in run("plan", "--gpuu", "a40").err
    assert "a100-pcie-40" in run("gpu", "a100-pcie-4").err
    assert "meta-llama/Llama-2-7b-hf" in run("plan", "--model", "Llama-2-7b-h").err
