"""Tables of measurements as strangers make them: columns that are missing, words of other engines, nonsense in cells."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import score
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import memory
from scoring.cells import Row, Unreadable, read_cells, read_rows
from scoring.memory_columns import filled
from scoring.memory_models import complete, extra_models
from scoring.memory_rows import format_of, targets_of
from scoring.memory_words import optimizer_of

HERE = Path(__file__).parent
NAMES = (
    *("rows", "scored", "skipped", "median_abs_error", "p90_abs_error", "bias", "share_above_high"),
    *("width_p50", "width_p90", "share_wrong_fit", "by_task", "by_engine", "worst"),
)
NONSENSE = st.sampled_from(["", "x", "-1", "0", "1e30", "nan", "inf", "1.5", "true", "é", "999999999999", "Q4_K_M"])


@cache
def book():
    return score.book_with(HERE / "memory-models.csv")


@cache
def rows():
    return tuple(r for r in read_rows(HERE / "memory-measured.csv") if r.text("score") == "yes")


COLUMNS = sorted({name for row in rows() for name in row.cells})


def changed(row, **cells):
    return Row({**row.cells, **cells})


def test_the_document_has_the_names_that_were_agreed():
    found = memory.score(rows(), book())
    assert set(NAMES) <= set(found)
    assert isinstance(found["worst"], list)


@pytest.mark.parametrize("engine", ["mlx", "lmdeploy", "llama-factory", "swift", "xtuner", "composer", "", "an engine"])
def test_an_engine_that_is_not_known_is_scored_as_the_plain_one(engine):
    told = [changed(r, norm_engine=engine, framework=engine) for r in rows() if r.text("norm_task") != "diffusion"]
    assert memory.score(told, book())["scored"] == len(told)


@pytest.mark.parametrize(
    "column", ["score", "measured_bytes", "norm_task", "norm_engine", "norm_batch", "norm_seq_len", "metric_id"]
)
def test_a_column_that_another_one_tells_may_be_missing(column):
    told = [Row({name: value for name, value in r.cells.items() if name != column}) for r in rows()]
    found = memory.score(told, book())
    assert found["scored"] >= 0.97 * len(told)
    assert found["median_abs_error"] < 0.02


@given(row=st.sampled_from(rows()), cells=st.dictionaries(st.sampled_from(COLUMNS), NONSENSE, max_size=4))
@settings(deadline=None)
def test_nonsense_in_a_row_is_a_reason_not_an_end(row, cells):
    found = memory.score([changed(row, **cells)], book())
    assert found["scored"] + found["bounds"]["scored"] + sum(found["skipped"].values()) + len(found["components"]) >= 1


@given(
    row=st.sampled_from(rows()),
    model=st.sampled_from(read_cells(HERE / "memory-models.csv")),
    cells=st.dictionaries(st.sampled_from(["layers", "kv_heads", "head_dim", "vocab_size", "params_total"]), NONSENSE),
)
@settings(deadline=None)
def test_nonsense_in_a_model_is_a_reason_not_an_end(row, model, cells):
    more = extra_models(book(), {"a/b": {**model, "id": "a/b", **cells}})
    found = memory.score([changed(row, model_id="a/b")], more)
    assert found["scored"] + sum(found["skipped"].values()) == 1


def test_a_model_of_few_columns_is_completed():
    told = {"hidden_size": "4096", "layers": "32", "attention_heads": "32", "params_total": "6,738,415,616"}
    row = complete(told)
    assert (row["kv_heads"], row["head_dim"], row["attn_layers_full"]) == ("32", "128", "32")
    assert row["params_active"] == row["params_total"] == "6738415616"


def test_files_of_spreadsheets_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('﻿id,norm_seq_len,measured_bytes\nA,"2,048",nan\nB\nC,1,2,3\n'.encode())
    first, second, third = read_rows(path)
    assert first.text("id") == "A"
    assert first.whole("norm_seq_len") == 2048
    assert first.number("measured_bytes") is None
    assert second.text("norm_seq_len") == ""
    assert third.number("measured_bytes") == 2


@pytest.mark.parametrize("parted", [",", ";", "\t"])
def test_columns_may_be_parted_as_spreadsheets_of_other_countries_do(tmp_path, parted):
    path = tmp_path / "rows.csv"
    number, targets = ("1,5", "q,v") if parted != "," else ("1.5", '"q,v"')
    path.write_text(
        parted.join(("id", "measured_gib", "lora_targets")) + "\n" + parted.join(("A", number, targets)) + "\n\n",
        encoding="utf-8",
    )
    (row,) = read_rows(path)
    assert row.number("measured_gib") == (None if parted == "\t" else 1.5)  # a comma is no decimal point there
    assert row.text("lora_targets") == "q,v"


@pytest.mark.parametrize("said", ["1,5", "12,34", "1,2345", "1,"])
def test_a_comma_that_parts_no_thousands_makes_no_number(said):
    assert Row({"n": said}).number("n") is None
    assert Row({"n": "1,234,567.5"}).number("n") == 1234567.5


@pytest.mark.parametrize("score_of", ["yes", "bound", "component"])
@pytest.mark.parametrize("said", ["", "true", "nan", "0", "-1"])
def test_a_row_without_a_measurement_is_a_reason_and_the_document_stays_json(score_of, said):
    told = next(
        r for r in read_rows(HERE / "memory-measured.csv") if r.text("score") == score_of and r.text("model_id")
    )
    lost = dict.fromkeys(("measured_bytes", "measured_gib", "source_value"), said)
    found = memory.score([changed(told, measured_bytes_low="", measured_bytes_high="", **lost)], book())
    json.dumps(found, allow_nan=False)
    assert found["skipped"] == {"no measurement": 1}


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_has_read_enough_is_no_fault(tmp_path, form):
    (tmp_path / "rows.csv").write_text("id,model\n" + "A,none\n" * 20, encoding="utf-8")
    read, write = os.pipe()
    os.close(read)
    command = (sys.executable, score.__file__, "memory", str(tmp_path / "rows.csv"), *form)
    with os.fdopen(write, "wb") as closed:
        ended = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_file_that_cannot_be_read_says_what_to_give(tmp_path, capsys):
    assert score.main(["memory", str(tmp_path / "none.csv")]) == 2
    assert "give a CSV file" in capsys.readouterr().err
    (tmp_path / "binary.csv").write_bytes(b"id\n\xff\xfe")
    with pytest.raises(Unreadable):
        read_rows(tmp_path / "binary.csv")


def test_words_of_other_engines():
    assert targets_of("query_key_value,dense") == ("q", "k", "v", "o")
    assert targets_of("Wqkv;fc1|fc2") == ("q", "k", "v", "up", "down")
    assert optimizer_of("paged_adamw_8bit") == "paged-adamw-8bit"
    assert optimizer_of("AdamW8bit") == "adamw-8bit"
    assert format_of(Row({"weight_format": "Q4_K_M"})) == "gguf-q4_k_m"
    assert format_of(Row({"weight_format": "awq-int4-g128 GEMM"})) == "awq-int4"


def test_a_row_is_filled_from_what_was_printed():
    told = {"model": "m", "task": "full_ft", "framework": "torchtune 0.6", "precision": "bf16", "measured_gib": "2"}
    row = filled(Row(told))
    assert row.text("norm_task") == "full_finetune"
    assert row.text("norm_engine") == "torchtune"
    assert row.number("measured_bytes") == 2 * 2**30
    assert row.text("score") == "yes"
    parted = filled(Row({"score": "component", "task": "inference:kv", "measured_gib": "2"}))
    assert parted.number("measured_bytes") == 2 * 2**30
    assert parted.text("norm_task") == ""


def test_a_model_that_is_not_known_is_one_it_was_tuned_from_or_one_of_its_size_and_the_score_says_which():
    row = next(r for r in rows() if r.text("model_id") == "meta-llama/Llama-2-7b-hf")
    told = [
        changed(row, id="tuned", model="", model_id="someone/Llama-2-7b-chat-hf", params_b=""),
        changed(row, id="size", model="", model_id="someone/Secret", params_b="6.74"),
        changed(row, id="unknown", model="", model_id="someone/Secret", params_b=""),
        changed(row, id="no such size", model="", model_id="someone/Secret", params_b="5000"),
    ]
    found = memory.score(told, book())
    assert found["scored"] == 2
    assert found["stand_ins"]["tuned"] == "meta-llama/Llama-2-7b-hf"
    assert set(found["stand_ins"]) == {"tuned", "size"}
    assert found["skipped"] == {"model not known: give its numbers with --models": 2}
