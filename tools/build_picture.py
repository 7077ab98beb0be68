"""Make the pictures of screens: the first lines of what a command really prints, drawn as a terminal.

``tools/build_docs.py`` writes them. No font is fetched: any monospaced one will do.
"""

from __future__ import annotations

import io
import itertools
import re
from pathlib import PurePath

from claims.asking import WIDTH, printed
from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURES = {
    "docs/images/plan.svg": ("rackrate plan examples/lora-7b.toml", 45),
    "docs/images/fit.svg": ("rackrate fit examples/serve-13b.toml --gpu a100-pcie-80", 30),
    "docs/images/gpu.svg": ("rackrate gpu a100-sxm4-40 a100-sxm4-80 --currency CNY", 48),
}
"""Each picture with the command that it shows, and at most so many of its lines."""
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def picture(name: str) -> str:
    """One picture as SVG."""
    command, lines = PICTURES[name]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    for line in first_screen(printed(command, color=True).split("\n"), lines):
        console.print(_anchored(Text.from_ansi(line)), overflow="ignore", no_wrap=True, crop=True)
    return _with_own_fonts(console.export_svg(title="", theme=MONOKAI, unique_id=PurePath(name).stem))


def first_screen(lines: list[str], at_most: int) -> list[str]:
    """The paragraphs that end within so many lines."""
    ends = [number for number, line in enumerate(lines[: at_most + 1]) if not line.strip()]
    return lines[: ends[-1]] if ends else lines[:at_most]


def _anchored(line: Text) -> Text:
    """The line with its wide characters in a colour of their own, one step from the text's.

    Rich places each run of one style at its exact column, so that columns stay
    in line whatever width the reader's font gives to a Chinese character.
    """
    for wide, run in itertools.groupby(enumerate(line.plain), key=lambda pair: cell_len(pair[1]) > 1):
        if wide:
            places = [place for place, _ in run]
            line.stylize("#d9d9d8", places[0], places[-1] + 1)
    return line


def _with_own_fonts(svg: str) -> str:
    """The picture with the reader's fonts in place of rich's, which it would fetch."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = svg.replace("font-family: Fira Code, monospace", f"font-family: {FONT}")
    return re.sub(r"\n\s*font-variant-east-asian: full-width;", "", svg)


if __name__ == "__main__":
    for each in PICTURES:
        print(picture(each))
