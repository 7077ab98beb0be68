"""Reading workload files: whatever is in them, the answer is a request or a finding."""

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.app.reading import parse_text, read_file, read_request
from rackrate.facts.bundled import load
from rackrate.problems import Code, Finding
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import Request

TOML = """
# a comment
model = "m"

[training]  # another
micro_batch = 4
"lora_rank" = 8
rows = "50k"

[limits]
gpus = [
  "a40",
]
"""


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_toml_with_the_line_of_each_key(tmp_path):
    name = write(tmp_path / "job.toml", TOML)
    request = read_file(name)
    assert request.values == {
        "model": "m", "training.micro_batch": 4, "training.lora_rank": 8, "training.rows": "50k", "limits.gpus": ["a40"],
    }  # fmt: skip
    lines = {path: origin.removeprefix(name) for path, origin in request.origins.items()}
    assert lines == {
        "model": ":3",
        "training.micro_batch": ":6",
        "training.lora_rank": ":5",
        "training.rows": ":8",
        "limits.gpus": ":11",
    }  # fmt: skip - a quoted key is found by its section


def test_json_with_the_line_of_each_key(tmp_path):
    table = {"model": "m", "training": {"micro_batch": 4}}
    request = read_file(write(tmp_path / "job.json", json.dumps(table, indent=1)))
    assert request.values == {"model": "m", "training.micro_batch": 4}
    assert request.origin("model").endswith("job.json:2")
    assert request.origin("training.micro_batch").endswith("job.json:4")


def test_a_line_that_is_not_sure_is_not_named():
    text = '''note = """
model = "x"
"""
model = "m"
'''
    request = parse_text(text, "job.toml", json=False)
    assert request.origin("model") == "job.toml"
    request = parse_text('{"rows": 1,\n"training": {\n"rows": 2}}', "job.json", json=True)
    assert request.origin("rows") == "job.json"
    assert request.origin("training.rows") == "job.json:2"


def test_flags_win_over_the_file(tmp_path):
    name = write(tmp_path / "job.toml", TOML)
    request = read_request(name, {"training.micro_batch": "8", "task": None, "limits.gpus": ()})
    assert request.values["training.micro_batch"] == "8"
    assert request.values["limits.gpus"] == ["a40"]
    assert request.by_flag("training.micro_batch")
    assert not request.by_flag("model")
    assert "task" not in request.values
    assert read_request(None, {"model": "m"}).values == {"model": "m"}


def test_standard_input(monkeypatch):
    for text in ('model = "m"', '{"model": "m"}'):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        request = read_request("-", {})
        assert request.values == {"model": "m"}
        assert request.origin("model") == "standard input:1"


def test_a_file_without_a_telling_name_is_told_by_its_first_letter(tmp_path):
    assert read_file(write(tmp_path / "job", '{"model": "m"}')).values == {"model": "m"}
    assert read_file(write(tmp_path / "job2", 'model = "m"')).values == {"model": "m"}


def test_a_byte_order_mark_and_an_empty_file_are_fine(tmp_path):
    assert read_file(write(tmp_path / "a.toml", b'\xef\xbb\xbfmodel = "m"')).values == {"model": "m"}
    assert read_file(write(tmp_path / "b.toml", b"")).values == {}


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("a.toml", "model = ", Code.BAD_SYNTAX, "Invalid value"),
        ("a.toml", "model = 1\nmodel = 2", Code.BAD_SYNTAX, "overwrite"),
        ("a.toml", "x = " + "9" * 5000, Code.BAD_SYNTAX, "too many digits"),
        ("a.toml", "x = " + "[" * 20_000, Code.BAD_SYNTAX, "nested too deeply"),
        ("a.json", '{"model": }', Code.BAD_SYNTAX, "Expecting value"),
        ("a.json", "", Code.BAD_SYNTAX, "Expecting value"),
        ("a.json", "[" * 100_000, Code.BAD_SYNTAX, "nested too deeply"),
        ("a.json", '{"x": ' + "9" * 5000 + "}", Code.BAD_SYNTAX, "too many digits"),
        ("a.json", "[1, 2]", Code.BAD_VALUE, "a list of 2"),
        ("a.json", "5", Code.BAD_VALUE, "5"),
        ("a.json", '{"model": 1, "model": 2}', Code.DUPLICATE, "twice"),
        ("a.toml", b"\xff\xfe", Code.FILE_UNREADABLE, "not UTF-8"),
        ("a.toml", b"a\0b", Code.FILE_UNREADABLE, "binary"),
        ("a.toml", b"#" * (2**20 + 1), Code.FILE_UNREADABLE, "more than 1 MiB"),
    ],
)
def test_what_cannot_be_read_is_a_finding(tmp_path, name, content, code, said):
    (finding,) = read_file(write(tmp_path / name, content))
    assert finding.code is code
    assert said in finding.observed
    assert name in finding.subject
    assert finding.expected
    assert finding.action


@pytest.mark.parametrize(
    ("text", "is_json", "place"),
    [
        ('model = "m"\ntask = = 3', False, "job:2:8"),
        ('{"model": "m",\n "task": ]', True, "job:2:10"),
        ('x = """', False, "job"),
    ],
)
def test_bad_syntax_names_line_and_column(text, is_json, place):
    (finding,) = parse_text(text, "job", json=is_json)
    assert finding.subject == place
    assert "at line" not in finding.observed


def test_a_missing_file_is_answered_with_its_neighbour(tmp_path):
    write(tmp_path / "lora-7b.toml", TOML)
    (finding,) = read_file(str(tmp_path / "lora-7.toml"))
    assert finding.code is Code.FILE_UNREADABLE
    assert "No such file" in finding.observed
    assert "lora-7b.toml" in finding.action


@pytest.mark.parametrize("source", ["", "no/such/folder/x.toml", ".", "a\0b", "x" * 5000, "\ud800"])
def test_a_path_that_cannot_be_opened_is_a_finding(source):
    (finding,) = read_file(source)
    assert finding.code is Code.FILE_UNREADABLE
    assert finding.action.isprintable()
    assert finding.subject.isprintable()


@given(content=st.binary(max_size=200), name=st.sampled_from(["a.toml", "a.json", "a"]))
def test_random_bytes_never_raise(tmp_path_factory, content, name):
    answer = read_file(write(tmp_path_factory.getbasetemp() / name, content))
    assert isinstance(answer, Request) or all(isinstance(f, Finding) for f in answer)


broken_toml = st.lists(
    st.sampled_from(
        [
            'model = "m"',
            "[training]",
            "rows = 5",
            "rows = [",
            "]]",
            "a.b.c = 1",
            "x = nan",
            "'''",
            "= =",
            "é = 1",
            "[limits]",
            '"" = 1',
        ]
    )
).map("\n".join)
broken_json = st.recursive(
    st.none() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x),
    max_leaves=8,
).map(json.dumps)


@given(text=st.one_of(broken_toml, broken_json, st.text(max_size=100)), is_json=st.booleans())
def test_random_documents_never_raise(text, is_json):
    answer = parse_text(text, "job", json=is_json)
    if not isinstance(answer, Request):
        assert all(f.subject and f.observed and f.expected and f.action for f in answer)


def examples():
    return sorted((Path(__file__).parents[2] / "examples").glob("*.*"))


@pytest.mark.parametrize("path", examples(), ids=lambda path: path.name)
def test_the_examples_parse_on_the_bundled_facts(path):
    request = read_file(str(path))
    assert isinstance(request, Request)
    parsed = parse(request, load())
    assert isinstance(parsed, Parsed), parsed
