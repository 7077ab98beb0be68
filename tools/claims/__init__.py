"""The claims of the articles behind rackrate, answered by rackrate itself.

``answers()`` computes the live answer to every claim that ``plan``, ``fit`` or
``gpu`` can show, as of the date of the bundled facts. ``docs/claims.md`` prints
them, ``tests/golden`` holds their numbers against the right answers, and
``python -m tools.claims C31`` prints one.
"""

from __future__ import annotations

from . import cards, prices, serving, training
from .registry import Shown, answer, answers, known

__all__ = ["Shown", "answer", "answers", "cards", "known", "prices", "serving", "training"]
