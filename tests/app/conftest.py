"""A folder of own facts, written by a test."""

from datetime import date

import pytest

from rackrate.app.context import context


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write files by name into a folder that is read from now on; answer the context with them."""

    def write(files, at=date(2026, 11, 30)):
        for name, content in files.items():
            path = tmp_path / "own" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setenv("RACKRATE_FACTS", str(tmp_path / "own"))
        return context(at)

    return write
