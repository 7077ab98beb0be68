"""Models in files on this machine: a configuration, a folder, safetensors, GGUF; what is wrong is a finding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from rackrate.app.checkpoint import gguf, safetensors
from rackrate.app.checkpoint.source import CorruptError, Source, opened
from rackrate.facts.architecture.checkpoint import tensors_alone, with_tensors
from rackrate.facts.architecture.gguf import model_of_gguf
from rackrate.facts.architecture.read import model_of, pipeline_of
from rackrate.facts.architecture.tensors import Tensor, tally
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.problems import Code, Finding

Found = Model | tuple[Finding, ...]
Formats = Mapping[str, WeightFormat]
T = TypeVar("T")

CONFIG, INDEX, PIPELINE = "config.json", "model.safetensors.index.json", "model_index.json"
_QUANTISATION = "hf_quant_config.json"
_ADAPTER = "adapter_config.json"
MOST_JSON_BYTES = 2**24
_MOST_CONFIG_BYTES = 2**20
_MOST_VALUES = 20_000
"""Objects in a configuration: the largest known have a few thousand."""
_MOST_SHARDS = 2048
_SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_EXPECTED = "a config.json, a folder that holds one, a .safetensors or a .gguf file"


def read_path(path: Path, formats: Formats, *, name: str) -> Found:
    """The model at ``path``, called ``name``."""
    try:
        return read_folder(path, formats, name=name) if path.is_dir() else _read_file(path, formats, name)
    except OSError as wrong:
        return (unreadable(name, wrong.strerror or "cannot be read"),)
    except ValueError:  # a path with a NUL in it
        return (unreadable(name, "not a path"),)


def config_at(path: Path) -> Mapping[str, object] | None:
    """The configuration at ``path``, a file or the folder that holds it, as it says; None where there is none."""
    file = path / CONFIG if path.is_dir() else path
    if file.suffix != ".json" or not file.is_file():
        return None
    found = read_json(file, most=_MOST_CONFIG_BYTES)
    return None if isinstance(found, Finding) else found


def _read_file(path: Path, formats: Formats, name: str) -> Found:
    ending = path.suffix.lower()
    if not path.exists() and _SPLIT.search(path.name) is None:
        return (unreadable(name, "no such file or folder"),)
    if ending == ".gguf":
        return _gguf_files(_split_set(path), formats, name)
    if ending == ".safetensors":
        return _one_safetensors(path, formats, name)
    if ending == ".json":
        return _configuration(path, formats, name)
    return (unreadable(name, f"a file that ends in {ending}" if ending else "a file without an ending"),)


def unreadable(name: str, observed: str, *, action: str = "") -> Finding:
    """Why a model cannot be read from ``name``."""
    return Finding(
        code=Code.FILE_UNREADABLE,
        subject=printable(name),
        observed=printable(observed),
        expected=_EXPECTED,
        action=action or "check the path, or name a bundled model: `rackrate model` lists them",
    )


def printable(text: str) -> str:
    """A text as it may be printed: its end, on one line, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[-200:]) or "an empty text"


# ---------------------------------------------------------------- folders


def read_folder(folder: Path, formats: Formats, *, name: str) -> Found:
    """The model in a folder: a pipeline, a checkpoint with its configuration, or GGUF files."""
    if (folder / PIPELINE).is_file():
        return _pipeline(folder, name)
    if (folder / CONFIG).is_file():
        return _checkpoint(folder, formats, name)
    if (folder / _ADAPTER).is_file():
        return (_adapter(folder, name),)
    return _tensors_of_folder(folder, formats, name)


def _tensors_of_folder(folder: Path, formats: Formats, name: str) -> Found:
    """The one model that a folder holds without a configuration: GGUF files, or a single safetensors file."""
    files = sorted(path for path in folder.glob("*.gguf") if not path.name.startswith("mmproj"))
    first = [path for path in files if not (match := _SPLIT.search(path.name)) or int(match[1]) == 1]
    if len(first) == 1:
        return _gguf_files(_split_set(first[0]), formats, name)
    if first:
        shown = ", ".join(path.name for path in first[:8])
        return (unreadable(name, f"{len(first)} models", action=f"say which: {printable(shown)}"),)
    plain = sorted(folder.glob("*.safetensors"))
    if len(plain) == 1:
        return _one_safetensors(plain[0], formats, name)
    return (unreadable(name, f"a folder without {CONFIG}"),)


def _checkpoint(folder: Path, formats: Formats, name: str) -> Found:
    config = read_json(folder / CONFIG, most=_MOST_CONFIG_BYTES)
    if isinstance(config, Finding):
        return (config,)
    found = model_of(_with_quantisation(config, folder), id=name)
    files = _tensor_files(folder)
    if isinstance(files, Finding):
        return (files,)
    if not files:
        return found
    tensors = _all_tensors(files)
    if isinstance(tensors, Finding):
        return (tensors,)
    if not isinstance(found, Model):
        return found
    return with_tensors(found, tensors, formats, files=len(files))


def _with_quantisation(config: Mapping[str, object], folder: Path) -> Mapping[str, object]:
    """The configuration with the settings that NVIDIA ModelOpt keeps in a file of their own."""
    path = folder / _QUANTISATION
    if "quantization_config" in config or not path.is_file():
        return config
    found = read_json(path, most=_MOST_CONFIG_BYTES)
    settings = found.get("quantization") if isinstance(found, Mapping) else None
    return {**config, "quantization_config": settings} if isinstance(settings, Mapping) else config


def _tensor_files(folder: Path) -> list[Path] | Finding:
    """The safetensors files of a checkpoint: those of the index, the only one, or all but second copies."""
    if (folder / INDEX).is_file():
        index = read_json(folder / INDEX, most=MOST_JSON_BYTES)
        if isinstance(index, Finding):
            return index
        return _indexed(folder, index)
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    found = sorted(folder.glob("*.safetensors"))
    return [path for path in found if not path.name.startswith(("consolidated", "adapter"))][:_MOST_SHARDS]


def shards_of(index: Mapping[str, object]) -> list[str]:
    """The names of the files that an index spreads the tensors over."""
    table = index.get("weight_map")
    names = {str(name) for name in table.values()} if isinstance(table, Mapping) else set()
    return sorted(name for name in names if "/" not in name and "\\" not in name and "\0" not in name)[:_MOST_SHARDS]


def _indexed(folder: Path, index: Mapping[str, object]) -> list[Path] | Finding:
    paths = [folder / name for name in shards_of(index)]
    missing = [path.name for path in paths if not path.is_file()]
    if not missing:
        return paths
    if len(missing) == len(paths):  # configuration and index alone were downloaded
        return []
    action = "download the rest, or remove the index to read what is there"
    return unreadable(missing[0], f"{len(missing)} of {len(paths)} files of the index missing", action=action)


def _adapter(folder: Path, name: str) -> Finding:
    config = read_json(folder / _ADAPTER, most=_MOST_CONFIG_BYTES)
    base = config.get("base_model_name_or_path") if isinstance(config, Mapping) else None
    model = printable(base) if isinstance(base, str) else "the model that it was trained on"
    return unreadable(name, "an adapter (LoRA), not a model", action=f"give {model} and task lora")


def _pipeline(folder: Path, name: str) -> Found:
    """A diffusion pipeline: the parameters of each network from headers, or else from its configuration."""
    index = read_json(folder / PIPELINE, most=_MOST_CONFIG_BYTES)
    if isinstance(index, Finding):
        return (index,)
    counts: dict[str, int] = {}
    configs: dict[str, Mapping[str, object]] = {}
    for part in index:
        inside = folder / part if part.isidentifier() else folder / "no-such-part"
        config = _part_config(inside)
        counted = config if isinstance(config, Finding) else _part_parameters(inside, config)
        if isinstance(counted, Finding):
            return (counted,)
        if counted is not None:
            counts[part] = counted
        if isinstance(config, Mapping):
            configs[part] = config
    return pipeline_of(index, counts, configs, id=name)


def _part_config(folder: Path) -> Mapping[str, object] | Finding | None:
    path = folder / CONFIG
    return read_json(path, most=_MOST_CONFIG_BYTES) if path.is_file() else None


def _part_parameters(folder: Path, config: Mapping[str, object] | None) -> int | Finding | None:
    files = sorted(folder.glob("*.safetensors"))
    full = [path for path in files if ".fp16." not in path.name and ".non_ema." not in path.name] or files
    if full:
        tensors = _all_tensors(full)
        return tensors if isinstance(tensors, Finding) else count_of(tensors)
    return counted_by(config, folder.name)


def counted_by(config: Mapping[str, object] | None, name: str) -> int | None:
    """The parameters of a part as its configuration has them; None where its class is not known."""
    found = model_of(config, id=name) if config is not None else None
    return found.params_total if isinstance(found, Model) else None


def count_of(tensors: Sequence[Tensor]) -> int:
    """The parameters in tensors."""
    return tally(tensors, layers=None, tied=False, form="").parameters


# ---------------------------------------------------------------- files


def _configuration(path: Path, formats: Formats, name: str) -> Found:
    """A configuration on its own; an index or a pipeline's list stands for its folder."""
    if path.name in {INDEX, PIPELINE}:
        return read_folder(path.parent, formats, name=name)
    config = read_json(path, most=_MOST_CONFIG_BYTES)
    if isinstance(config, Finding):
        return (config,)
    return model_of(_with_quantisation(config, path.parent), id=name)


def _one_safetensors(path: Path, formats: Formats, name: str) -> Found:
    """One file: with the configuration beside it, if it is the whole model, or on its own."""
    tensors = _all_tensors([path])
    if isinstance(tensors, Finding):
        return (tensors,)
    beside = path.parent / CONFIG
    if beside.is_file():
        config = read_json(beside, most=_MOST_CONFIG_BYTES)
        found = model_of(config, id=name) if isinstance(config, Mapping) else None
        if isinstance(found, Model):
            return with_tensors(found, tensors, formats, files=1)
    return tensors_alone(tensors, formats, id=name, files=1)


def _all_tensors(paths: Sequence[Path]) -> list[Tensor] | Finding:
    found: list[Tensor] = []
    for path in paths:
        tensors = _from_file(path, safetensors.tensors_of)
        if isinstance(tensors, Finding):
            return tensors
        found += tensors
    return found


def _split_set(path: Path) -> list[Path]:
    """All files of a GGUF model that is split, in order; the file itself when it is not."""
    match = _SPLIT.search(path.name)
    if match is None:
        return [path]
    stem, count = path.name[: match.start()], int(match[2])
    return [path.with_name(f"{stem}-{n:05d}-of-{match[2]}.gguf") for n in range(1, min(count, _MOST_SHARDS) + 1)]


def _gguf_files(paths: Sequence[Path], formats: Formats, name: str) -> Found:
    missing = [path.name for path in paths if not path.is_file()]
    if missing:
        action = "download the rest of the files" if len(paths) > 1 else ""
        return (unreadable(missing[0], f"{len(missing)} of {len(paths)} files missing", action=action),)
    metadata: dict[str, object] = {}
    tensors: list[Tensor] = []
    for path in paths:
        header = _from_file(path, gguf.header_of)
        if isinstance(header, Finding):
            return (header,)
        metadata = {**header.metadata, **metadata}
        tensors += header.tensors
    return model_of_gguf(metadata, tensors, formats, id=name)


def _from_file(path: Path, read: Callable[[Source], T]) -> T | Finding:
    file, source = opened(path)
    with file:
        return from_source(source, read, name=str(path))


def from_source(source: Source, read: Callable[[Source], T], *, name: str) -> T | Finding:
    """What ``read`` finds in a source, or why the source is not what it should be."""
    try:
        return read(source)
    except CorruptError as wrong:
        action = "download the file again, or compare its size with the publisher's"
        return Finding(
            code=Code.FILE_UNREADABLE,
            subject=printable(name),
            observed=printable(str(wrong)),
            expected="a whole file with a valid header",
            action=action,
        )


# ---------------------------------------------------------------- JSON


def read_json(path: Path, *, most: int) -> Mapping[str, object] | Finding:
    """The object in a JSON file of at most ``most`` bytes."""
    with path.open("rb") as file:
        raw = file.read(most + 1)
    return parse_json(raw, name=str(path), most=most)


def parse_json(raw: bytes, *, name: str, most: int) -> Mapping[str, object] | Finding:
    """The object in JSON text; Python's ``Infinity`` is admitted, as configurations have it."""
    if len(raw) > most:
        return unreadable(name, f"more than {most // 2**20} MiB of JSON")
    if most <= _MOST_CONFIG_BYTES and sum(map(raw.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        return unreadable(name, f"more than {_MOST_VALUES} values")
    try:
        table = json.loads(raw)
    except (ValueError, RecursionError) as wrong:
        return unreadable(name, f"no valid JSON ({type(wrong).__name__})")
    return table if isinstance(table, dict) else unreadable(name, "JSON that is no object")
