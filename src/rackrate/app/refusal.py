"""Refused requests, for faces."""

from __future__ import annotations

from rackrate.app.context import context
from rackrate.app.documents import problems_document as _document
from rackrate.app.wire import ProblemDocument
from rackrate.problems import Refused

__all__ = ["Refused", "problems_document"]


def problems_document(refused: Refused) -> ProblemDocument:
    """The document of a refused request."""
    return _document(refused.findings, context())
