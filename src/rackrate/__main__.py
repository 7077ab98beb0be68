"""``python -m rackrate``: the command line."""

from __future__ import annotations

from rackrate.cli.main import main

main(prog_name="rackrate")
