"""Models on the Hugging Face Hub: the configuration and the headers of the files, by ranges; nothing is kept.

A snapshot in the Hub's cache on this machine is read first and needs neither
network nor package. The rest needs the extra ``hub``; endpoint, token and
offline switch are where huggingface_hub has them (``HF_ENDPOINT``,
``HF_TOKEN`` or ``hf auth login``, ``HF_HUB_OFFLINE``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rackrate.app.checkpoint import gguf, safetensors
from rackrate.app.checkpoint.local import (
    CONFIG,
    INDEX,
    PIPELINE,
    Formats,
    Found,
    config_at,
    count_of,
    counted_by,
    from_source,
    parse_json,
    printable,
    read_folder,
    shards_of,
)
from rackrate.facts.architecture.checkpoint import with_tensors
from rackrate.facts.architecture.gguf import model_of_gguf
from rackrate.facts.architecture.read import model_of, pipeline_of
from rackrate.facts.architecture.tensors import Tensor
from rackrate.facts.model import Model
from rackrate.problems import Code, Finding, Refused

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
"""What an id on the Hub looks like."""

INSTALL = "pip install 'rackrate[hub]'"
LOCAL = "give a config.json, a folder or a GGUF file of the model"

_TIMEOUT_S = 10.0
_AT_ONCE = 8
_MOST_FILES = 512
_FIRST_BYTES = 2**17
_MOST_BLOCK_BYTES = 2**23
_MOST_HEADER_BYTES = 2**27
_CONFIG_BYTES, _INDEX_BYTES = 2**20, 2**24
_NO_SUCH, _NOT_ALLOWED = 404, (401, 403)


def read_hub(name: str, formats: Formats) -> Found:
    """The model ``org/name`` on the Hub, or why it cannot be read from here."""
    kept = _snapshot(name)
    if kept is not None:
        return read_folder(kept, formats, name=name)
    try:
        return _Repository(name).model(formats)
    except Refused as wrong:
        return wrong.findings


def config_on_hub(name: str) -> Mapping[str, object] | None:
    """The configuration of ``org/name`` as its file says; None where it cannot be read."""
    kept = _snapshot(name)
    if kept is not None:
        return config_at(kept)
    try:
        return _Repository(name).config()
    except Refused:
        return None


# ---------------------------------------------------------------- what is on this machine already


def _snapshot(name: str) -> Path | None:
    """The newest snapshot of ``name`` in the Hub's cache, if it has the configuration or a GGUF file."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    folder = cache / f"models--{name.replace('/', '--')}"
    try:
        revision = (folder / "refs" / "main").read_text("utf-8").strip()
        snapshot = folder / "snapshots" / revision
        described = any((snapshot / name).is_file() for name in (CONFIG, PIPELINE))
        able = revision.isalnum() and (described or any(snapshot.glob("*.gguf")))
    except (OSError, ValueError):
        return None
    return snapshot if able else None


# ---------------------------------------------------------------- what is on the Hub


class _Repository:
    """One repository on the Hub; every problem with it is a ``Refused``."""

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            import huggingface_hub
            import huggingface_hub.utils
            from huggingface_hub import constants
        except ImportError:
            raise Refused([unreachable(name, "huggingface-hub is not installed", f"{LOCAL}, or {INSTALL}")]) from None
        self.hub: Any = huggingface_hub
        if constants.HF_HUB_OFFLINE:
            raise Refused([unreachable(name, "offline, as HF_HUB_OFFLINE says", f"{LOCAL}, or go online")])

    def model(self, formats: Formats) -> Found:
        """The model from its configuration and headers, or from its one GGUF file."""
        files = self.files()
        if PIPELINE in files:
            return self._pipeline(files)
        if CONFIG in files:
            return self._checkpoint(files, formats)
        return self._gguf(files, formats)

    def files(self) -> list[str]:
        """The names of all files."""
        try:
            found = self.hub.HfApi().model_info(self.name, timeout=_TIMEOUT_S)
        except Exception as wrong:  # noqa: BLE001 - whatever the client and its libraries raise is one finding
            self._refuse(wrong)
        return [str(file.rfilename) for file in found.siblings or ()]

    def config(self) -> Mapping[str, object]:
        """The configuration as its file says."""
        return self._json(CONFIG, most=_CONFIG_BYTES)

    def _checkpoint(self, files: Sequence[str], formats: Formats) -> Found:
        config = self.config()
        found = model_of(config, id=self.name)
        if not isinstance(found, Model):
            return found
        names = ["model.safetensors"] if "model.safetensors" in files else []
        if INDEX in files:
            names = [name for name in shards_of(self._json(INDEX, most=_INDEX_BYTES)) if name in files]
        if not names or len(names) > _MOST_FILES:
            return found
        return with_tensors(found, self._all_tensors(names), formats, files=len(names))

    def _pipeline(self, files: Sequence[str]) -> Found:
        """A diffusion pipeline: each part's configuration, and the headers of its files where no class says."""
        index = self._json(PIPELINE, most=_CONFIG_BYTES)
        counts: dict[str, int] = {}
        configs: dict[str, Mapping[str, object]] = {}
        for part in index:
            if part.isidentifier() and f"{part}/{CONFIG}" in files:
                configs[part] = self._json(f"{part}/{CONFIG}", most=_CONFIG_BYTES)
            counted = counted_by(configs.get(part), part) or self._counted(part, files)
            if counted:
                counts[part] = counted
        return pipeline_of(index, counts, configs, id=self.name)

    def _counted(self, part: str, files: Sequence[str]) -> int:
        """The parameters in the headers of a part's files; second copies left out."""
        inside = [name for name in files if name.startswith(f"{part}/") and name.endswith(".safetensors")]
        full = [name for name in inside if ".fp16." not in name and ".non_ema." not in name] or inside
        return count_of(self._all_tensors(full)) if 0 < len(full) <= _MOST_FILES else 0

    def _all_tensors(self, names: Sequence[str]) -> list[Tensor]:
        """The headers of all files, a few at once."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_AT_ONCE, len(names))) as pool:
            return [tensor for found in pool.map(self._tensors, names) for tensor in found]

    def _tensors(self, name: str) -> list[Tensor]:
        found = from_source(_RemoteFile(self, name), safetensors.tensors_of, name=f"{self.name} {name}")
        if isinstance(found, Finding):
            raise Refused([found])
        return found

    def _gguf(self, files: Sequence[str], formats: Formats) -> Found:
        able = sorted(name for name in files if name.endswith(".gguf") and not name.startswith("mmproj"))
        if len(able) != 1:
            shown = ", ".join(map(printable, able[:6]))
            observed = f"{len(able)} GGUF files and no {CONFIG}"
            action = f"download the file that you mean and give its path: {shown}" if able else LOCAL
            return (unreachable(self.name, observed, action),)
        source = _RemoteFile(self, able[0])
        header = from_source(source, gguf.header_of, name=f"{self.name} {able[0]}")
        if isinstance(header, Finding):
            return (header,)
        return model_of_gguf(header.metadata, header.tensors, formats, id=self.name)

    def _json(self, name: str, *, most: int) -> Mapping[str, object]:
        found = parse_json(self.fetch(name, 0, most + 1)[0], name=f"{self.name} {name}", most=most)
        if isinstance(found, Finding):
            raise Refused([found])
        return found

    def fetch(self, name: str, start: int, length: int) -> tuple[bytes, int]:
        """At most ``length`` bytes of a file from ``start`` on, and the size of the whole file.

        A server that does not know ranges is cut off after as many bytes.
        """
        known = self.hub.utils.build_hf_headers(library_name="rackrate")
        wanted = {**known, "Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity"}
        url = self.hub.hf_hub_url(self.name, name)
        try:
            with self.hub.get_session().stream("GET", url, headers=wanted, timeout=_TIMEOUT_S) as answer:
                answer.raise_for_status()
                skip = start if answer.status_code != 206 else 0  # noqa: PLR2004 - partial content
                content = _first(answer.iter_bytes(), skip + length)[skip:]
                return content, _whole(answer.headers, skip + len(content))
        except Exception as wrong:  # noqa: BLE001 - whatever the client and its libraries raise is one finding
            self._refuse(wrong)

    def _refuse(self, wrong: Exception) -> NoReturn:
        """The refusal that an error of the client means."""
        status = getattr(getattr(wrong, "response", None), "status_code", None)
        named = type(wrong).__name__
        if named == "GatedRepoError" or status in _NOT_ALLOWED:
            action = f"check the name; if it is private or gated, accept its terms and set HF_TOKEN; or {LOCAL}"
            raise Refused([unreachable(self.name, "no access, or no such model", action)]) from None
        if status == _NO_SUCH or named in {"RepositoryNotFoundError", "HFValidationError"}:
            raise Refused([unknown(self.name)]) from None
        action = f"check the network and HF_ENDPOINT, or {LOCAL}"
        raise Refused([unreachable(self.name, f"the Hub did not answer ({named})", action)]) from None


class _RemoteFile:
    """A file on the Hub as a source: fetched block by block, each twice as long as the one before."""

    def __init__(self, repository: _Repository, name: str) -> None:
        self._repository = repository
        self._name = name
        self._start = 0
        self._block, self._size = repository.fetch(name, 0, _FIRST_BYTES)
        self._fetched = len(self._block)

    @property
    def size(self) -> int:
        """All bytes of the file."""
        return self._size

    def read(self, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start`` on."""
        inside = start - self._start
        if inside < 0 or inside + length > len(self._block):
            wanted = max(length, min(2 * len(self._block), _MOST_BLOCK_BYTES))
            self._fetched += wanted
            if self._fetched > _MOST_HEADER_BYTES:
                most = _MOST_HEADER_BYTES // 2**20
                raise Refused([unreachable(self._repository.name, f"a header of more than {most} MiB", LOCAL)])
            self._start, inside = start, 0
            self._block = self._repository.fetch(self._name, start, wanted)[0]
        return self._block[inside : inside + length]


def _first(chunks: Any, length: int) -> bytes:  # noqa: ANN401 - an iterator of the client's
    """The first ``length`` bytes of a stream, the rest unread."""
    found = bytearray()
    for chunk in chunks:
        found += chunk[: length - len(found)]
        if len(found) >= length:
            break
    return bytes(found)


def _whole(headers: Any, seen: int) -> int:  # noqa: ANN401 - the client's headers
    """The size of the file: behind the slash of Content-Range, else of the answer, else what was seen."""
    total = str(headers.get("Content-Range", "")).rpartition("/")[2] or str(headers.get("Content-Length", ""))
    return int(total) if total.isdecimal() and len(total) < 20 else seen  # noqa: PLR2004 - no file is larger


# ---------------------------------------------------------------- findings


def unreachable(name: str, observed: str, action: str) -> Finding:
    """Why the Hub gives nothing, with what can be done instead."""
    return Finding(
        code=Code.HUB_UNREACHABLE,
        subject=printable(name),
        observed=printable(observed),
        expected="a bundled id, a path, or a model on the Hugging Face Hub",
        action=action,
    )


def unknown(name: str) -> Finding:
    """No such model on the Hub."""
    return Finding(
        code=Code.UNKNOWN_NAME,
        subject="model",
        observed=printable(name),
        expected="a bundled id, a path, or a model on the Hugging Face Hub",
        action=f"check the spelling on the Hub, or {LOCAL}",
    )
