"""Hostile files: no mutation of a configuration or a header raises, and none makes a reader allocate more than the file.

Each run is seeded: mutation n of a kind is the same on every machine. 10,000 of each kind are read, and 10,000
in all with their memory traced. ``RACKRATE_FUZZ=200000`` makes more of them.
A file is its header, mutated, before as many zeros as its tensors take, as on disk; the zeros are never read.
"""

import json
import os
import random
import tracemalloc
from pathlib import Path

import pytest
from tests.facts.samples import make

from rackrate.app.checkpoint import gguf, safetensors
from rackrate.app.checkpoint.local import from_source, parse_json
from rackrate.app.checkpoint.source import BytesSource
from rackrate.app.context import facts
from rackrate.facts.architecture.checkpoint import tensors_alone, with_tensors
from rackrate.facts.architecture.gguf import model_of_gguf
from rackrate.facts.architecture.read import model_of, pipeline_of
from rackrate.facts.model import Model
from rackrate.memory.kv_cache import cache_shape
from rackrate.memory.stages import Stage
from rackrate.memory.weights import parameter_groups, weight_bytes
from rackrate.problems import Finding

COUNT = int(os.environ.get("RACKRATE_FUZZ", "10000"))
"""Mutations of each kind."""

SAMPLES = Path(make.__file__).parent
FORMATS = facts().formats
FLOOR = 2**17
"""What Python's own objects for a document of a few kB may take: the bound for files smaller than this."""

CLASSES = json.loads((SAMPLES.parent / "class_counts.json").read_text("utf-8"))
EXTREMES = (
    0,
    -1,
    1,
    3,
    2**31,
    2**33 + 1,
    2**63,
    2**64 - 1,
    10**30,
    1.5,
    1e308,
    True,
    None,
    "",
    "4096",
    "auto",
    [],
    {},
    [1] * 9,
)
TOKENS = (
    b"0",
    b"-1",
    b"9" * 30,
    b"1e999",
    b"NaN",
    b"Infinity",
    b'""',
    b"[]",
    b"{}",
    b"null",
    b"true",
    b"[[[[",
    b"\xff",
    b"\0",
)


class Padded:
    """A header before zeros up to the size of a large file, which are made when asked for."""

    def __init__(self, header, size):
        self.header = header
        self.size = size

    def read(self, start, length):
        inside = self.header[start : start + length]
        return inside + bytes(min(length, max(0, self.size - start)) - len(inside))


# ---------------------------------------------------------------- mutations


def mutated(chance, raw):
    """Bytes with one to four changes: bits, pieces cut, doubled, moved or put in."""
    content = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(content) + 1)
        span = chance.choice((1, 1, 2, 4, 8, 64))
        how = chance.randrange(7)
        if how == 0 and content:
            content[at % len(content)] ^= 1 << chance.randrange(8)
        elif how == 1:
            del content[at : at + span]
        elif how == 2:
            content[at:at] = content[at : at + span]
        elif how == 3:
            content[at:at] = chance.choice(TOKENS)
        elif how == 4:
            content[at : at + 8] = chance.choice((0, 1, 2**16, 2**32 - 1, 2**40, 2**63, 2**64 - 1)).to_bytes(
                8, "little"
            )
        elif how == 5:
            content[at:] = b""
        else:
            content[at : at + span] = chance.randbytes(span)
    return bytes(content)


def changed(chance, config):
    """A configuration with one to four keys gone, or holding something else, at any depth."""
    made = json.loads(json.dumps(config))
    for _ in range(chance.randint(1, 4)):
        tables = [made, *(v for v in made.values() if isinstance(v, dict)), *(i for v in made.values() if isinstance(v, list) for i in v if isinstance(i, dict))]  # fmt: skip
        table = chance.choice([t for t in tables if t] or [made])
        if not table:
            break
        key = chance.choice(sorted(table))
        how = chance.randrange(4)
        if how == 0:
            del table[key]
        elif how == 1:
            table[key] = json.loads(json.dumps(chance.choice(EXTREMES)))
        elif how == 2:
            other = json.loads(json.dumps(chance.choice(CLASSES)["config"]))
            table.update({k: other[k] for k in chance.sample(sorted(other), min(3, len(other)))})
        elif isinstance(table[key], int | float) and not isinstance(table[key], bool):
            table[key] *= chance.choice((0, -1, 2, 1000, 10**9, 0.5))
    return json.dumps(made).encode()


# ---------------------------------------------------------------- readers


def read_config(source):
    """What ``config.json`` goes through, and what the answer is used for."""
    table = parse_json(source.read(0, source.size), name="x", most=2**20)
    if isinstance(table, Finding):
        return table
    pipeline_of(table, {}, {}, id="x")
    return used(model_of(table, id="x"))


def read_safetensors(source):
    tensors = from_source(source, safetensors.tensors_of, name="x")
    if isinstance(tensors, Finding):
        return tensors
    used(tensors_alone(tensors, FORMATS, id="x", files=1))
    return used(with_tensors(LLAMA, tensors, FORMATS, files=1))


def read_gguf(source):
    header = from_source(source, gguf.header_of, name="x")
    if isinstance(header, Finding):
        return header
    return used(model_of_gguf(header.metadata, header.tensors, FORMATS, id="x"))


def used(found):
    """A model must be good for a computation; anything else must be findings."""
    if not isinstance(found, Model):
        assert found
        assert all(isinstance(finding, Finding) and finding.action for finding in found)
        return found
    layers = max(1, found.layers or 0)
    stage = Stage(layers=layers, of=layers, first=True, last=True)
    for form in ("bf16", "gguf-q4_k_m"):
        assert weight_bytes(found, parameter_groups(found), stage, FORMATS[form], ties=True) >= 0
    cache_shape(found, stage, 1, 16, SERVING)
    assert 0 < found.params_active <= found.params_total
    return found


SERVING = facts().engine("vllm").serving
LLAMA = model_of(make.LLAMA, id="x")
TENSORS = (SAMPLES / "llama-tiny-gptq" / "model.safetensors").read_bytes()
TENSORS_HEADER = TENSORS[: 8 + int.from_bytes(TENSORS[:8], "little")]
GGUF = (SAMPLES / "llama-tiny.Q4_K_M.gguf").read_bytes()
GGUF_HEADER = GGUF[: len(GGUF) - 467_712 - 64]


def case(kind, number):
    """Mutation ``number`` of a kind: its reader and its file."""
    chance = random.Random(f"{kind} {number}")  # noqa: S311 - a test that can be repeated
    if kind == "safetensors":
        return read_safetensors, BytesSource(mutated(chance, TENSORS_HEADER).ljust(len(TENSORS), b"\0"))
    if kind == "gguf":
        return read_gguf, BytesSource(mutated(chance, GGUF_HEADER).ljust(len(GGUF), b"\0"))
    config = chance.choice(CLASSES)["config"]
    raw = changed(chance, config) if kind == "config" else mutated(chance, json.dumps(config).encode())
    return read_config, BytesSource(raw)


KINDS = ("config", "config bytes", "safetensors", "gguf")


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutation_raises(kind):
    for number in range(COUNT):
        read, source = case(kind, number)
        read(source)


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutation_makes_a_reader_allocate_more_than_the_file(kind):
    """As many mutations of all kinds together, for tracing is slow; the mutated bytes themselves are there before."""
    tracemalloc.start()
    try:
        for number in range(0, COUNT, len(KINDS)):
            read, source = case(kind, number)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            read(source)
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken <= max(source.size, FLOOR), (kind, number)
    finally:
        tracemalloc.stop()


def large_safetensors():
    """The header of 4,000 tensors of 64 kB each: 400 kB before 256 MB."""
    table = {
        f"model.layers.{n}.mlp.up_proj.weight": {
            "dtype": "BF16",
            "shape": [128, 256],
            "data_offsets": [65536 * n, 65536 * (n + 1)],
        }
        for n in range(4000)
    }
    raw = json.dumps(table).encode()
    return len(raw).to_bytes(8, "little") + raw, 8 + len(raw) + 4000 * 65536


def large_gguf(tmp_path):
    """A vocabulary of 40,000 texts before the tensors of the sample: what most of a real header is."""
    tokens = [f"token{n}" for n in range(40_000)]
    keys = {"general.architecture": "llama", "general.file_type": 1, "tokenizer.ggml.tokens": tokens}
    keys |= {"llama.block_count": 1, "llama.embedding_length": 256, "llama.attention.head_count": 4}
    make.write_gguf(tmp_path / "x.gguf", keys, {"token_embd.weight": ("F16", (256, 40_000))})
    raw = (tmp_path / "x.gguf").read_bytes()
    return raw[: -256 * 40_000 * 2 + 64], len(raw)


def test_large_headers_are_read_within_the_size_of_the_file(tmp_path):
    for read, (raw, size) in ((read_safetensors, large_safetensors()), (read_gguf, large_gguf(tmp_path))):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        assert isinstance(read(Padded(raw, size)), Model)
        taken = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        assert taken <= size


@pytest.mark.parametrize(
    "raw", [b"[" * 50_000, b"[[]," * 4000 + b"[]" + b"]" * 9, b'{"a":' + b"[0," * 9999, b"{}," * 10**5]
)
def test_a_small_document_cannot_grow_in_memory(raw):
    """Brackets cost three bytes in a file and sixty in memory: a configuration with too many is not parsed."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    assert isinstance(parse_json(raw, name="x", most=2**20), Finding)
    taken = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert taken <= 2**21
