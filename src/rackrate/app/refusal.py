"""Refused requests, for faces."""

from __future__ import annotations

from collections.abc import Iterable

from rackrate.app.context import context
from rackrate.app.documents import problems_document as _document
from rackrate.app.wire.parts import ProblemDocument
from rackrate.problems import Finding


def problems_document(findings: Iterable[Finding]) -> ProblemDocument:
    """The document of a refused request."""
    return _document(findings, context())
