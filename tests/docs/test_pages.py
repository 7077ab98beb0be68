"""What the README and the pages show is what rackrate says: commands run, Python runs, links lead somewhere."""

import doctest
import functools
import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.claims.asking import AS_OF, printed

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # as the scripts there find each other

import build_charts  # noqa: E402
import build_docs as builder  # noqa: E402
import build_picture  # noqa: E402
from claims import asking  # noqa: E402

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(>>> .*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
MORE = "..."
"""A line that stands for the rest of an output."""


def name(path):
    return str(path.relative_to(ROOT))


def commands():
    """Each ``$ rackrate ...`` of a console block, settings before it or not, with the lines shown under it."""
    for page in PAGES:
        for number, block in enumerate(CONSOLE.findall(page.read_text("utf-8")), start=1):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                if command.startswith(("rackrate ", "RACKRATE_FACTS=")):
                    yield pytest.param(command, shown, id=f"{name(page)} {number}: {command}")


def lines(text):
    return [line.rstrip() for line in text.rstrip().split("\n")]


@functools.cache
def said_by(command):
    return lines(printed(command))


@pytest.mark.parametrize(("command", "shown"), list(commands()))
def test_a_command_prints_what_the_page_shows(command, shown):
    """As of the day of the facts; blanks at the ends of lines do not count."""
    said, expected = said_by(command), lines(shown)
    cut_before, cut_after = expected[0] == MORE, expected[-1] == MORE
    expected = expected[cut_before : len(expected) - cut_after]
    first = said.index(expected[0]) if cut_before and expected[0] in said else 0
    said = said[first : first + len(expected)] if cut_after else said[first:]
    if expected != [""]:
        assert expected == said, "run: python tools/build_docs.py"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_file_on_a_page_is_the_file(page):
    for found in builder.FILE.finditer(page.read_text("utf-8")):
        assert (ROOT / found["path"]).read_text("utf-8").strip() in found["text"], "run: python tools/build_docs.py"


def python_blocks():
    for page in PAGES:
        found = PYTHON.findall(page.read_text("utf-8"))
        if found:
            yield pytest.param("\n".join(found), id=name(page))


@pytest.mark.parametrize("text", list(python_blocks()))
def test_python_does_what_the_page_shows(text):
    examples = doctest.DocTestParser().get_doctest(text, {}, "page", None, 0)
    report: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=report.append)
    assert tried > 0
    assert not failed, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"


def test_the_readme_shows_the_verbs_the_picture_and_two_commands():
    text = (ROOT / "README.md").read_text("utf-8")
    for verb in ("plan", "fit", "gpu"):
        assert f"\n$ rackrate {verb} " in text
    assert "docs/images/plan.svg" in text
    first_screen = text.split("\n## ")[0]
    assert "make plan" in first_screen
    assert "make test" in first_screen


@pytest.mark.parametrize("picture", build_picture.PICTURES)
def test_a_picture_shows_the_real_output(picture):
    svg = (ROOT / picture).read_text("utf-8")
    drawn = re.sub(r"&#160;", " ", " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))
    command, _ = build_picture.PICTURES[picture]
    for line in said_by(command)[:12]:
        for word in line.split():
            assert html.escape(word) in drawn or not word.isascii()


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").iterdir()), ids=lambda path: path.name)
def test_a_picture_is_made_shown_and_fetches_nothing(picture):
    assert f"docs/images/{picture.name}" in {**build_picture.PICTURES, **build_charts.CHARTS}
    assert any(f"images/{picture.name})" in page.read_text("utf-8") for page in PAGES)
    svg = picture.read_text("utf-8")
    assert not re.search(r"url\(\s*[\"']?http|@import|@font-face|<image|<script|href", svg)
    assert "<title>" in svg or picture.name in {name.rpartition("/")[2] for name in build_picture.PICTURES}


def test_the_chart_of_the_frontier_has_a_mark_for_each_plan_on_it():
    answer = asking.plan(build_charts.FRONTIER)
    svg = (ROOT / "docs" / "images" / "frontier.svg").read_text("utf-8")
    assert len(re.findall(r'r="4"', svg)) == len(answer.frontier) > 3
    assert len(re.findall(r'r="2.5"', svg)) == len(answer.plans)


def test_the_chart_of_the_crossover_crosses():
    """The 40 GB card is the cheaper one for one stream, the 80 GB card for a full cache."""
    title, lines = build_charts._per_million()
    small, large = (dict(lines[card]) for card in ("a100-sxm4-40", "a100-sxm4-80"))
    assert small[1] < large[1]
    assert small[20] > large[20]
    assert html.escape(title) in (ROOT / "docs" / "images" / "crossover.svg").read_text("utf-8")


# ---------------------------------------------------------------- the script that makes the pages


@pytest.fixture
def build_docs(monkeypatch, tmp_path):
    """The script, with two small pages in an empty folder."""
    monkeypatch.setattr(builder, "ROOT", tmp_path)
    monkeypatch.setattr(builder, "PAGES", {"a.md": lambda: "alpha\n", "b.md": lambda: "beta\n"})
    return builder


SAID = ["title", "", "  Rent  one", "Cost  two", "", "card", "----", "a40", "", "end"]


@pytest.mark.parametrize(
    ("marker", "shown"),
    [
        ("", SAID),
        (", 2 lines", SAID[:2]),
        (", 1 paragraph", SAID[:1]),
        (", 2 paragraphs", SAID[:4]),
        (", from `Rent`, to `card`", SAID[2:5]),
        (", from `card`, 1 paragraph", SAID[5:8]),
        (", from `card`, 9 paragraphs", SAID[5:]),
        (", from `Cost`, 1 line", SAID[3:4]),
    ],
)
def test_a_page_can_show_a_part_of_an_output(marker, shown):
    found = builder.BLOCK.search(
        f"<!-- output of `rackrate x`{marker}: begin -->\n<!-- output of `rackrate x`: end -->"
    )
    first, last = builder.shown_part(SAID, found)
    assert SAID[first:last] == shown


def test_a_part_that_is_not_there_is_an_error():
    found = builder.BLOCK.search("<!-- output of `rackrate x`, from `Rant`: begin -->\n<!-- output of")
    with pytest.raises(ValueError, match="no line begins with 'Rant'"):
        builder.shown_part(SAID, found)


def test_every_marker_is_understood():
    """A marker with a slip in it would leave an old output on the page, or none."""
    for page in PAGES:
        text = page.read_text("utf-8")
        found = [*builder.BLOCK.finditer(text), *builder.FILE.finditer(text)]
        assert text.count(": begin -->") == len(found), name(page)
        assert text.count(": begin -->") == text.count(": end -->"), name(page)
        assert not found or name(page) in builder.PAGES


def run(script, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["build_docs.py", *arguments])
    return script.main()


def test_pages_are_written_once(build_docs, monkeypatch, tmp_path, capsys):
    assert run(build_docs, monkeypatch) == 0
    assert (tmp_path / "a.md").read_text() == "alpha\n"
    assert capsys.readouterr().out == "a.md: written\nb.md: written\n"
    assert run(build_docs, monkeypatch, "--check") == 0


def test_a_stale_page_fails_the_check_and_is_named_with_the_command(build_docs, monkeypatch, tmp_path, capsys):
    run(build_docs, monkeypatch)
    (tmp_path / "b.md").write_text("old\n")
    capsys.readouterr()
    assert run(build_docs, monkeypatch, "--check") == 1
    assert capsys.readouterr().err == "b.md: stale; run `python tools/build_docs.py b.md`\n"
    assert (tmp_path / "b.md").read_text() == "old\n"
    assert run(build_docs, monkeypatch, "--check", "a.md") == 0


def test_an_unknown_page_is_refused(build_docs, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        run(build_docs, monkeypatch, "c.md")
    assert "choose from a.md, b.md" in capsys.readouterr().err


def test_every_claim_is_on_the_page_of_claims():
    text = (ROOT / "docs" / "claims.md").read_text("utf-8")
    assert re.findall(r"^### (C\d\d):", text, re.MULTILINE) == [f"C{number:02}" for number in range(1, 55)]
    shown = text.count("- **Computed:**")
    assert shown + text.count("Not shown yet") + text.count("Not a claim that a computation can show") == 54
    assert str(AS_OF) in text


def test_a_claim_can_be_asked_for_by_its_id():
    answer = subprocess.run(
        [sys.executable, "-m", "tools.claims", "C30"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "80 GB at 18 CNY = 0.225" in answer.stdout
