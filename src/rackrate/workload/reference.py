"""Reference: the page of all workload keys, written from the key table."""

from __future__ import annotations

from rackrate.workload.keys import KEYS, Key, shorthand_of
from rackrate.workload.needs import NEEDS
from rackrate.workload.reasons import REASONS
from rackrate.workload.requirements import PROPERTIES
from rackrate.workload.values import expected

EXAMPLE = """model = "meta-llama/Llama-2-7b-hf"
task = "lora"

[training]
rows = "50k"
epochs = 3
mean_tokens = 512

[limits]
deadline = "36 h"
budget = "200 USD"
"""
_INTRO = f"""# Workload keys

A workload is described in a TOML or JSON file, by flags, or by both:

```toml
{EXAMPLE}```

- Flags win over the file, also where they contradict another key of it (`--tokens` over `rows`).
- Unknown keys are refused, with the nearest one that exists. All problems are named at once.
- What is not said gets the default below, and every answer lists the defaults that it made.
- Disks and traffic need a unit: `200 GB` is 200 x 10^9 bytes, `200 GiB` is 200 x 2^30.
- Counts may be short (`30M`, `1.5B`). Lengths and batches are written out: 4k is 4000 to some and
  4096 to others.
- Times are hours unless they name a unit (`36 h`, `2 days`, `90 min`).
- Lists are TOML or JSON lists; as a flag, commas or the flag repeated.
- Letter case, hyphens and underscores make no difference in choices.
- `diffusion` is a job of a number of images or videos; rendering cannot be planned yet (`task = "render"` says so).
"""
_TITLES = {
    "": "What to run",
    "training": "[training]: sizes of a training run",
    "serving": "[serving]: sizes of an inference job",
    "images": "[images]: images and videos, made or trained on",
    "parallel": "[parallel]: how the work is divided over cards",
    "use": "[use]: when the machine runs, and what is kept around it",
    "limits": "[limits]: what a plan must keep to",
}
_SCOPES = {
    "any": "",
    "training": "Training only.",
    "adapters": "LoRA and QLoRA only.",
    "serving": "Inference only.",
    "online": "Online inference only.",
    "offline": "Offline inference only.",
    "images": "Diffusion only.",
    "pictures": "Diffusion, and training of diffusion models.",
    "job": "Training and offline inference only.",
}


def workload_reference() -> str:
    """The page ``docs/workload.md``."""
    parts = [_INTRO, *(_section(section) for section in _TITLES), _properties(), _reasons()]
    return "\n".join(parts)


def _section(section: str) -> str:
    keys = [key for key in KEYS.values() if (key.path.partition(".")[0] if "." in key.path else "") == section]
    lines = [f"## {_TITLES[section]}", "", "| key | flag | takes | default | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *map(_row, keys), ""])


def _row(key: Key) -> str:
    shorthand = KEYS[shorthand_of(key.path)].flag if shorthand_of(key.path) else ""
    flags = ", ".join(f"`{name}`" for name in dict.fromkeys((key.flag, *key.flag_aliases, shorthand)) if name)
    meaning = " ".join(part for part in (key.help, _SCOPES[key.scope]) if part)
    cells = (f"`{key.path.rpartition('.')[2]}`", flags, expected(key), _default(key), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(key: Key) -> str:
    if key.rule:
        return key.rule
    if key.default is None:
        return ""
    value = str(key.default).lower() if isinstance(key.default, bool) else key.default
    return f"{value:g}" if isinstance(value, float) else str(value)


def _properties() -> str:
    """The properties that ``limits.require`` knows."""
    names = ", ".join(f"`{name}`" if not name.startswith("min_") else f"`{name}=NUMBER`" for name in PROPERTIES)
    return (
        "## Properties for `limits.require`\n\n"
        f"{names}.\n\n"
        "Memory is compared as sold, not as usable. A property that no source states for a card is unknown,\n"
        "which is not a pass.\n\n"
        "## Needs for `limits.access`\n\n"
        f"{', '.join(f'`{need}`' for need in NEEDS)}.\n\n"
        "Held against what public sources state of a provider (`rackrate facts show PROVIDER`). What no source\n"
        "states, or states under a condition alone, is unknown, which is not a pass: such offers are counted by\n"
        "themselves. Of a resold machine the reseller counts.\n"
    )


def _reasons() -> str:
    """What the reason codes of assumptions mean."""
    lines = ["## Why these defaults", "", "The code is what an assumption carries as `why`.", ""]
    return "\n".join([*lines, "| code | reason |", "|---|---|", *(f"| `{c}` | {t} |" for c, t in REASONS.items()), ""])
