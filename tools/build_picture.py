"""Make ``docs/images/plan.svg``: the first screen of a real plan, drawn as a terminal.

``tools/build_docs.py`` writes it; no font is fetched, any monospaced one will do.
"""

from __future__ import annotations

import io
import re

from claims.asking import printed
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COMMAND = "rackrate plan examples/lora-7b.toml"
LINES = 45
WIDTH = 82
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def picture() -> str:
    """The picture as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {COMMAND}", style="bold"))
    for line in printed(COMMAND, color=True).split("\n")[:LINES]:
        console.print(Text.from_ansi(line), overflow="ignore", no_wrap=True, crop=True)
    svg = console.export_svg(title=COMMAND, theme=MONOKAI, unique_id="plan")
    return _without_web_fonts(svg)


def _without_web_fonts(svg: str) -> str:
    """The picture with the reader's own fonts in place of rich's, which it would fetch."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code, monospace", f"font-family: {FONT}")
    return re.sub(r"\n\s*font-variant-east-asian: full-width;", "", svg)


if __name__ == "__main__":
    print(picture())
