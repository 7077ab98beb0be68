"""Models in files: exact bytes and counts from headers, whatever the format; what is wrong is said, never raised."""

import json
import shutil
import struct
from pathlib import Path

import pytest
from tests.cli.ask import run
from tests.facts.samples import make

from rackrate import api
from rackrate.app.checkpoint import gguf, safetensors
from rackrate.app.checkpoint.find import own_model
from rackrate.app.checkpoint.local import read_path
from rackrate.app.checkpoint.source import BytesSource, CorruptError, Cursor
from rackrate.app.context import facts
from rackrate.facts.model import Model
from rackrate.problems import Code, Severity

SAMPLES = Path(make.__file__).parent
FORMATS = facts().formats
PARAMS = 78_144
"""Of the sample Llama in every format: 2 x 128 x 64 (ends) + 2 (2 x 64 x 64 + 2 x 32 x 64 + 3 x 96 x 64) + 5 x 64."""


def read(path, **_):
    found = read_path(Path(path), FORMATS, name="sample")
    assert isinstance(found, Model), found
    return found


def refused(path):
    found = read_path(Path(path), FORMATS, name="sample")
    assert isinstance(found, tuple)
    for finding in found:
        assert finding.severity is Severity.ERROR
        assert finding.observed
        assert finding.action
    return found


def data_bytes(*paths):
    """Bytes of all tensors, reckoned from the files alone: what is not header is tensors."""
    return sum(path.stat().st_size - 8 - struct.unpack("<Q", path.read_bytes()[:8])[0] for path in paths)


# ---------------------------------------------------------------- the samples themselves


def test_the_samples_are_what_their_script_makes(tmp_path, monkeypatch):
    monkeypatch.setattr(make, "HERE", tmp_path)
    make.main()
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    kept = {
        path.relative_to(SAMPLES): path.read_bytes()
        for path in SAMPLES.rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert made == kept


def test_other_readers_see_the_same_tensors():
    """The published readers of both formats agree with ours on names, types, shapes and sizes."""
    published = pytest.importorskip("safetensors")
    for path in sorted(SAMPLES.rglob("*.safetensors")):
        ours = {t.name: t for t in safetensors.tensors_of(BytesSource(path.read_bytes()))}
        with published.safe_open(path, "numpy") as theirs:
            assert set(theirs.keys()) == set(ours)
            for name, tensor in ours.items():
                part = theirs.get_slice(name)
                assert tuple(part.get_shape()) == tensor.shape
                assert part.get_dtype() == tensor.type
    reader = pytest.importorskip("gguf").GGUFReader
    for path in sorted(SAMPLES.rglob("*.gguf")):
        header = gguf.header_of(BytesSource(path.read_bytes()))
        theirs = reader(path)
        assert [(t.name, t.tensor_type.name, tuple(t.shape.tolist()), int(t.n_bytes)) for t in theirs.tensors] == [
            tuple(tensor) for tensor in header.tensors
        ]
        assert {key for key in theirs.fields if not key.startswith("GGUF.")} == set(header.metadata)


# ---------------------------------------------------------------- safetensors


def test_a_folder_has_the_bytes_of_its_headers():
    found = read(SAMPLES / "llama-tiny")
    shards = sorted((SAMPLES / "llama-tiny").glob("*.safetensors"))
    assert found.params_total == PARAMS
    assert found.stored.loaded_bytes == data_bytes(*shards) == 2 * PARAMS + 2 * 4 * 64
    assert dict(found.stored.by_type) == {"BF16": 155_776, "F32": 1024}
    assert (found.stored.files, found.stored.format) == (2, "bf16")
    assert found.stored.embedding_bytes == found.stored.head_bytes == 2 * 128 * 64
    assert not found.remarks


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("llama-tiny-fp8", "fp8"),
        ("llama-tiny-gptq", "gptq-int4"),
        ("llama-tiny-awq", "awq-int4"),
        ("llama-tiny-nf4", "nf4"),
        ("llama-tiny-nvfp4", "nvfp4"),
    ],
)
def test_packed_tensors_stand_for_as_many_parameters(name, form):
    found = read(SAMPLES / name)
    assert found.params_total == PARAMS
    assert (found.native_dtype, found.stored.format) == (form, form)
    assert found.stored.loaded_bytes == data_bytes(SAMPLES / name / "model.safetensors")
    assert not found.remarks
    assert read(SAMPLES / name / "model.safetensors").stored == found.stored


def test_tensors_without_a_configuration_have_sizes_and_no_architecture(tmp_path):
    shutil.copy(SAMPLES / "llama-tiny-fp8" / "model.safetensors", tmp_path)
    for path in (tmp_path, tmp_path / "model.safetensors"):
        found = read(path)
        assert (found.params_total, found.layers) == (PARAMS, None)
        assert found.stored.loaded_bytes == data_bytes(tmp_path / "model.safetensors")
        assert found.remarks[0].code is Code.MODEL_INEXACT


def test_a_count_that_differs_from_the_configuration_is_said(tmp_path):
    shutil.copytree(SAMPLES / "llama-tiny-fp8", tmp_path / "model")
    config = json.loads((tmp_path / "model/config.json").read_text())
    (tmp_path / "model/config.json").write_text(json.dumps({**config, "intermediate_size": 960}))
    found = read(tmp_path / "model")
    assert found.params_total == PARAMS
    assert "fewer" in found.remarks[0].observed


def test_layers_for_speculative_decoding_and_tied_heads_stay_on_disk(tmp_path):
    tensors = {**make.ENDS, **make.norms(0), **make.norms(1), "model.layers.2.extra.weight": ("BF16", (10, 10))}
    for layer in (0, 1):
        tensors |= {f"{name}.weight": ("BF16", shape) for name, shape in make.matrices(layer).items()}
    make.write_safetensors(tmp_path / "model.safetensors", tensors)
    make.write_json(tmp_path / "config.json", {**make.LLAMA, "tie_word_embeddings": True})
    found = read(tmp_path)
    assert found.params_total == PARAMS - 128 * 64
    assert found.stored.beyond_bytes == 2 * (128 * 64 + 100)
    assert found.stored.head_bytes == 0


def test_second_copies_are_not_counted_twice(tmp_path):
    shutil.copytree(SAMPLES / "llama-tiny-fp8", tmp_path / "model")
    (tmp_path / "model/model.safetensors").rename(tmp_path / "model/part.safetensors")
    shutil.copy(tmp_path / "model/part.safetensors", tmp_path / "model/consolidated.safetensors")
    assert read(tmp_path / "model").params_total == PARAMS


def test_a_configuration_alone_has_no_bytes_of_files(tmp_path):
    shutil.copy(SAMPLES / "llama-tiny" / "config.json", tmp_path)
    assert read(tmp_path / "config.json").stored is None
    shutil.copy(SAMPLES / "llama-tiny" / "model.safetensors.index.json", tmp_path)
    assert read(tmp_path).stored is None
    assert read(tmp_path).params_total == PARAMS


def test_settings_of_modelopt_are_in_a_file_of_their_own(tmp_path):
    make.write_json(tmp_path / "config.json", make.LLAMA)
    make.write_json(tmp_path / "hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4"}})
    assert read(tmp_path).native_dtype == "nvfp4"


def test_a_missing_shard_is_named(tmp_path):
    shutil.copytree(SAMPLES / "llama-tiny", tmp_path / "model")
    (tmp_path / "model/model-00002-of-00002.safetensors").unlink()
    (found,) = refused(tmp_path / "model")
    assert found.subject == "model-00002-of-00002.safetensors"
    assert found.observed == "1 of 2 files of the index missing"


def test_an_adapter_names_the_model_that_it_belongs_to(tmp_path):
    make.write_json(tmp_path / "adapter_config.json", {"base_model_name_or_path": "meta-llama/Llama-2-7b-hf"})
    (found,) = refused(tmp_path)
    assert "adapter" in found.observed
    assert "meta-llama/Llama-2-7b-hf" in found.action


# ---------------------------------------------------------------- GGUF


def test_a_gguf_file_has_the_bytes_of_its_tensors():
    found = read(SAMPLES / "llama-tiny.Q4_K_M.gguf")
    matrices = {"Q4_K": 256 * (256 * 3 + 128 + 2 * 512), "Q6_K": 256 * (128 + 512 + 256)}
    assert found.params_total == sum(matrices.values()) + 3 * 256
    assert dict(found.stored.by_type) == {
        "Q4_K": matrices["Q4_K"] // 256 * 144,
        "Q6_K": matrices["Q6_K"] // 256 * 210,
        "F32": 4 * 3 * 256,
    }
    assert found.stored.format == "gguf-q4_k_m"
    assert (found.layers, found.kv_heads, found.head_dim, found.vocab_size) == (1, 2, 64, 256)
    assert not found.tie_embeddings
    assert not found.remarks


def test_a_split_model_is_all_its_files():
    whole = read(SAMPLES / "llama-tiny.Q4_K_M.gguf")
    for path in (SAMPLES / "split", *sorted((SAMPLES / "split").iterdir())):
        found = read(path)
        assert found.stored.by_type == whole.stored.by_type
        assert found.params_total == whole.params_total


def test_a_missing_part_of_a_split_model_is_named(tmp_path):
    shutil.copy(SAMPLES / "split" / "llama-tiny-00001-of-00002.gguf", tmp_path)
    (found,) = refused(tmp_path / "llama-tiny-00001-of-00002.gguf")
    assert found.subject == "llama-tiny-00002-of-00002.gguf"


def test_a_type_that_no_format_has_is_exact_in_size_and_near_in_kind():
    others = {name: form for name, form in FORMATS.items() if name != "gguf-iq3_xxs"}
    found = read_path(SAMPLES / "llama-tiny.IQ3_XXS.gguf", others, name="sample")
    assert isinstance(found, Model)
    assert found.stored.loaded_bytes == sum(size for _, size in found.stored.by_type)
    assert found.stored.format.startswith("gguf-")
    assert "IQ3_XXS" in found.remarks[0].observed
    assert found.tie_embeddings
    known = read(SAMPLES / "llama-tiny.IQ3_XXS.gguf")
    assert (known.stored.format, known.remarks) == ("gguf-iq3_xxs", ())


def test_several_models_in_a_folder_must_be_told_apart():
    (found,) = refused(SAMPLES)
    assert "llama-tiny.IQ3_XXS.gguf, llama-tiny.Q4_K_M.gguf" in found.action


GGUF = {
    "block_count": 4,
    "embedding_length": 256,
    "feed_forward_length": 512,
    "context_length": 8192,
    "attention.head_count": 8,
    "attention.head_count_kv": 4,
}
LAYER = {"token_embd.weight": ("F16", (256, 100)), "blk.0.attn_q.weight": ("F16", (256, 256))}


def from_gguf(tmp_path, kind, keys, tensors=LAYER):
    metadata = {"general.architecture": kind, "general.file_type": 1}
    metadata |= {f"{kind}.{key}": value for key, value in {**GGUF, **keys}.items()}
    make.write_gguf(tmp_path / "model.gguf", metadata, tensors)
    return read(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("kind", "keys", "kept"),
    [
        ("qwen2", {}, (4, 0, 0)),
        ("gemma2", {"attention.sliding_window": 64}, (2, 2, 0)),
        ("gemma3", {"attention.sliding_window": 64, "block_count": 12}, (2, 10, 0)),
        ("gpt-oss", {"attention.sliding_window": 64}, (2, 2, 0)),
        ("phi3", {"attention.sliding_window": 64}, (0, 4, 0)),
        ("exaone4", {"attention.sliding_window": 64, "attention.sliding_window_pattern": 2}, (2, 2, 0)),
        ("cohere2", {"attention.sliding_window": 64, "attention.sliding_window_pattern": [True, True, True, False]}, (1, 3, 0)),
        ("qwen3next", {"full_attention_interval": 4, "ssm.state_size": 128, "ssm.inner_size": 512, "ssm.conv_kernel": 4}, (1, 0, 3)),
        ("jamba", {"attention.head_count_kv": [0, 4, 0, 0], "ssm.state_size": 16, "ssm.inner_size": 512}, (1, 0, 3)),
        ("deci", {"attention.head_count_kv": [4, 0, 4, 0]}, (2, 0, 0)),
        ("mamba", {"ssm.state_size": 16, "ssm.inner_size": 512, "ssm.conv_kernel": 4}, (0, 0, 4)),
    ],
)  # fmt: skip
def test_what_layers_keep_in_gguf(tmp_path, kind, keys, kept):
    found = from_gguf(tmp_path, kind, keys)
    assert (found.layers_full, found.layers_windowed, found.layers_linear) == kept
    assert bool(found.linear_state_values) == bool(kept[2])


def test_latent_attention_and_experts_in_gguf(tmp_path):
    keys = {
        "attention.kv_lora_rank": 512,
        "attention.q_lora_rank": 1536,
        "attention.key_length": 576,
        "attention.value_length": 512,
        "attention.key_length_mla": 192,
        "attention.value_length_mla": 128,
        "attention.head_count_kv": 1,
        "rope.dimension_count": 64,
        "expert_count": 8,
        "expert_used_count": 2,
        "expert_shared_count": 1,
        "expert_feed_forward_length": 128,
        "leading_dense_block_count": 1,
    }
    experts = {"blk.1.ffn_up_exps.weight": ("F16", (256, 128, 8))}
    found = from_gguf(tmp_path, "deepseek2", keys, {**LAYER, **experts})
    assert found.is_mla
    assert (found.head_dim, found.mla_v_head_dim, found.mla_qk_rope_head_dim) == (192, 128, 64)
    assert (found.experts, found.experts_per_token, found.shared_experts, found.dense_layers_first) == (8, 2, 1, 1)
    assert found.params_total - found.params_active == 256 * 128 * 6


# ---------------------------------------------------------------- pipelines


def test_a_pipeline_counts_tensors_where_there_are_any_and_configurations_elsewhere(tmp_path):
    found = read(SAMPLES / "pipeline")
    groups = dict(found.params_by_group)
    assert groups["text_encoder"] == 1000
    assert groups["unet"] > groups["vae"] > 0
    assert found.params_total == sum(groups.values())
    assert read(SAMPLES / "pipeline" / "model_index.json").params_total == found.params_total
    shutil.copytree(SAMPLES / "pipeline", tmp_path / "p")
    shutil.rmtree(tmp_path / "p" / "vae")
    (missing,) = refused(tmp_path / "p")
    assert missing.subject == "model_index.json vae"


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize("name", ["", ".", "no/such/thing", "a\0b.json", "x.gguf", "x.json", "x.safetensors", "x.bin"])
def test_paths_that_lead_nowhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(name)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 5000, b'{"a": 1' + b"0" * 5000 + b"}", b"{" + b" " * 2**20]
)  # fmt: skip
def test_files_that_are_no_configuration(content, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    refused(tmp_path / "config.json")
    refused(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"\xff" * 8,
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}      ',
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}      ' + bytes(8),
        struct.pack("<Q", 60) + b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}      ' + bytes(8),
        struct.pack("<Q", 8) + b"[[[[[[[[",
    ],
)
def test_files_that_are_no_safetensors(content, tmp_path):
    (tmp_path / "x.safetensors").write_bytes(content)
    refused(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF",
        b"GGML" + bytes(40),
        b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 2**63) + bytes(40),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + make.text("k") + struct.pack("<IIQ", 9, 9, 2**40) + bytes(40),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(40),
    ],
)
def test_files_that_are_no_gguf(content, tmp_path):
    (tmp_path / "x.gguf").write_bytes(content)
    refused(tmp_path / "x.gguf")


def test_a_cursor_reads_on_past_its_chunk(monkeypatch):
    monkeypatch.setattr("rackrate.app.checkpoint.source.CHUNK", 16)
    texts = b"".join(make.text("x" * n) for n in range(20))
    cursor = Cursor(BytesSource(b"ab" + texts + b"end"))
    assert cursor.take(2) == b"ab"
    cursor.skip_texts(20)
    assert cursor.take(3) == b"end"
    assert cursor.left == 0
    with pytest.raises(CorruptError):
        cursor.take(1)


# ---------------------------------------------------------------- in use


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_name_of_a_model_is_one_fault(text):
    with pytest.raises(api.Refused) as refused:
        api.fit({"model": text, "task": "inference"}, {"limits.gpus": ["a40"]})
    assert [f.code for f in refused.value.findings] == ["bad_value"]


def test_what_is_a_path_and_what_a_name(monkeypatch):
    monkeypatch.chdir(SAMPLES)
    book = facts()
    assert own_model("gpt2", book) is None
    assert own_model("mistral-7b", book) is None
    assert own_model("no such model", book) is None
    for text in ("./llama-tiny", "llama-tiny", "llama-tiny/config.json", str(SAMPLES / "llama-tiny")):
        found = own_model(text, book)
        assert isinstance(found, Model)
        assert found.id == text
    assert isinstance(own_model("./gpt2", book), tuple)


@pytest.mark.parametrize("name", ["llama-tiny", "llama-tiny-awq", "llama-tiny.Q4_K_M.gguf"])
def test_a_workload_takes_a_path_as_its_model(name):
    path = str(SAMPLES / name)
    found = api.fit({"model": path, "task": "inference"}, {"limits.gpus": ["a40"], "serving.context_tokens": 1024})
    stored = read(path).stored
    assert found.verdict == "fits"
    assert found.workload.weight_format == stored.format
    weights = next(part for part in found.components if part.name == "weights")
    host = stored.embedding_bytes if name.endswith(".gguf") else 0  # llama.cpp leaves the input embedding there
    assert weights.bytes.likely == stored.loaded_bytes - host


def test_another_format_than_that_of_the_files_follows_the_formula():
    job = {"model": str(SAMPLES / "llama-tiny"), "task": "qlora", "quantization": "nf4"}
    weights = next(part for part in api.fit(job, {"limits.gpus": ["a40"]}).components if part.name == "weights")
    matrices = PARAMS - 5 * 64 - 2 * 128 * 64
    assert weights.bytes.likely == matrices * 4.5 / 8 + 2 * (PARAMS - matrices)


def test_training_a_checkpoint_of_files_costs_what_its_parameters_cost():
    job = {"model": str(SAMPLES / "llama-tiny"), "task": "full_finetune"}
    parts = {part.name: part.bytes.likely for part in api.fit(job, {"limits.gpus": ["a40"]}).components}
    assert parts["optimizer_states"] == 8 * PARAMS


def test_a_plan_can_be_made_for_a_model_in_files():
    answer = api.plan({"model": str(SAMPLES / "llama-tiny.Q4_K_M.gguf"), "task": "inference"}, {"limits.max_gpus": 1})
    assert answer.plans
    assert answer.workload.weight_format == "gguf-q4_k_m"


def test_everything_wrong_with_a_request_is_said_at_once():
    with pytest.raises(api.Refused) as wrong:
        api.fit({"model": "./no-such-model.gguf", "task": "inference", "currency": "XYZ"}, {"limits.gpus": ["a40"]})
    assert [f.code for f in wrong.value.findings] == [Code.FILE_UNREADABLE, Code.UNKNOWN_NAME]


def test_remarks_come_along_as_warnings(tmp_path):
    make.write_json(tmp_path / "config.json", {**make.LLAMA, "model_type": "llama9"})
    found = api.fit({"model": str(tmp_path), "task": "inference"}, {"limits.gpus": ["a40"]})
    assert "model_inexact" in {warning.code for warning in found.warnings}


# ---------------------------------------------------------------- what a workload makes of it


def test_gguf_files_are_planned_for_the_engine_that_they_come_from():
    """vLLM loads them, too, but as a sideline: bundled facts, unlike the small book of the workload's tests, say so."""
    asked = ("fit", "--gpu", "a40", "--json", "--model")
    assert "gguf-q4_k_m" in facts().engine("vllm").weight_formats
    found = run(*asked, SAMPLES / "llama-tiny.Q4_K_M.gguf").document
    assert found["workload"]["engine"] == "llama.cpp"
    assert {made["key"]: made["why"] for made in found["assumptions"]}["engine"] == "format_engine"
    assert run(*asked, SAMPLES / "llama-tiny.Q4_K_M.gguf", "--engine", "vllm").document["workload"]["engine"] == "vllm"
    assert run(*asked, SAMPLES / "llama-tiny").document["workload"]["engine"] == "vllm"
