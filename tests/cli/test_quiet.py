"""The command line asks nobody and leaves nothing behind."""

import builtins
import io
import os
import pathlib
import socket
import subprocess
import sys

import pytest
from tests.cli.ask import (
    CARDS,
    FACTS,
    FITS,
    MODELS,
    NO_PLANS,
    OFFERS,
    PLANS,
    REFUSED,
    SPEEDS,
    name_of,
    run,
)


@pytest.fixture
def _no_network(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("the command line reached for the network")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.fixture
def _no_writing(monkeypatch):
    opened = builtins.open

    def read_only(file, mode="r", *args, **kwargs):
        assert not set(mode) & set("wax+"), f"the command line opened {file} with {mode!r}"
        return opened(file, mode, *args, **kwargs)

    def refuse(*args, **_kwargs):
        raise AssertionError(f"the command line changed the disk: {args}")

    monkeypatch.setattr(builtins, "open", read_only)
    monkeypatch.setattr(io, "open", read_only)
    for name in ("write_text", "write_bytes", "mkdir", "touch", "unlink"):
        monkeypatch.setattr(pathlib.Path, name, refuse)
    for name in ("mkdir", "makedirs", "remove", "rename", "replace"):
        monkeypatch.setattr(os, name, refuse)


@pytest.mark.usefixtures("_no_network", "_no_writing")
@pytest.mark.parametrize(
    "args",
    [
        PLANS[0],
        NO_PLANS[0],
        FITS[0],
        SPEEDS[0],
        CARDS[0],
        CARDS[-1],
        *MODELS[:5],
        *FACTS[:3],
        *FACTS[-4:],
        *OFFERS[:3],
        *REFUSED[:3],
    ],
    ids=name_of,
)
@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["--md"]], ids=["screen", "json", "csv", "md"])
def test_no_network_and_no_writing(args, form):
    assert run(*args, *form).code in {0, 2, 3}


def test_a_run_writes_no_file(tmp_path):
    """Seen from outside, bytecode aside: home, working and temporary folder stay empty."""
    env = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "rackrate", "gpu", "a40", "--json"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    assert list(tmp_path.rglob("*")) == []
