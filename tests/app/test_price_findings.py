"""Lines of price lists that did not count are told in every answer, by file, with the next step."""

import shutil
from datetime import date

import pytest
from tests.app.own import offer
from tests.cli.ask import DAY, run

from rackrate import api
from rackrate.app import context
from rackrate.app.context import _bundled
from rackrate.offers import catalog

AT = date(2026, 11, 30)


@pytest.fixture
def spoilt(tmp_path, monkeypatch):
    """Price lists with two lines that cannot be read, and a file with another header, in place of the bundled ones."""
    shutil.copytree(catalog.DATA, tmp_path / "data")
    clouds, china = (tmp_path / "data" / f"offers-{name}.csv" for name in ("clouds", "china"))
    clouds.write_text(clouds.read_text("utf-8") + "half,a,line\nanother,half\n", "utf-8")
    china.write_text(china.read_text("utf-8").replace("provider,", "seller,", 1), "utf-8")
    found = catalog.load(_bundled(), at=AT, data=tmp_path / "data")
    monkeypatch.setattr(context, "_offers", lambda at, own: found)


ASKED = {
    "plan": lambda: api.plan({"model": "meta-llama/Llama-2-7b-hf", "task": "lora"}, at=AT),
    "fit": lambda: api.fit({"model": "meta-llama/Llama-2-7b-hf", "limits": {"gpus": ["a40"]}}, at=AT),
    "gpu": lambda: api.gpu("a40", at=AT),
    "offers": lambda: api.offers(at=AT),
}


@pytest.mark.usefixtures("spoilt")
@pytest.mark.parametrize("verb", ASKED)
def test_every_answer_tells_what_was_not_read(verb):
    told = [w for w in ASKED[verb]().warnings if w.code == "prices_unread"]
    assert [(w.subject, w.observed) for w in told] == [
        ("offers-china.csv", "offers-china.csv: none of its lines could be read"),
        ("offers-clouds.csv", "offers-clouds.csv: 2 lines left out that could not be read"),
    ]
    assert {w.action for w in told} == {"`rackrate facts check` says what is wrong with each"}


@pytest.mark.usefixtures("spoilt")
@pytest.mark.parametrize("verb", [("plan", "examples/lora-7b.toml"), ("offers",)])
def test_the_screen_tells_it_too(verb, monkeypatch):
    text = " ".join(run(*verb, "--as-of", DAY).out.split())
    assert "! prices unread: offers-china.csv: none of its lines could be read; offers-clouds.csv: 2 lines left" in text


@pytest.mark.parametrize("written", ["20261101", "2026-W44-7", "2026-11-1", "01.11.2026"])
def test_an_own_price_of_a_day_in_another_spelling_is_told(own, written):
    here = own({"offers.csv": offer(observed_on=written)})
    assert here.catalog.own == ()
    assert [f.subject for f in here.findings] == ["offers.csv:2 observed_on"]


def test_an_own_price_of_a_later_day_is_told(own):
    here = own({"offers.csv": offer(observed_on="2026-12-01")})
    assert here.catalog.own == ()
    assert [(f.code, f.subject) for f in here.findings] == [("price_unseen", "offers.csv:2")]
    assert not own({}, at=date(2026, 12, 1)).findings


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("accelerator_facts.csv", "accelerator,quantity,value,unit,kind,seen_at\na40,power_limit,290,W,measured,{}\n"),
        ("billing_rules.csv", "provider,rule_key,value,unit,state,seen_at\naws,granularity_s,60,s,running,{}\n"),
        ("exchange_rates.csv", "base,currency,per_base,on\nUSD,TWD,32,{}\n"),
    ],
)
@pytest.mark.parametrize("written", ["20261101", "2026-W44-7"])
def test_a_fact_of_a_day_in_another_spelling_is_told(own, name, content, written):
    assert own({name: content.format("2026-11-01")}).findings == ()
    assert [f.code for f in own({name: content.format(written)}).findings] == ["overlay_row_ignored"]
