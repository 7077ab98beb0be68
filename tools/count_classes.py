"""Count the parameters of the classes that tests/facts/class_counts.json names, and write the counts there.

``python tools/count_classes.py`` needs torch, transformers and diffusers (versions are printed), which rackrate
itself does not: it builds each class from the small configuration beside it on torch's meta device, without memory,
and counts. To check another type, add its configuration with ``"parameters": 0`` and run this.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COUNTS = Path(__file__).parents[1] / "tests" / "facts" / "class_counts.json"


def count(entry: Mapping[str, Any]) -> int:
    """The parameters of one class; those that modules share are counted once."""
    import torch  # type: ignore[import-not-found,unused-ignore]

    with torch.device("meta"):
        made = _made(entry["class"], dict(entry["config"]))
    return sum(p.numel() for p in {id(p): p for p in made.parameters()}.values())


def _made(name: str, config: dict[str, Any]) -> Any:  # noqa: ANN401 - a module of whatever class was asked for
    if "_class_name" in config:
        import diffusers  # type: ignore[import-not-found,unused-ignore]

        del config["_class_name"]
        return getattr(diffusers, name)(**config)
    import transformers  # type: ignore[import-not-found,unused-ignore]

    config.pop("architectures", None)
    return getattr(transformers, name)(transformers.AutoConfig.for_model(config.pop("model_type"), **config))


def main() -> None:
    """Count every class and write the file anew."""
    entries = json.loads(COUNTS.read_text("utf-8"))
    for entry in entries:
        found = count(entry)
        if found != entry["parameters"]:
            print(f"{entry['class']}: {entry['parameters']} -> {found}")
        entry["parameters"] = found
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    COUNTS.write_text(f"[\n{lines}\n]\n", "utf-8")
    print(f"{len(entries)} classes counted")


if __name__ == "__main__":
    main()
