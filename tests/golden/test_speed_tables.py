"""Tables of speeds as people have them: other separators, missing columns, nonsense in cells."""

import json
import math
from functools import cache
from pathlib import Path

import pytest
import score
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import speed
from scoring.cells import Row, Unreadable, read_rows

HERE = Path(__file__).parent
HELD_OUT, DIFFUSION = HERE / "speed-held-out.csv", HERE / "speed-diffusion.csv"
NONSENSE = st.one_of(
    st.sampled_from(["", "0", "-1", "nan", "inf", "1e308", "1e400", "9" * 30, "-0.5", "x", "{}", "[]", "null", "max"]),
    st.sampled_from(['{"hidden_size": 1}', '{"attention_heads": 0, "hidden_size": 8}', "9000x9000", "10000 frames"]),
    st.text(max_size=8),
)


@cache
def book():
    return score.book_with(None)


@cache
def rows():
    tables = ("speed-measured.csv", "speed-measured-2.csv", "speed-diffusion.csv", "speed-training.csv")
    return [row for table in tables for row in read_rows(HERE / table)][::7]


COLUMNS = (
    "model_id", "arch_json", "gpu_id", "power_limit_w", "norm_task", "norm_engine", "engine_version", "weight_format",
    "dp", "tp", "pp", "cp", "gpu_count", "micro_batch", "global_batch", "concurrency", "batch", "prompt_tokens",
    "new_tokens", "seq_len", "input_len", "output_len", "norm_metric", "norm_value", "note",
)  # fmt: skip


@given(row=st.sampled_from(rows()), cells=st.dictionaries(st.sampled_from(COLUMNS), NONSENSE, max_size=4))
@settings(deadline=None)
@pytest.mark.parametrize("verdict", ["yes", "suspect"])
def test_nonsense_in_a_row_is_a_reason_not_an_end(verdict, row, cells):
    found = speed.score([Row({**row.cells, "score": verdict, **cells})], book())
    assert found["scored"] + sum(found["skipped"].values()) + len(found["suspect"]) == 1
    json.dumps(found, allow_nan=False)
    has_measurement = speed.measured_of(Row({**row.cells, **cells})) is not None
    for each in found["suspect"]:
        assert each["not_estimated"] or (each["measured_over_estimate"] is not None) == has_measurement


@pytest.mark.parametrize(("separator", "mark"), [(",", ""), (",", "\ufeff"), (";", ""), ("\t", ""), (";", "\ufeff")])
def test_a_table_is_the_same_in_every_spelling(tmp_path, separator, mark):
    whole = read_rows(HELD_OUT)[:12]
    columns = list(whole[0].cells)[::-1]
    lines = [separator.join(columns)]
    lines += [separator.join(f'"{row.cells[name]}"' for name in columns) for row in whole]
    path = tmp_path / "rows.csv"
    path.write_text(mark + "\r\n".join(lines), encoding="utf-8")
    assert speed.score(read_rows(path), book()) == speed.score(whole, book())


def test_a_comma_between_semicolons_is_a_decimal_point(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id;norm_value;note\na;26,5;1,2 or so\n")
    assert read_rows(path)[0].number("norm_value") == 26.5
    assert read_rows(path)[0].text("note") == "1,2 or so"


def test_a_table_without_what_every_row_needs_says_which_columns(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    path.write_text("id,gpu_id,norm_task\na,l4,decode\n")
    assert score.main(["speed", str(path)]) == 2
    assert "no column score, norm_value; give" in capsys.readouterr().err
    for empty in ("", "\n\n"):
        path.write_text(empty)
        with pytest.raises(Unreadable, match="give a CSV file with a line of column names"):
            read_rows(path)


def test_the_score_has_the_names_of_the_memory_score_and_its_own(capsys):
    assert score.main(["speed", str(HELD_OUT), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    shared = {"rows", "score_yes", "scored", "median_abs_error", "p90_abs_error", "bias", "skipped", "by_task"}
    assert found.keys() >= shared | {"by_engine", "by_source", "worst", "coverage_80", "pair_order", "by_gpu"}
    for group in ("by_task", "by_engine", "by_gpu", "by_source", "by_group"):
        assert sum(each["scored"] for each in found[group].values()) == found["scored"]


@pytest.mark.parametrize("table", ["speed-measured.csv", "speed-measured-2.csv"])
def test_a_picture_or_video_is_the_same_in_every_table_that_has_it(table):
    """Tables without the columns of diffusion give frames in the note and cards in the layout."""
    whole = {row.text("id"): row for row in read_rows(DIFFUSION)}
    found = [row for row in read_rows(HERE / table) if row.text("id") in whole]
    assert len(found) >= 9
    for row in found:
        there = speed.scored(whole[row.text("id")], book()).predicted.likely
        assert speed.scored(row, book()).predicted.likely == pytest.approx(there)


def test_a_video_of_unknown_length_is_not_scored():
    row = next(row for row in read_rows(DIFFUSION) if row.text("norm_metric") == "s_per_video")
    found = speed.score([Row({**row.cells, "output_len": "50 steps", "note": ""})], book())
    assert list(found["skipped"]) == ["no number of frames stated (output_len)"]
    assert math.isclose(speed.scored(row, book()).measured, row.number("norm_value"))
