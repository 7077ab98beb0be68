"""Raw values become what a key holds, or a finding that says what to write instead."""

from decimal import Decimal

import pytest

from rackrate.money import Money
from rackrate.problems import Code, Finding
from rackrate.workload.keys import KEYS
from rackrate.workload.values import read_value, shown
from rackrate.workload.workload import Budget


def short(value):
    return ascii(value)[:30]


@pytest.mark.parametrize(
    ("path", "raw", "value"),
    [
        ("training.micro_batch", 4, 4),
        ("training.micro_batch", "4", 4),
        ("training.micro_batch", 4.0, 4),
        ("context", "131,072", 131072),
        ("context", "131_072", 131072),
        ("training.tokens", "30M", 30e6),
        ("training.tokens", 3e7, 3e7),
        ("training.tokens", "1.5B", 1.5e9),
        ("training.rows", "50k", 50_000),
        ("training.epochs", "0.5", 0.5),
        ("use.disk", "200 GB", 200e9),
        ("use.disk", "200 GiB", 200 * 2**30),
        ("use.disk", "1,500 GB", 1500e9),
        ("use.disk", 0, 0),
        ("limits.deadline", 36, 36),
        ("limits.deadline", "2 days", 48),
        ("limits.deadline", "90 min", 1.5),
        ("limits.gpus", "a40, l40s", ("a40", "l40s")),
        ("limits.gpus", ["a40", "l40s", "a40"], ("a40", "l40s")),
        ("limits.gpu_counts", "8,1,2,2", (1, 2, 8)),
        ("limits.gpu_counts", 2, (2,)),
        ("limits.gpu_counts", ("1", "4,8"), (1, 4, 8)),
        ("limits.budget", "500 USD", Budget(money=Money(Decimal(500), "USD"))),
        ("limits.budget", "USD 500", Budget(money=Money(Decimal(500), "USD"))),
        ("limits.budget", "3,000.50 cny/month", Budget(money=Money(Decimal("3000.50"), "CNY"), period="month")),
        ("limits.budget", "200 元", Budget(money=Money(Decimal(200), "CNY"))),
        ("limits.budget", "3000元/月", Budget(money=Money(Decimal(3000), "CNY"), period="month")),
        ("limits.budget", "人民币 200", Budget(money=Money(Decimal(200), "CNY"))),
        ("limits.budget", "200 rmb", Budget(money=Money(Decimal(200), "CNY"))),
        ("limits.budget", "12 EUR per day", Budget(money=Money(Decimal(12), "EUR"), period="day")),
        ("limits.interruptible", "yes", True),
        ("limits.interruptible", False, False),
        ("task", "Full Fine-tune", None),
        ("task", "full-finetune", "full_finetune"),
        ("task", "SERVE", "inference"),
        ("precision", "bfloat16", "bf16"),
        ("training.optimizer", "adamw_8bit", "adamw-8bit"),
        ("training.lora_targets", ["q_proj", "v_proj"], ("q", "v")),
        ("training.lora_targets", "all-linear", ("all",)),
    ],
    ids=short,
)
def test_read(path, raw, value):
    read = read_value(KEYS[path], raw, "here")
    if value is None:
        assert isinstance(read, Finding)
    else:
        assert read == value
        assert type(read) is type(value) or isinstance(value, (int, float))


@pytest.mark.parametrize(
    ("path", "raw", "code", "action"),
    [
        ("training.micro_batch", True, Code.BAD_VALUE, "whole number"),
        ("training.micro_batch", 4.5, Code.BAD_VALUE, "whole number"),
        ("training.micro_batch", "1,2", Code.BAD_VALUE, "whole number"),
        ("training.micro_batch", [4], Code.BAD_VALUE, "whole number"),
        ("training.micro_batch", 0, Code.OUT_OF_BOUNDS, "choose "),
        ("training.micro_batch", -1, Code.OUT_OF_BOUNDS, "choose "),
        ("training.micro_batch", 10**400, Code.OUT_OF_BOUNDS, "choose "),
        ("serving.prompt_tokens", 10**9, Code.OUT_OF_BOUNDS, "choose from 1 to 16,777,216 tokens"),
        ("training.micro_batch", "9" * 5000, Code.BAD_VALUE, "shorter"),
        ("context", "4k", Code.BAD_VALUE, "4000 to some and 4096 to others"),
        ("training.tokens", float("nan"), Code.BAD_VALUE, "finite"),
        ("training.tokens", float("inf"), Code.BAD_VALUE, "finite"),
        ("training.tokens", "1e999", Code.BAD_VALUE, "finite"),
        ("training.tokens", 10**400, Code.BAD_VALUE, "smaller"),
        ("training.tokens", "30 Mtok", Code.BAD_VALUE, "use one of"),
        ("training.epochs", "1,5", Code.BAD_VALUE, "point before decimals"),
        ("use.disk", 200, Code.BAD_VALUE, "200 GB"),
        ("use.disk", "200", Code.BAD_VALUE, "200 GB"),
        ("use.disk", "1,5 TB", Code.BAD_VALUE, "point before decimals"),
        ("use.disk", "200 GX", Code.BAD_VALUE, "use one of"),
        ("limits.deadline", "soon", Code.BAD_VALUE, "as in 36 h"),
        ("limits.budget", 500, Code.BAD_VALUE, "500 USD"),
        ("limits.budget", "500", Code.BAD_VALUE, "500 USD"),
        ("limits.budget", "$500", Code.BAD_VALUE, "500 USD"),
        ("limits.budget", "¥500", Code.BAD_VALUE, "CNY or JPY"),
        ("limits.budget", "500￥/month", Code.BAD_VALUE, "CNY or JPY"),
        ("limits.budget", "USD 500 CNY", Code.BAD_VALUE, "500 USD"),
        ("limits.budget", "500 USD/year", Code.BAD_VALUE, "month"),
        ("limits.budget", "0 USD", Code.OUT_OF_BOUNDS, "choose "),
        ("limits.interruptible", 1, Code.BAD_VALUE, "true or false"),
        ("limits.gpu_counts", "1,200", Code.OUT_OF_BOUNDS, "choose "),
        ("limits.gpus", [1], Code.BAD_VALUE, "text"),
        ("limits.gpus", "a40,,l40s", Code.BAD_VALUE, "text"),
        ("model", "", Code.BAD_VALUE, "text"),
        ("model", "a\x1b[31mb", Code.BAD_VALUE, "one line"),
        ("model", "\ud800", Code.BAD_VALUE, "one line"),
        ("task", "infrence", Code.BAD_VALUE, "did you mean inference?"),
        ("task", "xyz", Code.BAD_VALUE, "choose one of"),
        ("serving.mode", None, Code.BAD_VALUE, "text"),
    ],
    ids=short,
)
def test_refused(path, raw, code, action):
    found = read_value(KEYS[path], raw, "here")
    assert isinstance(found, Finding)
    assert (found.code, found.subject) == (code, "here")
    assert action in found.action
    assert found.expected


def test_a_comma_between_decimals_is_never_read_as_ten_times_as_much():
    assert isinstance(read_value(KEYS["use.hours_per_day"], "1,5", "here"), Finding)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("x" * 100, "x" * 60 + "..."),
        ("a\nb\x1b", "a?b?"),
        ("", "an empty text"),
        (True, "true"),
        (10**500, "a very large number"),
        ({"a": 1}, "a table"),
        ([[[]]], "a list of 1"),
        (["a", "b"], "a, b"),
        (4.5, "4.5"),
    ],
    ids=short,
)
def test_shown_is_short_and_printable(raw, text):
    assert shown(raw) == text
