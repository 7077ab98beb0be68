"""From what a user calls a model to the model: bundled, in files here, or on the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rackrate.facts.book import FactBook
from rackrate.facts.model import Model
from rackrate.facts.names import base_of_tuned, resolve_model
from rackrate.problems import Finding
from rackrate.values import replace

HUB = "hub:"
_ENDINGS = (".json", ".gguf", ".safetensors")
_MARKS = ("./", "../", "~", "/", ".\\", "..\\")


def own_model(text: str, book: FactBook, *, or_base: bool = True) -> Model | tuple[Finding, ...] | None:
    """The model in the files or on the Hub that ``text`` means; None where it is a name for the bundled models.

    In this order: ``hub:org/name``; a path that is marked as one (``./model``,
    ``model.gguf``); a bundled id; an existing path; a bundled name; an
    ``org/name``, on the Hub. Where the Hub fails, a bundled model that differs
    by tuning alone will do (``or_base``), which is None too.
    """
    text = text.strip()
    if text.startswith(HUB):
        return _on_hub(text.removeprefix(HUB), book)
    if is_path(text):
        return _in_files(text, book)
    if text in book.model_ids:
        return None
    if _exists(text):
        return _in_files(text, book)
    return _beyond_the_book(text, book, or_base=or_base)


def _beyond_the_book(text: str, book: FactBook, *, or_base: bool) -> Model | tuple[Finding, ...] | None:
    """The model on the Hub; None for another spelling of a bundled one, or where the Hub fails and one will do."""
    named = resolve_model(text, book.model_ids)
    if isinstance(named, str) or not _like_hub(text):
        return None
    found = _on_hub(text, book)
    base = base_of_tuned(text, book.model_ids)
    if isinstance(found, Model) or (base and or_base):
        return found if isinstance(found, Model) else None
    return tuple(_suggested(each, replace(named, action=f"use {base}") if base else named) for each in found)


def own_config(text: str, book: FactBook) -> Mapping[str, object] | None:
    """The configuration as its file says, of a model in files or on the Hub; None of others, or where it has none."""
    text = text.strip()
    if is_path(text) or (text not in book.model_ids and not text.startswith(HUB) and _exists(text)):
        from rackrate.app.checkpoint.local import config_at

        return config_at(Path(text).expanduser())
    if text.startswith(HUB) or (text not in book.model_ids and _like_hub(text)):
        from rackrate.app.checkpoint.hub import config_on_hub

        return config_on_hub(text.removeprefix(HUB))
    return None


def is_path(text: str) -> bool:
    """Whether ``text`` says by its form that it is a path."""
    return text in {".", ".."} or text.startswith(_MARKS) or text.lower().endswith(_ENDINGS)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists() and not text.isdecimal()
    except (OSError, ValueError):
        return False


def _in_files(text: str, book: FactBook) -> Model | tuple[Finding, ...]:
    from rackrate.app.checkpoint.local import read_path, unreadable

    try:
        path = Path(text).expanduser()
    except (RuntimeError, ValueError):
        return (unreadable(text, "not a path"),)
    return read_path(path, book.formats, name=_short(text))


_NAME_AT_MOST = 160


def _short(text: str) -> str:
    """A path as the name of its model: the end of it where it is long."""
    from rackrate.app.checkpoint.local import printable

    return printable(text if len(text) <= _NAME_AT_MOST else f"...{text[-_NAME_AT_MOST:]}")


def _like_hub(text: str) -> bool:
    from rackrate.app.checkpoint.hub import NAME

    return NAME.fullmatch(text) is not None


def _on_hub(text: str, book: FactBook) -> Model | tuple[Finding, ...]:
    from rackrate.app.checkpoint.hub import read_hub, unknown

    return read_hub(text, book.formats) if _like_hub(text) else (unknown(text),)


def _suggested(finding: Finding, named: Finding) -> Finding:
    """A finding about the Hub with the bundled ids that may have been meant."""
    close = named.action.removeprefix("use ") if named.action.startswith("use ") else ""
    meant = "" if not close or close.startswith("one of") else f"did you mean {close}? "
    return replace(finding, action=f"{meant}{finding.action}")
