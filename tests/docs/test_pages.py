"""What the README and the pages show is what rackrate says: commands run, Python runs, links lead somewhere."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.claims.asking import AS_OF, printed

ROOT = Path(__file__).parents[2]
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
        for block in CONSOLE.findall(page.read_text("utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                if command.startswith(("rackrate ", "RACKRATE_FACTS=")):
                    yield pytest.param(command, shown, id=f"{name(page)}: {command}")


@pytest.mark.parametrize(("command", "shown"), list(commands()))
def test_a_command_prints_what_the_page_shows(command, shown):
    """As of the day of the facts; blanks at the ends of lines do not count."""
    said = [line.rstrip() for line in printed(command).rstrip().split("\n")]
    expected = [line.rstrip() for line in shown.rstrip().split("\n")]
    if expected[-1] == MORE:
        expected = expected[:-1]
        said = said[: len(expected)]
    if expected != [""]:
        assert expected == said, "run: python tools/build_docs.py"


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


def test_the_picture_shows_the_real_output_and_fetches_nothing():
    svg = (ROOT / "docs" / "images" / "plan.svg").read_text("utf-8")
    drawn = re.sub(r"&#160;", " ", " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))
    said = printed("rackrate plan examples/lora-7b.toml").split("\n")
    for line in said[:6]:
        for word in line.split():
            assert word.replace("'", "&#x27;") in drawn or not word.isascii()
    assert not re.search(r"url\(\s*[\"']?http|@import|@font-face|<image|href", svg)


# ---------------------------------------------------------------- the script that makes the pages


@pytest.fixture
def build_docs(monkeypatch, tmp_path):
    """The script, with two small pages in an empty folder."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import build_docs as script

    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "PAGES", {"a.md": lambda: "alpha\n", "b.md": lambda: "beta\n"})
    return script


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
