"""Write the JSON schemas of all documents from their types; ``--check`` fails when a file is stale."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import msgspec

from rackrate.app.wire.every import DOCUMENTS

FOLDER = Path(__file__).parents[1] / "src" / "rackrate" / "app" / "schemas"


def schema_text(name: str) -> str:
    """The schema of one document as text."""
    (schema,), parts = msgspec.json.schema_components([DOCUMENTS[name]], ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"rackrate.{name}/1",
        **schema,
        "$defs": parts,
    }
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def main() -> int:
    """Write or check every schema file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file would change")
    check = parser.parse_args().check
    stale = []
    for name in DOCUMENTS:
        path, text = FOLDER / f"{name}.json", schema_text(name)
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    for file in stale:
        print(f"{file}: stale; run `python tools/build_schemas.py`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
