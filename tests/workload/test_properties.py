"""Whatever people write, parsing answers: a workload, or findings that say what, where and the next step."""

import string
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackrate.problems import Code, Severity
from rackrate.workload.keys import KEYS
from rackrate.workload.layouts import layouts
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags, request_from_table
from rackrate.workload.settings import settings as settings_of

MODELS = ("meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-70b-hf", "Qwen/Qwen2.5-7B-Instruct", "openai-community/gpt2")
TASKS = ("inference", "lora", "qlora", "full_finetune", "pretrain")

junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(date(2026, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
numbers = st.sampled_from(
    ["0", "1", "4k", "30M", "1,5", "1e9", "-3", "9" * 400, "12 GB", "3 days", "5 USD", "7 CNY/month"]
)


def plausible(key):
    """Values that the key may well take, right or wrong in combination."""
    if key.choices:
        return st.sampled_from(key.choices)
    if key.kind == "whole":
        return st.integers(1, 100)
    if key.kind in {"number", "count", "hours"}:
        return st.floats(key.low, min(key.high, 1e6))
    examples = {"bytes": "20 GB", "money": "100 EUR/day", "switch": True, "whole_list": [1, 2]}
    known = {"model": MODELS[0], "card": "a40", "engine": "vllm", "format": "nf4-dq", "provider": "runpod"}
    named = {"limits.require": "ecc", "limits.vendors": "nvidia", "currency": "CNY"}
    return st.just(named.get(key.path) or known.get(key.names) or examples.get(key.kind) or "anything")


@st.composite
def tables(draw):
    """Workload files: some keys right, some with junk, some that do not exist, some at the wrong depth."""
    table = {}
    for path in draw(st.lists(st.sampled_from(list(KEYS)), unique=True, max_size=12)):
        value = draw(st.one_of(plausible(KEYS[path]), plausible(KEYS[path]), junk, numbers))
        section, _, name = path.rpartition(".")
        if section:
            table.setdefault(section, {})[name] = value
        else:
            table[path] = value
    if draw(st.booleans()):
        table |= draw(st.dictionaries(st.text(max_size=12) | st.sampled_from(["training", "limits"]), junk, max_size=2))
    return table


@st.composite
def flags(draw):
    """Flags as a command line hands them over: texts, switches, tuples, and None for the others."""
    given_flags = {}
    for path in draw(st.lists(st.sampled_from([k.path for k in KEYS.values() if k.flag]), unique=True, max_size=8)):
        key = KEYS[path]
        text = draw(st.one_of(plausible(key).map(str), numbers, st.text(max_size=10)))
        given_flags[path] = draw(st.booleans()) if key.is_switch else (text,) if key.multiple else text
    return given_flags | {"limits.deadline": None, "limits.regions": ()}


@given(table=tables(), said=flags())
@settings(max_examples=300)
def test_an_answer_or_findings_with_what_where_and_the_next_step(book, table, said):
    answer = parse(request_from_flags(said).over(request_from_table(table, source="job.toml")), book)
    findings = answer.warnings if isinstance(answer, Parsed) else answer
    for finding in findings:
        parts = (finding.subject, finding.observed, finding.expected, finding.action)
        assert all(part.strip() and part.isprintable() for part in parts), finding
        assert len(finding.action) < 1000
    severities = {finding.severity for finding in findings}
    if isinstance(answer, Parsed):
        assert severities <= {Severity.WARNING}
        work = answer.workload
        assert sum(sizes is not None for sizes in (work.training, work.serving, work.images)) == 1
        assert all(a.key in KEYS and a.value and a.why for a in answer.workload.assumptions)
        assert not {a.key for a in answer.workload.assumptions} & set(said)
    else:
        assert Severity.ERROR in severities


@st.composite
def sound(draw):
    """Requests in which nothing contradicts anything else."""
    task = draw(st.sampled_from(TASKS))
    said = {"model": draw(st.sampled_from(MODELS)), "task": task}
    optional = {
        "limits.budget": st.sampled_from(["100 USD", "2500.50 CNY/month"]),
        "limits.gpus": st.sampled_from(["a40", ["l40s", "a40"]]),
        "limits.gpu_counts": st.sampled_from([[1], [1, 2, 8], 4]),
        "limits.require": st.sampled_from(["bf16", ["ecc", "min_memory_gb=40"]]),
        "limits.interruptible": st.booleans(),
        "use.disk": st.floats(1, 1e6).map(lambda gb: f"{gb:.3f} GB"),
        "use.keep_disk_days": st.floats(0, 100),
    }
    if task == "inference":
        optional |= {
            "context": st.integers(2, 4096),
            "serving.concurrency": st.integers(1, 500),
            "serving.cache_precision": st.sampled_from(["fp8", "bf16"]),
        }
        online = {
            "serving.requests_per_s": st.floats(0.01, 100),
            "serving.first_token_ms": st.floats(1, 1e4),
            "serving.output_token_ms": st.floats(1, 1e3),
            "use.hours_per_day": st.floats(1, 24),
        }
        offline = {"limits.deadline": st.floats(1, 100), "use.starts": st.integers(1, 5)}
        optional |= draw(st.sampled_from([online, offline]))
        if "limits.deadline" in optional:
            said["serving.requests"] = draw(st.floats(1, 1e6))
    else:
        optional |= {
            "batch": st.integers(1, 64),
            "context": st.integers(513, 4096),
            "training.checkpointing": st.sampled_from(["none", "selective", "full"]),
            "training.optimizer": st.sampled_from(["adamw", "adamw-8bit"]),
            "training.packed": st.booleans(),
            "limits.deadline": st.floats(1, 100),
        }
        optional |= draw(
            st.sampled_from([{"training.tokens": st.floats(1, 1e12)}, {"training.rows": st.floats(1, 1e9)}])
        )
        if task in {"lora", "qlora"}:
            optional["training.lora_rank"] = st.integers(1, 256)
    for path in draw(st.lists(st.sampled_from(list(optional)), unique=True)):
        said[path] = draw(optional[path])
    return said


@given(said=sound())
def test_a_sound_request_becomes_a_workload(book, said):
    answer = parse(request_from_flags(said), book)
    assert isinstance(answer, Parsed), answer
    assert answer.workload.task == said["task"]


@given(said=sound())
def test_a_workload_written_out_in_full_parses_to_itself_without_assumptions(book, said):
    first = parse(request_from_flags(said), book).workload
    again = parse(request_from_flags(settings_of(first)), book)
    assert isinstance(again, Parsed), again
    second = again.workload
    assert second.assumptions == ()
    assert (second.limits, second.use, second.training) == (first.limits, first.use, first.training)
    assert (second.engine_id, second.weights, second.precision) == (first.engine_id, first.weights, first.precision)
    assert second.display_currency == first.display_currency
    assert settings_of(second).keys() == settings_of(first).keys()
    if first.serving is not None:
        for name in ("prompt_tokens", "output_tokens", "context_tokens", "concurrency", "requests", "cache_bits"):
            assert getattr(second.serving, name) == getattr(first.serving, name)
        for name in ("max_first_token_s", "max_s_per_output_token"):  # seconds inside, milliseconds in the file
            before, after = getattr(first.serving, name), getattr(second.serving, name)
            assert before is after is None or after == pytest.approx(before, rel=1e-15)


@given(said=sound(), other=sound())
def test_flags_win_over_the_file(book, said, other):
    """What a flag says is what the workload holds, whatever a file says about the same keys."""
    by_flags = request_from_flags(said)
    file = {path: value for path, value in other.items() if path in said}
    nested = {}
    for path, value in file.items():
        section, _, name = path.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    both = parse(by_flags.over(request_from_table(nested, source="job.toml")), book)
    assert both == parse(by_flags, book)


@given(path=st.sampled_from(list(KEYS)), place=st.integers(0, 30), letter=st.sampled_from(string.ascii_lowercase))
def test_a_slip_of_one_letter_is_answered_with_the_key_meant(book, path, place, letter):
    section, _, name = path.rpartition(".")
    place %= len(name)
    slip = name[:place] + letter + name[place + 1 :]
    if f"{section}.{slip}" in KEYS or slip in KEYS or len(name) < 5:
        return
    table = {section: {slip: 1}} if section else {slip: 1}
    found = [f for f in parse(request_from_table(table), book) if f.code is Code.UNKNOWN_KEY]
    assert len(found) == 1
    assert path in found[0].action


@given(said=sound(), gpus=st.integers(1, 16))
def test_every_layout_is_a_valid_division(book, said, gpus):
    work = parse(request_from_flags(said), book).workload
    engine = book.engine(work.engine_id)
    found = layouts(work.model, work, engine, gpus)
    assert found
    assert len(set(found)) == len(found) <= 12
    assert found == layouts(work.model, work, engine, gpus)
    for layout in found:
        assert layout.gpus == found[0].gpus <= gpus
        assert layout.tensor == 1 or (work.model.attention_heads % layout.tensor == 0 and "tensor" in engine.parallel)
        assert layout.pipeline <= work.model.layers
        assert not layout.zero_stage or (layout.data > 1 and "zero" in engine.parallel)
        if work.training:
            assert work.training.global_batch % (work.training.micro_batch * layout.data) == 0
