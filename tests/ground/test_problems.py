"""Findings and suggestions."""

from __future__ import annotations

from rackrate.problems import Code, Finding, Refused, nearest


def test_the_nearest_word_is_first() -> None:
    assert nearest("micro_bach", ["micro_batch", "global_batch", "tokens"])[0] == "micro_batch"


def test_a_part_of_a_word_is_enough() -> None:
    assert nearest("llama-2-7b", ["meta-llama/Llama-2-7b-hf", "google/gemma-2-9b"]) == ["meta-llama/Llama-2-7b-hf"]


def test_nothing_close_suggests_nothing() -> None:
    assert nearest("zzz", ["micro_batch", "tokens"]) == []
    assert nearest("ACME", ["oracle", "aws"]) == []


def test_a_refusal_carries_its_findings() -> None:
    finding = Finding(code=Code.UNKNOWN_KEY, subject="job.toml: toknes", action="use tokens")
    assert Refused([finding]).findings == (finding,)
    assert "toknes" in str(Refused([finding]))


def test_codes_are_their_own_names() -> None:
    assert all(code.value == code.name.lower() for code in Code)
