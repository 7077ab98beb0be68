"""Measured speeds as text: units as people and tools write them, and nonsense with a clear error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.facts import bundled
from rackrate.problems import Code
from rackrate.workload.measured import Counted
from rackrate.workload.measured_text import IMAGES, SERVING, TRAINING, read_measured
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_table
from rackrate.workload.settings import settings

CHAT = {"model": "meta-llama/Llama-2-7b-hf", "task": "inference"}
LORA = {"model": "meta-llama/Llama-2-7b-hf", "task": "lora"}


@pytest.mark.parametrize(
    ("text", "units", "per_s", "counted"),
    [
        ("32 tok/s", SERVING, 32, Counted.TOKENS),
        ("32.5tokens/s", SERVING, 32.5, Counted.TOKENS),
        ("1,240 Tokens per second", SERVING, 1240, Counted.TOKENS),
        ("1.2k t/s", SERVING, 1200, Counted.TOKENS),
        ("3e2 tps", SERVING, 300, Counted.TOKENS),
        ("480 output tok/s", SERVING, 480, Counted.OUTPUT),
        ("25 tok/s each", SERVING, 25, Counted.EACH),
        ("40 ms/token", SERVING, 25, Counted.EACH),
        ("40 ms per token", SERVING, 25, Counted.EACH),
        ("40 ms TPOT", SERVING, 25, Counted.EACH),
        ("2,400 prompt tok/s", SERVING, 2400, Counted.PROMPT),
        ("2400 tok/s prefill", SERVING, 2400, Counted.PROMPT),
        ("9000 total tok/s", SERVING, 9000, Counted.ALL_TOKENS),
        ("250 ms TTFT", SERVING, 4, Counted.FIRST_TOKEN),
        ("0.25 s to first token", SERVING, 4, Counted.FIRST_TOKEN),
        ("250 milliseconds", SERVING, 4, Counted.FIRST_TOKEN),
        ("1.5 requests/s", SERVING, 1.5, Counted.REQUESTS),
        ("3,100 tok/s", TRAINING, 3100, Counted.TRAINED),
        ("2 s/it", TRAINING, 0.5, Counted.STEPS),
        ("500 ms / step", TRAINING, 2, Counted.STEPS),
        ("0.5 it/s", TRAINING, 0.5, Counted.STEPS),
        ("3 samples/s", TRAINING, 3, Counted.SAMPLES),
        ("0.25 images/s", IMAGES, 0.25, Counted.IMAGES),
        ("4 s/image", IMAGES, 0.25, Counted.IMAGES),
        ("4.2 it/s", IMAGES, 4.2, Counted.IMAGE_STEPS),
    ],
)
def test_units_are_read_as_people_write_them(text, units, per_s, counted):
    found = read_measured(text, units)
    assert (found.per_s, found.counted) == (pytest.approx(per_s), counted)


def test_the_machine_can_be_said():
    found = read_measured("30 tok/s on 2 x NVIDIA A40", SERVING)
    assert (found.gpus, found.card) == (2, "NVIDIA A40")
    assert read_measured("30 tok/s on a40", SERVING).gpus is None
    assert read_measured("800 tok/s/gpu", TRAINING).per_gpu


HOSTILE = (
    *(
        "32",
        "abc tok/s",
        "-1 tok/s",
        "1e99 tok/s",
        "0 tok/s",
        "tok/s",
        "",
        "  ",
        "nan tok/s",
        "inf tok/s",
        "1e-30 tok/s",
    ),
    *("32 furlongs", "32 s/it", "3,2 tok/s", "1.2.3 tok/s", "1e999 tok/s", "32 tok/s on", "32 tok/s tok/s", "٣٢ tok/s"),
    *("32 tok/s on nosuchcard", "32 tok/s on 2 x", "32 tok/s on 99999 x a40", "9" * 150, "--", "1" * 90 + " tok/s"),
)


@pytest.mark.parametrize("text", HOSTILE)
def test_nonsense_is_refused_with_what_to_write(text):
    found = parse(request_from_table({**CHAT, "measured": text}), bundled.load())
    assert not isinstance(found, Parsed)
    (finding,) = found
    assert finding.subject == "measured"
    assert finding.code in {Code.BAD_VALUE, Code.UNKNOWN_NAME, Code.AMBIGUOUS_CARD}
    assert finding.action


@given(st.text(max_size=120))
def test_any_text_is_a_measurement_or_a_finding(text):
    found = parse(request_from_table({**LORA, "measured": text}), bundled.load())
    assert isinstance(found, Parsed) or all(finding.action for finding in found)


@pytest.mark.parametrize(("job", "text"), [(CHAT, "32 tok/s on 2 x a40"), (LORA, "9 s/it"), (CHAT, "40 ms/token")])
def test_it_is_written_back_as_it_was_said(job, text):
    book = bundled.load()
    found = parse(request_from_table({**job, "measured": text}), book)
    assert isinstance(found, Parsed)
    again = {path: value for path, value in settings(found.workload).items() if path == "measured"}
    other = parse(request_from_table({**job, **again}), book)
    assert isinstance(other, Parsed)
    assert other.workload.measured == found.workload.measured


def test_units_of_another_task_are_refused():
    book = bundled.load()
    for job, text in ((CHAT, "9 s/it"), (LORA, "40 ms/token"), (LORA, "2 requests/s")):
        assert not isinstance(parse(request_from_table({**job, "measured": text}), book), Parsed)
