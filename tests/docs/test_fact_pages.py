"""The tables of facts hold everything that is bundled, and cite each source that they name."""

import re
import sys
from pathlib import Path

import pytest

from rackrate.app.context import facts
from rackrate.facts import bundled

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))  # as the scripts there find each other

import fact_pages  # noqa: E402


def text_of(page):
    return (ROOT / "docs" / page).read_text("utf-8")


@pytest.mark.parametrize(
    ("page", "ids"),
    [
        ("facts-cards.md", lambda: facts().accelerators),
        ("facts-models.md", lambda: facts().model_ids),
        ("facts-engines.md", lambda: (*facts().engine_ids, *facts().formats)),
        ("facts-providers.md", lambda: (*facts().billing, *(each.id for each in bundled.providers()))),
    ],
)
def test_everything_that_is_bundled_has_a_row(page, ids):
    text = text_of(page)
    missing = [name for name in ids() if f"| `{name}` |" not in text]
    assert not missing


def test_every_billing_rule_and_access_fact_has_a_row():
    text = text_of("facts-providers.md")
    rules = sum(len(rules.rules) for rules in facts().billing.values())
    billed, asked = text.partition("## Billing rules")[2].split("## Access")
    assert billed.count("\n| `") == rules
    assert asked.count("\n| `") == len(bundled.access())


@pytest.mark.parametrize("page", [name for name in fact_pages.FACT_PAGES if name != "docs/facts.md"])
def test_every_footnote_is_cited_and_there(page):
    text = text_of(Path(page).name)
    noted = re.findall(r"^\[\^(\d+)\]: \S", text, re.MULTILINE)
    assert noted == [str(number) for number in range(1, len(noted) + 1)]
    assert set(re.findall(r"\[\^(\d+)\](?!:)", text)) == set(noted)


def test_every_row_of_a_card_has_a_source():
    rows = [line for line in text_of("facts-cards.md").splitlines() if line.startswith("| `")]
    assert len(rows) > len(facts().accelerators)
    assert not [row for row in rows if "[^" not in row]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("AWS price list", "AWS price list"),
        (
            "github.com/runpod/docs (2026-08-20)",
            "[github.com/runpod/docs](https://github.com/runpod/docs) (2026-08-20)",
        ),
        ("https://docs.lambda.ai/billing", "[https://docs.lambda.ai/billing](https://docs.lambda.ai/billing)"),
        ("QLoRA, arXiv 2305.14314: blocks", "QLoRA, [arXiv 2305.14314](https://arxiv.org/abs/2305.14314): blocks"),
        (
            "NVIDIA/DCGM issue 152 (400 W); more",
            "[NVIDIA/DCGM issue 152](https://github.com/NVIDIA/DCGM/issues/152) (400 W); more",
        ),
        ("a; stas00/ml-engineering", "a; [stas00/ml-engineering](https://github.com/stas00/ml-engineering)"),
        ("see src/a_b.py", "see src/a\\_b.py"),
        ("vllm/engine/arg_utils.py", "vllm/engine/arg\\_utils.py"),
        ("10240:0.09|inf:0", "10240:0.09\\|inf:0"),
    ],
)
def test_a_source_is_a_link_where_it_is_surely_an_address(source, shown):
    assert fact_pages.linked(source) == shown
