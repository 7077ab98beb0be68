"""Text in columns: nothing is lost, nothing is too wide, numbers stay whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rackrate.cli.layout import PLAIN, Table, drawn, lines_of, pairs, wrapped

words = st.text(st.sampled_from("ab1.,/-_云端算力é"), min_size=1, max_size=30)
texts = st.lists(words, min_size=1, max_size=12).map(" ".join)
widths = st.integers(8, 60)


@given(texts, widths)
def test_wrapped_text_fits_and_loses_nothing(text, width):
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(texts, widths)
def test_text_that_fits_stays_as_it_is(text, width):
    if cell_len(text) <= width:
        assert wrapped(text, width) == [text]


@pytest.mark.parametrize("unit", ["GiB", "USD/month", "%", "h,", "days)", "tokens"])
def test_a_number_is_not_parted_from_its_unit(unit):
    text = f"so many words before 15.5 {unit} and after"
    assert not [width for width in range(14, 40) if any(line.endswith("15.5") for line in wrapped(text, width))]


@pytest.mark.parametrize(("width", "lines"), [(12, ["github.com/", "owner/name"]), (20, ["github.com/owner/", "name"])])
def test_long_words_break_after_punctuation(width, lines):
    assert wrapped("github.com/owner/name", width) == lines


@given(st.lists(st.tuples(words, texts), min_size=1, max_size=5), st.integers(60, 90))
def test_pairs_fit_and_lose_nothing(rows, width):
    lines = list(lines_of([pairs(rows, style=PLAIN)], width))
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join("".join(name + text for name, text in rows).split())


def test_texts_of_pairs_hang_under_each_other():
    rows = [("算力", "some words " * 6), ("n", "one")]
    assert list(lines_of([pairs(rows, style=PLAIN)], 30)) == [
        "算力  some words some words",
        "      some words some words",
        "      some words some words",
        "n     one",
    ]


tables = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(texts, min_size=n, max_size=n).map(tuple), min_size=1, max_size=4)
)


@given(tables, st.integers(60, 100))
def test_tables_fit_and_lose_nothing(rows, width):
    titles = tuple("abcdefgh"[: len(rows[0])])
    lines = list(lines_of([drawn(Table(keys=titles, titles=titles, rows=tuple(rows)))], width))
    assert all(cell_len(plain(line)) <= width for line in lines)
    shown = "".join(plain(line) for line in lines[2:])
    assert sorted("".join(shown.split())) == sorted("".join("".join(map("".join, rows)).split()))


def test_numbers_are_never_folded():
    rows = (("x" * 70, "1234567890"),)
    table = Table(keys=("a", "b"), titles=("a", "b"), rows=rows, right=frozenset({1}))
    lines = list(lines_of([drawn(table)], 40))
    assert lines[2].endswith(" 1234567890")
    assert max(map(cell_len, map(plain, lines))) == 40


def test_wide_characters_keep_columns_in_line():
    table = Table(keys=("a", "b"), titles=("who", "n"), rows=(("恒源云", "1"), ("vast", "2")), right=frozenset({1}))
    lines = [plain(line) for line in lines_of([drawn(table)], 80)]
    assert {cell_len(line) for line in lines} == {9}


def plain(line):
    """The line without styles."""
    return line.replace("\x1b[1m", "").replace("\x1b[0m", "")
