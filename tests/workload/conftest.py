"""A small book of facts made by hand: enough to parse any workload against."""

from datetime import date
from decimal import Decimal

import pytest

from rackrate.evidence import Fact, Kind, Range
from rackrate.facts.accelerator import Accelerator, Precision
from rackrate.facts.book import FactBook
from rackrate.facts.denoiser import Denoiser
from rackrate.facts.engine import Engine
from rackrate.facts.engine_serving import CacheType, ServingPolicy
from rackrate.facts.engine_speed import Host, SpeedPolicy
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.money import ExchangeRates

PLAIN = ("bf16", "fp16", "fp32")


def fact(value: float, unit: str) -> Fact:
    return Fact(value=value, unit=unit, kind=Kind.PUBLISHED, source="made for tests")


def card(
    card_id: str, memory_gb: float, capability: tuple[int, int] | None, *rates: str, vendor: str = "NVIDIA"
) -> Accelerator:
    facts = {f"peak_{name}_flop_per_s": fact(1e14, "FLOP/s") for name in rates}
    return Accelerator(
        id=card_id,
        vendor=vendor,
        product=card_id.upper().replace("-", " ") + ("GB" if "-" in card_id else ""),
        architecture="",
        form_factor="SXM4" if "sxm" in card_id else "PCIe",
        memory_type="HBM2e",
        memory_sold_gb=memory_gb,
        compute_capability=capability,
        launch_year=2020,
        facts=facts | {"bandwidth_bytes_per_s": fact(1.5e12, "B/s")},
        ecc=None if vendor == "AMD" else True,
        nvlink_bridge_max_gpus=2 if card_id == "a40" else 0,
        nvswitch="sxm" in card_id,
        mig_instances=7 if "a100" in card_id else 0,
    )


def model(model_id: str, **changes: object) -> Model:
    """Llama-2-7B's numbers (meta-llama config.json), but for the changes."""
    numbers: dict[str, object] = {
        "family": "Llama 2",
        "params_total": 6_738_415_616,
        "params_active": 6_738_415_616,
        "hidden_size": 4096,
        "layers": 32,
        "attention_heads": 32,
        "kv_heads": 32,
        "head_dim": 128,
        "intermediate_size": 11008,
        "vocab_size": 32000,
        "tie_embeddings": False,
        "max_context": 4096,
        "attention": "full",
        "layers_full": 32,
        "layers_windowed": 0,
        "window": None,
        "layers_linear": 0,
        "native_dtype": "float16",
    }
    return Model(id=model_id, **(numbers | changes))  # type: ignore[arg-type]


MODELS = [
    model("meta-llama/Llama-2-7b-hf"),
    model(
        "meta-llama/Llama-2-70b-hf",
        attention_heads=64,
        kv_heads=8,
        hidden_size=8192,
        intermediate_size=28672,
        layers=80,
        layers_full=80,
        params_total=68_976_648_192,
    ),
    model(
        "Qwen/Qwen2.5-7B-Instruct",
        attention_heads=28,
        kv_heads=4,
        hidden_size=3584,
        intermediate_size=18944,
        vocab_size=152064,
        max_context=131072,
        native_dtype="bfloat16",
        params_total=7_615_616_512,
    ),
    model("openai/gpt-oss-20b", native_dtype="mxfp4", max_context=131072),
    model("moonshotai/Kimi-K2.5", native_dtype="compressed-tensors", max_context=262144),
    model("EleutherAI/gpt-neo-2.7B", native_dtype="float32", max_context=2048),
    model("openai-community/gpt2", native_dtype="", max_context=1024),
    model(
        "google-bert/bert-large-uncased",
        attention="full (bidirectional, no KV cache)",
        max_context=512,
        layers_full=None,
        native_dtype="float32",
    ),
    model(
        "stabilityai/sdxl",
        layers=None,
        vocab_size=None,
        hidden_size=None,
        attention_heads=None,
        modality="text-to-image",
        max_context=None,
        native_dtype="",
    ),
]

FORMATS = [
    WeightFormat(
        id=name,
        title=name,
        bits_per_weight=bits,
        embeddings_16bit=bits < 16,
        head_16bit=bits < 16,
        computes_in=computes,
        min_compute_capability=None,
        source="made for tests",
    )
    for name, bits, computes in (
        ("bf16", 16, None),
        ("fp16", 16, None),
        ("fp32", 32, None),
        ("fp8", 8, Precision.FP8),
        ("nf4", 4.5, None),
        ("nf4-dq", 4.127, None),
        ("awq-int4", 4.16, None),
        ("gptq-int4", 4.16, None),
        ("mxfp4", 4.25, None),
        ("gguf-q4_k_m", 4.82, None),
    )
]


def serving(default_context: str, default_sequences: int) -> ServingPolicy:
    return ServingPolicy(
        memory_share=0.92,
        page_tokens=16,
        window_saves=False,
        default_context=default_context,
        default_sequences=default_sequences,
        batched_tokens=8192,
        mla_cache_padding=1,
        full_prompt_logits=False,
        continuous_batching=True,
        graph_bytes=Range(0, 1e9, 2e9),
        non_torch_bytes=Range(0, 1e8, 2e8),
        cache_types=(CacheType(id="fp8", bits=8), CacheType(id="int8", bits=8)),
    )


def training(*, master_weights: bool) -> TrainingPolicy:
    return TrainingPolicy(
        optimizer_temporary=True,
        loss="full",
        attention="flash",
        adapter_bytes=4,
        ties_weights=True,
        master_weights=master_weights,
        reserved_over_allocated=Range(1.0, 1.05, 1.1),
    )


def engine(
    engine_id: str,
    tasks: str,
    parallel: str,
    formats: tuple[str, ...],
    *,
    policy: ServingPolicy | TrainingPolicy,
    vendors: str = "NVIDIA AMD",
) -> Engine:
    return Engine(
        id=engine_id,
        title=engine_id,
        versions="any",
        seen_at="2026-11-30",
        source="made for tests",
        tasks=frozenset(tasks.split()),
        parallel=frozenset(parallel.split()),
        weight_formats=frozenset(formats),
        vendors=frozenset(vendors.split()),
        min_compute_capability=None,
        speed=SpeedPolicy(
            host=Host.EAGER,
            launch_s_per_layer=0,
            decode_bandwidth=0.6,
            cache_bandwidth=0.4,
            prefill_flop=0.5,
            train_flop=0.5,
            quantised_kernel=1,
            spread=0.3,
            source="made for tests",
        ),
        serving=policy if isinstance(policy, ServingPolicy) else None,
        training=policy if isinstance(policy, TrainingPolicy) else None,
    )


ENGINES = [
    engine(
        "axolotl",
        "lora qlora full_finetune pretrain",
        "data zero tensor",
        (*PLAIN, "nf4", "nf4-dq"),
        policy=training(master_weights=True),
    ),
    engine("diffusers", "diffusion diffusion_lora diffusion_full_finetune", "data", PLAIN, policy=serving("0", 1)),
    engine(
        "fsdp", "lora full_finetune pretrain", "data zero tensor pipeline", PLAIN, policy=training(master_weights=True)
    ),
    engine(
        "llama.cpp",
        "inference",
        "layer_split data",
        (*PLAIN, "gguf-q4_k_m", "mxfp4"),
        policy=serving("model", 4),
        vendors="NVIDIA AMD Apple",
    ),
    engine(
        "peft-trl",
        "lora qlora full_finetune",
        "data zero",
        (*PLAIN, "nf4", "nf4-dq"),
        policy=training(master_weights=True),
    ),
    engine(
        "torchtune",
        "lora qlora full_finetune",
        "data zero",
        (*PLAIN, "nf4"),
        policy=training(master_weights=False),
        vendors="NVIDIA",
    ),
    engine("transformers", "inference full_finetune", "data layer_split", (*PLAIN, "nf4"), policy=serving("0", 1)),
    engine("trainer", "full_finetune", "data layer_split", PLAIN, policy=training(master_weights=True)),
    engine(
        "vllm",
        "inference",
        "tensor pipeline data",
        (*PLAIN, "fp8", "awq-int4", "gptq-int4", "mxfp4"),
        policy=serving("model", 256),
    ),
]

CARDS = [
    card("a40", 48, (8, 6), "bf16", "fp16", "int8"),
    card("a100-sxm4-40", 40, (8, 0), "bf16", "fp16", "int8"),
    card("a100-sxm4-80", 80, (8, 0), "bf16", "fp16", "int8"),
    card("l40s", 48, (8, 9), "bf16", "fp16", "fp8"),
    card("mi300x", 192, None, "bf16", "fp16", vendor="AMD"),
]


PIPELINE = Pipeline(
    id="stabilityai/sdxl",
    denoiser=Denoiser(
        id="stabilityai/sdxl",
        kind="unet",
        widths=(320, 640, 1280),
        layers=2,
        heads=20,
        head_width=64,
        feed=0,
        depths=(0, 2, 10),
        middle_depth=10,
        context_width=2048,
        text_tokens=77,
        latent_scale=8,
        frame_scale=1,
        patch=1,
        passes=2,
        steps=50,
        width=1024,
        height=1024,
        frames=1,
        source="",
    ),
    denoiser_params=(2_567_463_684,),
    text_params=(123_060_480, 694_659_840),
    text_width=1280,
    text_feed=5120,
    text_table=63_242_240,
    vae="kl",
    vae_params=83_653_863,
    vae_widths=(128, 256, 512, 512),
    vae_widens="fp16",
    vae_tile=1024,
)


class Book(FactBook):
    """A book that does not fill the screen when a test fails."""

    def __repr__(self) -> str:
        return "the hand-made book"


def make_book() -> FactBook:
    models, engines = {m.id: m for m in MODELS}, {e.id: e for e in ENGINES}
    return Book(
        accelerators={c.id: c for c in CARDS},
        formats={f.id: f for f in FORMATS},
        billing={},
        model_ids=tuple(models),
        model=models.__getitem__,
        engine_ids=tuple(engines),
        engine=engines.__getitem__,
        rates=ExchangeRates(
            base="USD",
            per_base={"CNY": Decimal("7.1"), "EUR": Decimal("0.9")},
            on=date(2026, 11, 27),
            source="made for tests",
        ),
        digest="0" * 64,
        seen_at=date(2026, 11, 30),
        pipelines={PIPELINE.id: PIPELINE},
    )


@pytest.fixture(scope="session")
def book() -> FactBook:
    return make_book()
