"""``python -m tools.claims [ID...]``: the live answer to each claim named, or to all that can be shown."""

from __future__ import annotations

import sys

from . import answer, known


def main(names: list[str]) -> int:
    """Print the answers; 1 when a claim cannot be shown yet."""
    unknown = [name for name in names if name not in known()]
    for name in unknown:
        print(f"{name}: not a claim that can be shown yet; choose from {', '.join(known())}", file=sys.stderr)
    for name in (n for n in names or known() if n in known()):
        shown = answer(name)
        print(f"{name}: {shown.text}")
        for command in shown.commands:
            print(f"     {command}")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
