"""Prices of hosted APIs: the data file is what the library says, names mean one model, one price holds at a time."""

import runpy
from datetime import date
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from rackrate.facts import bundled
from rackrate.facts.hosted import COLUMNS, Tiered, by_model, hosted_price, in_force, minutes, tiered
from rackrate.facts.hosted_names import Match, billions, family, is_named, matched, parted

TOOL = Path(__file__).parents[2] / "tools" / "build_hosted.py"
AT = date(2026, 11, 30)
SMALL, LARGE = 8_030_261_248, 70_553_706_496


def price(**cells):
    """A price, a dollar a million tokens in and out unless ``cells`` say otherwise."""
    row = dict.fromkeys(COLUMNS, "") | {
        "provider": "acme",
        "model": "m",
        "currency": "USD",
        "input_per_million": "1",
        "output_per_million": "1",
        "seen_at": "2026-11-30",
        "source": "a test",
    }
    return hosted_price(row | cells)


# ---------------------------------------------------------------- the data file


def built():
    """The tool, with the library that it reads."""
    try:
        installed = version("genai-prices")
    except PackageNotFoundError:
        pytest.skip("genai-prices is not installed: it is read when the data file is made")
    tool = runpy.run_path(str(TOOL))
    if installed != tool["VERSION"]:
        pytest.skip(f"genai-prices {installed} is installed, the data file is of {tool['VERSION']}")
    return tool


def test_the_data_file_is_what_the_tool_writes_from_the_library():
    tool = built()
    assert tool["FILE"].read_text("utf-8") == tool["text"]()


@pytest.mark.parametrize("at", [date(2026, 9, 1), date(2026, 10, 20), AT, date(2027, 2, 1)])
def test_a_random_hour_costs_what_the_library_asks_for(at):
    """The price of each hour of a day, by the library and by the data file, for every model that the file has."""
    tool = built()
    from datetime import UTC, datetime

    listed = {(p.id, m.id): m for p in tool["providers"] for m in p.models}
    for key, prices in by_model(bundled.hosted(frozenset({""}))).items():
        usual = [one for one in prices if not one.processing]
        for hour in range(24) if any(one.hours_utc for one in usual) else (12,):
            moment = datetime(at.year, at.month, at.day, hour, 45, tzinfo=UTC)
            theirs = listed[key].get_prices(moment)
            held = [t.price for t in in_force(usual, at) if t.price.holds_at(hour * 60 + 45)]
            for tokens in (1000, 10**6):
                assert amounts(held[-1], tokens) == pytest.approx(amounts_of(theirs, tokens), rel=1e-6), (key, hour)


def amounts(held, prompt_tokens):
    return [float(p.at(prompt_tokens)) for p in (held.input_per_million, held.output_per_million)]


def amounts_of(theirs, prompt_tokens):
    """The same by the library's own reckoning of a million tokens."""
    from genai_prices.types import calc_unit_price

    return [float(calc_unit_price(p, 10**6, prompt_tokens, 10**6)) for p in (theirs.input_mtok, theirs.output_mtok)]


def test_only_rows_with_one_of_the_words_are_read():
    some = bundled.hosted(frozenset({"mixtral"}))
    assert some
    assert len(some) < len(bundled.hosted(frozenset({"mixtral", "llama"}))) < len(bundled.hosted(frozenset({""})))
    assert bundled.hosted(frozenset({"no such word"})) == ()


# ---------------------------------------------------------------- which price holds


def test_the_last_price_that_has_begun_counts():
    old, new, to_come = (price(input_per_million=n, effective_from=day) for n, day in (
        ("3", ""), ("2", "2026-11-30"), ("1", "2026-12-01")
    ))  # fmt: skip
    assert [t.price for t in in_force([old, new, to_come], AT)] == [new]
    assert [t.price for t in in_force([old, new, to_come], date(2026, 11, 29))] == [old]
    assert in_force([to_come], AT) == ()


def test_prices_by_the_hour_hold_for_their_share_of_the_day():
    usual, dear, late = price(), price(input_per_million="2", hours_utc="00:30-16:30"), price(hours_utc="23:00-01:00")
    shares = {t.price: t.share for t in in_force([usual, dear, late], AT)}
    assert shares == {usual: Decimal("6.5") / 24, dear: Decimal("15.5") / 24, late: Decimal(2) / 24}


def test_a_newer_price_ends_the_hours_of_an_older_one():
    dear, new = price(hours_utc="00:30-16:30"), price(input_per_million="2", effective_from="2026-11-01")
    assert [(t.price, t.share) for t in in_force([price(), dear, new], AT)] == [(new, 1)]


def test_a_tier_begins_above_its_number_of_tokens():
    read = tiered("1.25|200000:2.5|500000:4")
    assert [read.at(n) for n in (0, 200_000, 200_001, 500_001)] == [Decimal(n) for n in ("1.25", "1.25", "2.5", "4")]
    assert tiered("0.4") == Tiered(base=Decimal("0.4"))


@pytest.mark.parametrize("text", ["", "a", "-1", "nan", "inf", "1|", "1|5", "1|a:2", "1|5:2|3:1", "1|-5:2", "1:2"])
def test_no_price(text):
    with pytest.raises(ValueError, match=r"."):
        tiered(text)


@pytest.mark.parametrize("text", ["", "1-2", "01:00", "01:00-", "24:00-01:00", "01:60-02:00", "01:00-01:00", "a-b"])
def test_no_hours(text):
    with pytest.raises(ValueError, match=r"."):
        minutes(text)


# ---------------------------------------------------------------- names

LLAMA, LLAMA_70 = "meta-llama/Meta-Llama-3.1-8B", "meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize(
    ("model", "params", "hosted", "level"),
    [
        (LLAMA, SMALL, "llama-3.1-8b-instruct", Match.TUNED),
        (LLAMA, SMALL, "meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo", Match.TUNED),
        (LLAMA, SMALL, "accounts/fireworks/models/llama-v3p1-8b-instruct", Match.TUNED),
        (LLAMA, SMALL, "meta.llama3-1-8b-instruct-v1:0", Match.TUNED),
        (LLAMA, SMALL, "us.meta.llama3-1-8b-instruct-v1:0", Match.TUNED),
        (LLAMA, SMALL, "@cf/meta/llama-3.1-8b-instruct-fp8-fast", Match.TUNED),
        (LLAMA, SMALL, "llama-3.1-8b-instant", Match.SAME),
        (LLAMA_70, LARGE, "Meta-Llama-3_3-70B-Instruct", Match.SAME),
        (LLAMA_70, LARGE, "llama-3.3-70b-versatile", Match.TUNED),
        # another size, version, kind
        (LLAMA, SMALL, "llama-3.1-70b-instruct", None),
        (LLAMA, SMALL, "llama-3-8b-instruct", None),
        (LLAMA, SMALL, "llama-3.1-80b", None),
        (LLAMA, SMALL, "llama-guard-3.1-8b", None),
        (LLAMA, SMALL, "deepseek-r1-distill-llama-8b", None),
        ("Qwen/Qwen2.5-1.5B-Instruct", 1_543_714_304, "qwen2.5-5b-instruct", None),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512, "qwen2.5-coder-7b-instruct", None),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512, "qwen2.5-vl-7b-instruct", None),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624, "qwen3-30b-a3b-fp8", Match.SAME),
        ("Qwen/Qwen3-30B-A3B", 30_532_122_624, "qwen3-32b", None),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704, "mixtral-8x7b-instruct-v0.1", Match.TUNED),
        ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704, "mixtral-8x22b-v0.1", None),
        ("deepseek-ai/DeepSeek-V2", 235_741_434_880, "deepseek-v2-lite", None),
        ("openai/whisper-large-v3", 1_543_490_560, "whisper-large-v3-turbo", Match.UNCLEAR),
        # releases
        ("deepseek-ai/DeepSeek-V3", 671_026_419_200, "deepseek-chat-v3-0324", Match.UNCLEAR),
        ("deepseek-ai/DeepSeek-V3-0324", 671_026_419_200, "deepseek/deepseek-chat-v3-0324", Match.TUNED),
        ("deepseek-ai/DeepSeek-V3", 671_026_419_200, "deepseek-chat", None),
        ("deepseek-ai/DeepSeek-R1-0528", 671_026_419_200, "deepseek-r1*", Match.SAME),
        ("deepseek-ai/DeepSeek-R1-0528", 671_026_419_200, "deepseek-r1", Match.UNCLEAR),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", LARGE, "deepseek-r1*", None),
        ("Qwen/Qwen3-235B-A22B", 235_093_634_560, "qwen3-235b-a22b-2507", Match.UNCLEAR),
        ("mistralai/Mistral-Large-Instruct-2407", 122_610_069_504, "mistral-large-2411", None),
        ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572_403_200, "mistral-small-2603", None),
        ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572_403_200, "mistral-small", None),
        # a size that only one name says
        ("deepseek-ai/DeepSeek-R1", 671_026_419_200, "deepseek-r1-671b", Match.SAME),
        ("bigscience/bloom", 176_247_271_424, "bloom-7b", None),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 107_769_861_120, "llama-4-scout", Match.UNCLEAR),
        ("", SMALL, "", None),
        ("8b", SMALL, "8b", None),
    ],
)
def test_names(model, params, hosted, level):
    assert matched(model, params, [hosted]) == level


def test_the_surest_of_several_names_counts():
    assert matched("deepseek-ai/DeepSeek-V3", 671_026_419_200, ["deepseek-v3-0324", "deepseek-v3"]) is Match.SAME


def test_no_bundled_model_is_taken_for_a_hosted_one_whose_name_says_another_size():
    """Every match of every bundled model: where the hosted model's own name says a total size, it is the model's."""
    book, hosted = bundled.load(), by_model(bundled.hosted(frozenset({""})))
    found = 0
    for name in book.model_ids:
        model = book.model(name)
        ours = parted(name)
        for provider, called in hosted:
            if matched(name, model.params_total, [called]) is None:
                continue
            found += 1
            theirs = parted(called)
            if theirs.sizes != ours.sizes and billions(theirs) is not None:
                assert billions(theirs) * 1e9 == pytest.approx(model.params_total, rel=0.25), (name, provider, called)
    assert found > 200


def test_models_that_are_sold_have_a_family_by_which_rows_are_found():
    """What is left out unread would not have matched: reading all rows finds no more."""
    every = bundled.hosted(frozenset({""}))
    book = bundled.load()
    for name in book.model_ids[::7]:
        params = book.model(name).params_total
        some = bundled.hosted(frozenset({family(name)})) if family(name) else ()
        assert names_matched(every, name, params) == names_matched(some, name, params)


def names_matched(prices, name, params):
    return {k for k, v in by_model(prices).items() if matched(name, params, (k[1], *v[0].names))}


@pytest.mark.parametrize("wanted", ["acme/M-1", " m-1 ", "M-1", "shop:m-1", "shop:acme/m-1", "m-one"])
def test_a_hosted_model_is_called_by_any_of_its_names(wanted):
    assert is_named(wanted, "Shop", ("acme/m-1", "m-one*"))


@pytest.mark.parametrize("wanted", ["", "m", "m-", "other:m-1", "acme"])
def test_a_part_of_a_name_is_no_name(wanted):
    assert not is_named(wanted, "Shop", ("acme/m-1", "m-one*"))
