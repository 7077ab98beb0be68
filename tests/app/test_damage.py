"""Every kind of damage to a bundled file is found, with file, row and column, and never ends in a traceback."""

import csv
import io
import re
import shutil
import tomllib
from datetime import date

import pytest

from rackrate.app.fact_files import check
from rackrate.facts import bundled, validate_files
from rackrate.facts.validate import CHECKS
from rackrate.facts.validate_cells import Known
from rackrate.facts.validate_engines import engine_faults
from rackrate.facts.validate_rows import findings
from rackrate.offers import catalog
from rackrate.offers.validate import Known as OfferKnown
from rackrate.offers.validate import validate_offers

TODAY = date(2026, 12, 1)
FILES = {path.name: path for folder in (bundled.DATA, catalog.DATA) for path in sorted(folder.glob("*.csv"))}
TEXTS = {name: path.read_text("utf-8") for name, path in FILES.items()}
TABLES = {name: list(csv.reader(io.StringIO(text))) for name, text in TEXTS.items()}
ENGINES = {path.name: path.read_text("utf-8") for path in sorted(bundled.DATA.glob("engines/*.toml"))}
CLOUDS = "offers-clouds.csv"
DOUBLE_WIDTH = "４０９６"
ARABIC = "٣٢"


@pytest.fixture
def copies(tmp_path):
    """The bundled files, as links to write over."""
    facts, prices = tmp_path / "facts", tmp_path / "prices"
    (facts / "engines").mkdir(parents=True)
    prices.mkdir()
    for name, path in FILES.items():
        shutil.copy(path, (prices if path.parent == catalog.DATA else facts) / name)
    for name, text in ENGINES.items():
        (facts / "engines" / name).write_text(text, "utf-8")
    return facts, prices


def written(copies, name, content):
    folder = copies[1] if (copies[1] / name).exists() else copies[0]
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))


def row_of(name, wanted):
    """The number of the first row that says what is wanted, and the columns."""
    header, *rows = TABLES[name]
    for number, row in enumerate(rows, start=2):
        cells = dict(zip(header, row, strict=True))
        if all(cells[column] == value for column, value in wanted.items()):
            return number, header
    raise AssertionError((name, wanted))


def text_of(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def subjects(copies):
    return {finding.subject for finding in check(*copies, today=TODAY).findings}


def test_the_copies_have_no_fault(copies):
    assert check(*copies, today=TODAY).findings == ()


# ---------------------------------------------------------------- one cell

NUMBERS = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e-300",
    "1e999",
    "1_000",
    "1,000",
    ARABIC,
    DOUBLE_WIDTH,
    "²",
    "half",
    "0x10",
)
WHOLE = ("nan", "-1", "1.5", "1e3", "1_000", ARABIC, DOUBLE_WIDTH, "²", "many", "9" * 5000)
DAYS = ("", "soon", "20261130", "2026-W48-1", "2026-02-30", "2031-01-01", "0001-01-01", "٢٠٢٦-11-30")
LLAMA = {"id": "meta-llama/Llama-2-7b-hf"}
MISTRAL = {"id": "mistralai/Mistral-7B-v0.1"}
MIXTRAL = {"id": "mistralai/Mixtral-8x7B-v0.1"}
A40 = {"accelerator": "a40", "quantity": "bandwidth"}
SLICE = {"label": "a100-40", "profile": "1g.5gb"}
VERDA = {"provider": "verda"}
TIERS = {"provider": "aws", "rule_key": "egress_price_tiers"}
DISK = {"provider": "runpod", "rule_key": "disk_price"}

# file, row, column, values that it cannot hold
CELLS = [
    ("models.csv", LLAMA, "params_total", (*NUMBERS, "6.7", "67384156160")),
    ("models.csv", LLAMA, "params_active", (*NUMBERS, "67384156160")),
    ("models.csv", LLAMA, "params_check", (*WHOLE, "67384156160")),
    ("models.csv", LLAMA, "layers", (*WHOLE, "0", "-32", "31", "5000")),  # 31: fewer than have full attention
    ("models.csv", LLAMA, "kv_heads", (*WHOLE, "0", "33")),
    ("models.csv", LLAMA, "attention_heads", (*WHOLE, "0")),
    ("models.csv", LLAMA, "head_dim", (*WHOLE, "0", "4096")),
    ("models.csv", LLAMA, "hidden_size", (*WHOLE, "0")),
    ("models.csv", LLAMA, "vocab_size", (*WHOLE, "0")),
    ("models.csv", LLAMA, "max_context", (*WHOLE, "0")),
    ("models.csv", LLAMA, "attn_layers_full", (*WHOLE, "33")),
    ("models.csv", LLAMA, "tie_embeddings", ("fasle", "False", "0")),
    ("models.csv", LLAMA, "mlp_gated", ("ture", "1")),
    ("models.csv", LLAMA, "seen_at", DAYS),
    ("models.csv", LLAMA, "id", ("", 'a"b', "a,b")),
    ("models.csv", MISTRAL, "window", (*WHOLE, "0", "")),
    ("models.csv", MIXTRAL, "experts", (*WHOLE, "0", "1")),
    ("models.csv", MIXTRAL, "experts_per_token", (*WHOLE, "0", "9")),
    ("models.csv", MIXTRAL, "dense_layers_first", (*WHOLE, "33")),
    ("accelerators.csv", {"id": "a40"}, "memory_sold_gb", (*NUMBERS, "0", "48000")),
    ("accelerators.csv", {"id": "a40"}, "compute_capability", ("86", "8", "8.6.1", "nan")),
    ("accelerators.csv", {"id": "a40"}, "mig_instances", (*WHOLE, "8")),
    ("accelerators.csv", {"id": "a40"}, "launch_year", (*WHOLE, "20", "20200")),
    ("accelerators.csv", {"id": "a40"}, "rt_cores", WHOLE),
    ("accelerators.csv", {"id": "a40"}, "nvswitch", ("", "fasle")),
    ("accelerator_facts.csv", A40, "value", (*NUMBERS, "0", "695800")),
    ("accelerator_facts.csv", A40, "unit", ("", "GiB/s", "gb/s")),
    ("accelerator_facts.csv", A40, "seen_at", DAYS),
    ("baselines.csv", {"label": "A40", "quantity": "memory_read"}, "value", (*NUMBERS, "0")),
    ("baselines.csv", {"label": "A40", "quantity": "memory_read"}, "gpus", (*WHOLE, "0", "", "1025")),
    ("baselines.csv", {"label": "A40", "quantity": "memory_read"}, "seen_at", DAYS),
    ("mig_profiles.csv", SLICE, "sm_fraction", ("", "8/7", "0/7", "-1/7", "1/0", "1e999999999", "2/7", "a seventh", "１/7")),
    ("mig_profiles.csv", SLICE, "max_instances", (*WHOLE, "", "0", "8")),
    ("mig_profiles.csv", SLICE, "memory_label_gb", (*NUMBERS, "0", "6")),
    ("formats.csv", {"id": "bf16"}, "bits_per_weight", (*NUMBERS, "0", "160")),
    ("formats.csv", {"id": "fp8"}, "min_compute_capability", ("89", "eight", "nan")),
    ("memory_rules.csv", {"id": "nvidia-gddr-ecc"}, "fraction", (*NUMBERS, "0", "9.37")),
    ("exchange_rates.csv", {"currency": "USD"}, "per_base", (*NUMBERS, "0")),
    ("exchange_rates.csv", {"currency": "CNY"}, "on", (*DAYS, "2026-10-29")),
    ("exchange_rates.csv", {"currency": "CNY"}, "base", ("", "eur", "USD")),
    ("exchange_rates.csv", {"currency": "CNY"}, "currency", ("", "cny", "RENMINBI", "元", "C1Y")),
    ("access.csv", {"provider": "runpod", "key": "quota"}, "value", ("", "nan", "-1", "inf", "by_requst")),
    ("access.csv", {"provider": "runpod", "key": "quota"}, "seen_at", DAYS),
    ("billing_rules.csv", {"rule_key": "granularity_s"}, "value", (*NUMBERS, "0", "1 minute")),
    ("billing_rules.csv", {"rule_key": "minimum_charge_s"}, "value", NUMBERS),
    ("billing_rules.csv", {"rule_key": "granularity_s"}, "unit", ("min", "sec", "seconds", "h")),
    ("billing_rules.csv", {"rule_key": "stopped_bills_compute"}, "value", ("", "fasle", "True", "0", "no")),
    ("billing_rules.csv", {"rule_key": "tax_included", "value": "false"}, "value", ("", "fasle", "False", "flase")),
    ("billing_rules.csv", {"rule_key": "minimum_scope"}, "value", ("", "per_stop", "per start")),
    ("billing_rules.csv", DISK, "value", ("", "nan", "-0.1", "inf", "NaN", "-inf", "1e999")),
    ("billing_rules.csv", DISK, "unit", ("", "USD", "USD/GB", "USD/GB-mnth", "UDS/GB-month", "usd/GB-month", "GB-month")),
    ("billing_rules.csv", DISK, "state", ("runing", "stoped", "Running")),
    ("billing_rules.csv", DISK, "seen_at", DAYS),
    ("billing_rules.csv", DISK, "effective_from", ("soon", "20251001", "2025-W40-1")),
    ("billing_rules.csv", TIERS, "value", (
        "", "10240:0.09", "51200:0.085|10240:0.09|inf:0.05", "10240:0.09|10240:0.08|inf:0.05", "10240:-0.09|inf:0.05",
        "10240:nan|inf:0.05", "nan:0.09|inf:0.05", "-1:0.09|inf:0.05", "10240:0.09|inf:inf", "10240:0.09|inf:",
        "10240:0,09|inf:0.05", "inf:0.05|10240:0.09", "nan", "-0.09", "inf:90",
    )),
    ("billing_rules.csv", TIERS, "unit", ("", "upper GB", "upper GB:EURO/GB")),
    ("hosted_prices.csv", {}, "input_per_million", (*NUMBERS, "0.4|nan:1", "0.4|1000:-1", "0.4|x:1", "1|1000:inf")),
    ("hosted_prices.csv", {}, "output_per_million", NUMBERS),
    ("hosted_prices.csv", {}, "context_tokens", (*WHOLE, "0")),
    ("hosted_prices.csv", {}, "currency", ("", "usd", "XAU")),
    ("hosted_prices.csv", {}, "seen_at", DAYS),
    ("providers.csv", {"id": "runpod"}, "currency", ("usd", "US", "U$D", "DOLLAR")),
    (CLOUDS, VERDA, "price", (*NUMBERS, "0", "1e-300", "$4.89")),
    (CLOUDS, VERDA, "gpus", (*WHOLE, "", "0")),
    (CLOUDS, VERDA, "memory_gb", ("nan", "-1", "0", ARABIC, "1_80", "many")),
    (CLOUDS, VERDA, "minimum_terms", (*WHOLE, "0")),
    (CLOUDS, VERDA, "validity_days", (*WHOLE, "0")),
    (CLOUDS, VERDA, "hours_in_term", (*NUMBERS, "0")),
    (CLOUDS, VERDA, "vcpus", (*WHOLE, "0")),
    (CLOUDS, VERDA, "share", ("0", "2", "1/0", "0.0", "1/٣", "nan", "half")),
    (CLOUDS, VERDA, "observed_on", DAYS),
    (CLOUDS, VERDA, "prepaid", ("", "fasle")),
    (CLOUDS, VERDA, "region", ("nowhere",)),
]  # fmt: skip
KNOWN = Known(
    DICTS := {name: [dict(zip(rows[0], row, strict=True)) for row in rows[1:]] for name, rows in TABLES.items()}, TODAY
)
PRICED = OfferKnown(
    columns=tuple(TABLES[CLOUDS][0]),
    providers=frozenset(KNOWN.names),
    currencies=frozenset({"EUR", *(row["currency"] for row in DICTS["exchange_rates.csv"])}),
    places=frozenset((row["provider"], row["region"]) for row in DICTS["regions.csv"]),
    today=TODAY,
)


def faults_of(name, rows):
    """What the check of one file says, the other files being whole."""
    if name.startswith("offers-"):
        return validate_offers({name: rows}, PRICED)
    return [*findings(name, rows, CHECKS[name](KNOWN)), *validate_files.faults({name: rows}, {})]


@pytest.mark.parametrize(
    ("name", "wanted", "column", "values"), CELLS, ids=[f"{n}-{'-'.join(w.values())}-{c}" for n, w, c, _ in CELLS]
)
def test_a_damaged_cell_is_found_where_it_is(name, wanted, column, values):
    number, _ = row_of(name, wanted)
    for value in values:
        rows = list(DICTS[name])
        rows[number - 2] = rows[number - 2] | {column: value}
        found = faults_of(name, rows)
        told = {one.subject for one in found}
        assert f"{name}:{number} {column}" in told or (
            column in JOINT and any(f"{name}:{number} " in one for one in told)
        ), value
        assert all(one.code and one.subject and one.expected and one.action for one in found), value


JOINT = frozenset({"layers", "attention_heads", "experts"})
"""A number that is good by itself and does not fit another one: the other's column may be told."""


def test_both_counts_with_a_digit_too_many_are_found(copies):
    number, header = row_of("models.csv", LLAMA)
    rows = [list(row) for row in TABLES["models.csv"]]
    for column in ("params_total", "params_active", "params_check"):
        rows[number - 1][header.index(column)] += "0"
    written(copies, "models.csv", text_of(rows))
    assert subjects(copies) == {f"models.csv:{number} params_total"}


# ---------------------------------------------------------------- whole rows and files


@pytest.mark.parametrize("name", TABLES)
def test_rows_too_long_too_short_blank_or_twice_are_found(copies, name):
    header, first, second, *rest = TABLES[name]
    third = rest[0] if rest else second
    damaged = [header, [*first, "more"], second[:-2], [], first, third, third]
    written(copies, name, text_of(damaged))
    found = check(*copies, today=TODAY).findings
    told = {one.subject for one in found}
    assert {f"{name}:{line} row" for line in (2, 3, 4)} <= told
    twice = [one for one in found if one.code == "duplicate" and (f"{name}:7 " in one.subject or "offers" in name)]
    assert twice


@pytest.mark.parametrize("name", ["models.csv", "exchange_rates.csv", CLOUDS, "regions.csv"])
@pytest.mark.parametrize(
    "content", [b"\n", b"\xff\xfe", b'a,b\n"open', "gbk", b"\0" * 40], ids=["blank", "bytes", "quote", "gbk", "nul"]
)
def test_an_unreadable_file_is_found(copies, name, content):
    if content == "gbk":
        content = f"{TEXTS[name]}显卡\n".encode("gbk", "replace")
    written(copies, name, content)
    assert [subject for subject in subjects(copies) if subject.startswith(name)]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("content", [b"", "header"], ids=["empty", "header alone"])
def test_an_emptied_file_is_found(copies, name, content):
    if content == "header":
        content = TEXTS[name].partition("\n")[0].encode()
    written(copies, name, content)
    assert [subject for subject in subjects(copies) if subject.startswith(name)]


@pytest.mark.parametrize("name", TABLES)
def test_a_removed_file_a_lost_column_and_one_twice_are_found(copies, name):
    header, *rows = TABLES[name]
    written(copies, name, text_of([row[1:] for row in TABLES[name]]))
    assert [subject for subject in subjects(copies) if subject.startswith(name)]
    written(copies, name, text_of([[*header, header[0]], *([*row, row[0]] for row in rows)]))
    assert f"{name}:1 {header[0]}" in subjects(copies)
    for folder in copies:
        (folder / name).unlink(missing_ok=True)
    told = subjects(copies)
    assert told or name.startswith("offers-")  # a price list may go: others remain


@pytest.mark.parametrize("name", [name for name in TABLES if name != "regions.csv"])
def test_a_line_break_inside_a_cell_is_found(copies, name):
    rows = [list(row) for row in TABLES[name]]
    rows[1][-1] += "\nmore"
    written(copies, name, text_of(rows))
    assert f"{name}:2 {rows[0][-1]}" in subjects(copies)


# ---------------------------------------------------------------- engines

SENSELESS = ("nan", "inf", "-inf", "-1", "-0.5", "1e300", "true", '"many"', "[]", "{}")
WHOLE_KEYS = ("page_tokens", "default_sequences", "batched_tokens", "mla_cache_padding", "adapter_bytes")
NUMBER_KEYS = ("memory_share", "launch_us_per_layer", "decode_bandwidth", "cache_bandwidth", "prefill_flop", "train_flop",
               "quantised_kernel", "spread")  # fmt: skip
NEVER_ZERO = {*WHOLE_KEYS, "memory_share", "decode_bandwidth", "cache_bandwidth", "prefill_flop", "quantised_kernel"}
SPANS = ("graph_gib", "non_torch_gib", "reserved_over_allocated")
SENSELESS_SPANS = (
    "[nan, nan, nan]",
    "[-1, 0, 1]",
    "[1, 2, inf]",
    "[3, 2, 1]",
    "[1, 2]",
    "[]",
    "1.0",
    '["a", "b", "c"]',
)


def engine_cases():
    for key in (*WHOLE_KEYS, *NUMBER_KEYS):
        yield from ((key, value) for value in (*SENSELESS, *(["0"] if key in NEVER_ZERO else [])))
    for key in SPANS:
        yield from ((key, value) for value in SENSELESS_SPANS)
    yield from (("default_context", value) for value in ('"all"', '"-1"', '""', '"²"', "4096", '"1e5"'))
    yield from (
        ("min_compute_capability", value)
        for value in ("[]", "[8]", "[8, 99]", "[-1, 0]", '["a", 0]', "8.9", "[nan, 1]")
    )
    yield from (("seen_at", value) for value in ('"soon"', '""', "1", '"20261130"'))
    yield from (("id", value) for value in ('""', "1", '"a,b"'))
    yield from (("vendors", value) for value in ('["Nvidia"]', '"NVIDIA"', "[1]"))


@pytest.mark.parametrize(("key", "value"), list(engine_cases()))
def test_a_senseless_key_of_an_engine_is_found(key, value):
    name = next(name for name in ("vllm.toml", "fsdp.toml") if f"\n{key} = " in ENGINES[name])
    lines = [f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in ENGINES[name].splitlines()]
    document = tomllib.loads(
        re.sub(r"weight_formats = \[\n.*?\n\]", "weight_formats = []", "\n".join(lines), flags=re.DOTALL)
    )
    found = list(engine_faults(name, document, formats=KNOWN.formats, vendors=KNOWN.vendors))
    assert any(key in one.subject or key in one.observed for one in found), found
    assert all(one.code and one.subject and one.action for one in found)


@pytest.mark.parametrize("section", ["", "serving.", "training.", "speed."])
def test_every_source_of_an_engine_is_looked_at(copies, section):
    name = "vllm.toml" if section in {"", "serving."} else "fsdp.toml"
    head, mark, tail = ENGINES[name].partition(f"[{section.rstrip('.')}]") if section else ("", "", ENGINES[name])
    for said in ('""', '"see shared/research"'):
        lines, done = [], False
        for line in tail.splitlines():
            swap = line.startswith("source = ") and not done
            done = done or swap
            lines.append(f"source = {said}" if swap else line)
        (copies[0] / "engines" / name).write_text(head + mark + "\n".join(lines), "utf-8")
        assert f"engines/{name} {section}source" in subjects(copies)


def test_two_engines_of_one_id_and_bad_toml_are_found(copies):
    (copies[0] / "engines" / "zz.toml").write_text(ENGINES["vllm.toml"], "utf-8")
    assert subjects(copies) == {"engines/zz.toml id"}
    for content in (b"id = ", b"\xff", b"a = " + b"[" * 5000):
        (copies[0] / "engines" / "zz.toml").write_bytes(content)
        assert subjects(copies) == {"engines/zz.toml"}
