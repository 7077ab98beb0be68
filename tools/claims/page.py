"""The page ``docs/claims.md``: every claim, with the answer computed now where rackrate can show it."""

from __future__ import annotations

from rackrate.facts.bundled import claims
from rackrate.facts.records import Claim

from .asking import AS_OF
from .registry import Shown, answer, known

_ARTICLES = {
    "A40": "An article that compares clouds that rent the NVIDIA A40",
    "40/80": "An article that weighs A100 40 GB against A100 80 GB",
    "guide": "A buyer's guide to A100 40 GB servers",
}
_VERBS = ("plan", "fit", "gpu")
_VERDICTS = ("right", "conditional", "wrong", "unsupported")


def claims_page() -> str:
    """The whole page."""
    every = claims()
    counts = ", ".join(f"{sum(c.verdict == verdict for c in every)} {verdict}" for verdict in _VERDICTS)
    intro = (
        "# The articles' claims, checked\n\n"
        "rackrate began with three articles for people who rent GPUs. Each factual claim in them is listed here "
        f"with\nthe right answer ({counts}).\nFor {len(known())} of {len(every)} the answer is also computed by "
        f"rackrate itself, as of {AS_OF}, the day of the\nbundled facts: append `--as-of {AS_OF}` to a command to "
        "get the same prices and ages. Commands that begin\nwith `python` run in a clone; they plan for offers "
        "made by hand at the prices of the article.\n\n"
    )
    return intro + "\n".join(_article(name, every) for name in _ARTICLES)


def _article(name: str, every: tuple[Claim, ...]) -> str:
    parts = [_claim(claim) for claim in every if claim.article == name]
    return f"## {_ARTICLES[name]}\n\n" + "\n".join(parts)


def _claim(claim: Claim) -> str:
    lines = [
        f"### {claim.id}: {_quoted(claim.claim)}",
        "",
        f"- **{claim.verdict.capitalize()}.** {_sentence(claim.right_answer)}",
        f"- Source: {claim.condition_or_source}.",
    ]
    lines += _live(answer(claim.id)) if claim.id in known() else [f"- {_later(claim)}"]
    return "\n".join([*lines, ""])


def _live(shown: Shown) -> list[str]:
    return [f"- **Computed:** {shown.text}", *(f"- Run: `{command}`" for command in shown.commands)]


def _later(claim: Claim) -> str:
    """Where a claim that is not shown now will be shown."""
    verb = claim.shown_by.split(",")[0].split()[0]
    if verb == "none":
        return "Not a claim that a computation can show: no baseline was given."
    if verb in _VERBS:
        return f"Not shown yet (verb `{verb}`, in a later version)."
    return f"Not shown yet (verb `{verb}`, later)."


def _quoted(text: str) -> str:
    return text[0].upper() + text[1:]


def _sentence(text: str) -> str:
    return _quoted(text) + ("" if text.endswith(".") else ".")
