"""Resolving: the names in a request looked up in the facts, and the ones not given chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rackrate.facts.accelerator import Precision
from rackrate.facts.book import FactBook
from rackrate.facts.engine import Engine
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.facts.sight import Sight
from rackrate.problems import Code
from rackrate.values import Value, replace
from rackrate.workload.checks import check_pictured
from rackrate.workload.draft import Draft
from rackrate.workload.keys_of_images import USUAL_SIDE
from rackrate.workload.named import named_engine, named_format, named_model
from rackrate.workload.workload import Task, engine_task

_NATIVE_PRECISION = {"bfloat16": Precision.BF16, "float16": Precision.FP16, "float32": Precision.FP16}
# Checkpoints whose type names a container: the format inside. compressed-tensors holds the 4-bit
# groups of Kimi K2.5 and K3 (config.json of moonshotai/Kimi-K2.5: pack-quantized, int, 4 bits).
_NARROW_FORMAT = {Precision.FP8: "fp8", Precision.FP4: "nvfp4"}
_CONTAINED_FORMAT = {"compressed-tensors": "gptq-int4"}
_USUAL_ENGINES: Mapping[str, Sequence[str]] = {
    Task.INFERENCE: ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "transformers"),
    Task.LORA: ("peft-trl", "axolotl", "torchtune"),
    Task.QLORA: ("peft-trl", "axolotl", "torchtune"),
    Task.FULL_FINETUNE: ("fsdp", "deepspeed", "axolotl", "torchtune"),
    Task.PRETRAIN: ("fsdp", "deepspeed"),
    Task.DIFFUSION: ("diffusers",),
    "diffusion_lora": ("diffusers",),
    "diffusion_qlora": ("diffusers",),
    "diffusion_full_finetune": ("diffusers",),
}
_OWN_ENGINES = {"gguf": "llama.cpp"}
"""Formats that one engine made and most others load as a sideline, by the first word of their ids."""


def own_engine(form: str) -> str:
    """The engine that a format was made for and that is chosen for it; nothing for most."""
    return _OWN_ENGINES.get(form.partition("-")[0], "")


class Chosen(Value, frozen=True, kw_only=True):
    """The facts that a workload stands on."""

    model: Model
    engine: Engine
    weights: WeightFormat
    precision: Precision
    sight: Sight | None = None
    pipeline: Pipeline | None = None


def resolve(draft: Draft, task: Task, vendors: tuple[str, ...], book: FactBook) -> Chosen | None:
    """All names looked up and the rest chosen; None when that fails, which the draft's findings then say."""
    model, engine, weights = named_model(draft, book), named_engine(draft, book), named_format(draft, book)
    if model is not None:
        _check_work(draft, task, model, book)
    if engine is not None:
        _check_engine(draft, _engine_task(task, model, book), engine, book)
        _check_vendors(draft, engine, vendors)
    if weights is not None:
        _check_format(draft, task, weights)
    if draft.refused or model is None:
        return None
    precision = _precision(draft, task, model, weights)
    if weights is None:
        weights = _default_format(draft, _format_wishes(task, model, precision), engine, book)
    if engine is None:
        engine = _default_engine(draft, (_engine_task(task, model, book), model, weights), vendors, book)
    else:
        _check_pair(draft, (task, model, weights), engine, book)
    pipeline = book.pipeline_of(model) if task is Task.DIFFUSION or task.trains else None
    if pipeline is not None:  # downloads and disks hold all networks, not the denoiser alone
        model = replace(model, params_total=pipeline.params_total)
    sight = _sight(draft, model, book)
    if engine is None or draft.refused:
        return None
    return Chosen(model=model, engine=engine, weights=weights, precision=precision, sight=sight, pipeline=pipeline)


# ---------------------------------------------------------------- do they go together


def _sight(draft: Draft, model: Model, book: FactBook) -> Sight | None:
    """How the model sees, whether images are asked for or not; their size means nothing without them."""
    found = book.sight_of(model)
    count = draft.number("serving.images_per_request")
    if not count:
        for path in ("serving.image_width", "serving.image_height"):
            if path in draft:
                draft.problem(
                    path,
                    Code.CONFLICT,
                    "the size of an image without images",
                    "images in the requests",
                    "give serving.images_per_request (--images-per-request) too, or leave it out",
                )
        return found
    if found is None:
        known = ", ".join(each.names[0] for each in book.sights())
        draft.problem(
            "serving.images_per_request",
            Code.NOT_YET,
            f"images for {model.id} ({model.modality})",
            f"a model whose tokens of an image are known: {known}",
            "leave it out, and count the tokens of its images in serving.prompt_tokens",
        )
        return None
    _check_images(draft, found, int(count))
    return found


def _check_images(draft: Draft, sight: Sight, count: int) -> None:
    """A context that is given must have room for the images beside prompt and output."""
    context = draft.number("serving.context_tokens")
    width, height = (draft.number(f"serving.image_{side}") or USUAL_SIDE for side in ("width", "height"))
    from rackrate.facts import sight_rules  # imported here: a question without images does not need it

    images = count * sight_rules.image_tokens(sight, int(width), int(height))
    least = images + int(draft.number("serving.prompt_tokens") or 1) + int(draft.number("serving.output_tokens") or 1)
    if context and least > context:
        draft.problem(
            "serving.context_tokens",
            Code.CONFLICT,
            f"a context of {context:g} tokens for requests of at least {least:g}, {images:g} of them images",
            "room for prompt, images and output",
            f"raise serving.context_tokens (--context) to {least:g}, or send fewer or smaller images",
        )


_FEWEST_PLAIN_BITS = 16


def is_quantised(weights: WeightFormat) -> bool:
    """Whether the format keeps fewer than 16 bits of a weight."""
    return weights.bits_per_weight < _FEWEST_PLAIN_BITS


TRAINED_KINDS = frozenset({"unet", "unet-linear", "flux", "sd3", "sd3-normed"})
"""Kinds of denoisers whose training is known."""


def _engine_task(task: Task, model: Model | None, book: FactBook) -> str:
    return engine_task(task, pictured=model is not None and book.pipeline_of(model) is not None)


def _check_frames(draft: Draft, pipeline: Pipeline) -> None:
    """Frames mean nothing to a pipeline for images."""
    if "images.frames" in draft and not pipeline.denoiser.makes_video:
        draft.problem(
            "images.frames",
            Code.CONFLICT,
            "frames of a pipeline for images",
            "a pipeline for video",
            "leave it out, or choose one such as Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
        )


def _check_work(draft: Draft, task: Task, model: Model, book: FactBook) -> None:
    """Whether the model does the task; what only images, or only text, has a meaning for."""
    pipeline = book.pipeline_of(model)
    if pipeline is not None:
        _check_frames(draft, pipeline)
    check_pictured(draft, task, pictured=pipeline is not None)
    if task is Task.DIFFUSION:
        _check_pipeline(draft, model, book)
    elif pipeline is None or not task.trains:
        _check_model(draft, task, model, book)
    elif task is Task.PRETRAIN or pipeline.denoiser.kind not in TRAINED_KINDS:
        draft.problem(
            "task",
            Code.NOT_YET,
            f"{task} of {model.id} ({pipeline.denoiser.kind})",
            "lora, qlora or full_finetune of Stable Diffusion, SDXL, SD3 or FLUX",
            "choose such a task and model, or --task diffusion to make images with it",
        )


def _check_pipeline(draft: Draft, model: Model, book: FactBook) -> None:
    """Memory follows from the shapes of a pipeline's networks, which are known for bundled pipelines."""
    if book.pipeline_of(model) is None:
        draft.problem(
            "model",
            Code.NOT_YET,
            f"{model.id} ({model.modality}) for {Task.DIFFUSION}",
            "a pipeline for images whose networks are known",
            f"choose one of {', '.join(book.pipelines)}, or give the folder of one (model_index.json)",
        )


def _check_model(draft: Draft, task: Task, model: Model, book: FactBook) -> None:
    """Memory follows from the numbers of a decoder or an encoder; other models wait for formulas of their own."""
    if model.is_encoder_decoder and not (model.encoder_layers and model.decoder_layers):
        draft.problem(
            "model",
            Code.MISSING_VALUE,
            f"{model.id} without the number of layers of its encoder and of its decoder",
            "encoder_layers and decoder_layers",
            "give its config.json as the model, or a row of your own in models.csv with both columns",
        )
        return
    _check_sound(draft, task, model)
    sized = None not in (model.hidden_size, model.layers, model.attention_heads, model.vocab_size)
    cached = model.generates_text and None not in (model.kv_heads, model.head_dim, model.layers_full)
    if not sized or not (task.trains or cached or model.only_encodes):
        draft.problem(
            "model",
            Code.NOT_YET,
            f"{model.id} ({model.modality}, attention {model.attention}) for {task}",
            "a text decoder or encoder whose architecture is known",
            _other_work(model, book),
        )


def _other_work(model: Model, book: FactBook) -> str:
    """What to do with a model that does not write text."""
    if book.pipeline_of(model) is not None:
        return f"to make images with it, say --task {Task.DIFFUSION}"
    return "choose such a model; `rackrate gpu` compares cards for other work"


def _check_engine(draft: Draft, task: str, engine: Engine, book: FactBook) -> None:
    if task not in engine.tasks:
        able = [e.id for e in map(book.engine, book.engine_ids) if task in e.tasks]
        draft.problem(
            "engine",
            Code.CONFLICT,
            f"{engine.id} for {task}",
            f"an engine for {task}: {', '.join(able)}",
            f"choose one of them, or a task of {engine.id}: {', '.join(sorted(engine.tasks))}",
        )


def _check_vendors(draft: Draft, engine: Engine, vendors: tuple[str, ...]) -> None:
    if vendors and not set(vendors) & engine.vendors:
        draft.problem(
            "limits.vendors",
            Code.CONFLICT,
            f"{engine.id} on {', '.join(vendors)}",
            f"a vendor that {engine.id} runs on: {', '.join(sorted(engine.vendors))}",
            "change limits.vendors or the engine",
        )


def _check_format(draft: Draft, task: Task, weights: WeightFormat) -> None:
    wrong = {
        Task.QLORA: not is_quantised(weights),
        Task.LORA: is_quantised(weights),
        Task.FULL_FINETUNE: is_quantised(weights),
        Task.PRETRAIN: is_quantised(weights),
    }
    if wrong.get(task, False):
        bits = "fewer than 16 bits" if task is Task.QLORA else "16 or 32 bits"
        draft.problem(
            "quantization",
            Code.CONFLICT,
            f"{weights.id} ({weights.bits_per_weight:g} bits a weight) for {task}",
            f"a format of {bits}",
            "choose nf4-dq, or task lora" if task is Task.QLORA else "leave quantization out, or choose task qlora",
        )


def _check_pair(draft: Draft, work: tuple[Task, Model, WeightFormat], engine: Engine, book: FactBook) -> None:
    """An engine must load the format, and have code for the sides of the model that is modelled."""
    task, model, weights = work
    if weights.id not in engine.weight_formats:
        _refuse_pair(draft, engine, weights, book)
        return
    if engine.runs(model):
        return
    able = [e.id for e in map(book.engine, book.engine_ids) if task in e.tasks and e.runs(model)]
    draft.problem(
        "engine",
        Code.NOT_YET,
        f"{engine.id} for {model.id}, which has an encoder and a decoder",
        f"an engine whose encoder-decoders are counted: {', '.join(able) or 'none for this task'}",
        f"choose one of them, or leave the engine out, for {task}",
    )


def _check_sound(draft: Draft, task: Task, model: Model) -> None:
    """Seconds of sound, beams and prompts have a meaning for some models alone."""
    if task.trains:
        if "training.mean_tokens" in draft and model.encoder_positions is not None:
            draft.problem(
                "training.mean_tokens",
                Code.CONFLICT,
                f"training.mean_tokens for {model.id}",
                "training.rows: each is a window of 30 seconds, whatever is said in it",
                "leave it out, or choose another model",
            )
        return
    wrong = {
        "serving.audio_seconds": (model.encoder_positions is None, "a model that transcribes, such as Whisper"),
        "serving.beams": (
            not model.is_encoder_decoder,
            "an encoder-decoder; more concurrency stands for beams of others",
        ),
        "serving.prompt_tokens": (
            model.encoder_positions is not None,
            "serving.audio_seconds: windows are of one length",
        ),
    }
    for path, (unfit, expected) in wrong.items():
        if path in draft and unfit:
            draft.problem(
                path, Code.CONFLICT, f"{path} for {model.id}", expected, "leave it out, or choose another model"
            )


def _refuse_pair(draft: Draft, engine: Engine, weights: WeightFormat, book: FactBook) -> None:
    able = [e.id for e in map(book.engine, book.engine_ids) if weights.id in e.weight_formats]
    draft.problem(
        "quantization" if "quantization" in draft else "engine",
        Code.CONFLICT,
        f"{engine.id} does not load {weights.id}",
        f"a format that {engine.id} loads: {', '.join(sorted(engine.weight_formats))}",
        f"choose one of them, or an engine for {weights.id}: {', '.join(able) or 'none is known'}",
    )


# ---------------------------------------------------------------- names that were not given


def _precision(draft: Draft, task: Task, model: Model, weights: WeightFormat | None) -> Precision:
    """Training in BF16; inference in the type of the weights, the checkpoint's, or BF16."""
    if task.trains:
        default, why = Precision.BF16, "wide_range"
    elif weights is not None and weights.id in {"bf16", "fp16", "fp32"}:
        default, why = Precision(weights.id), "same_as_format"
    elif model.native_dtype in _NATIVE_PRECISION:
        default, why = _NATIVE_PRECISION[model.native_dtype], f"native_dtype({model.native_dtype})"
    elif model.native_dtype:
        default, why = Precision.BF16, f"quantised_checkpoint({model.native_dtype})"
    else:
        default, why = Precision.BF16, "native_dtype_unknown"
    return Precision(draft.choose("precision", default.value, why))


def _format_wishes(task: Task, model: Model, precision: Precision) -> Sequence[tuple[str, str]]:
    """Formats to take when none was given, best first, each with its reason."""
    plain = ("bf16" if precision in _NARROW_FORMAT else precision.value, "same_as_precision")
    if task is Task.QLORA:
        return (("nf4-dq", "qlora_format"), ("nf4", "qlora_format"))
    if task.trains:
        return (plain,)
    if precision in _NARROW_FORMAT:
        return ((_NARROW_FORMAT[precision], "same_as_precision"), plain)
    native = model.native_dtype
    return ((_CONTAINED_FORMAT.get(native, native), f"native_format({native})"), plain)


def _default_format(
    draft: Draft, wishes: Sequence[tuple[str, str]], engine: Engine | None, book: FactBook
) -> WeightFormat:
    """The first wish that is a known format and that the engine, if one was given, loads; else the last wish."""
    known = [(format_id, why) for format_id, why in wishes if format_id in book.formats]
    loaded = [wish for wish in known if engine is None or wish[0] in engine.weight_formats]
    format_id, why = (loaded or known[-1:] or [wishes[-1]])[0]
    draft.assume("quantization", format_id, why)
    return book.formats[format_id]


def _default_engine(
    draft: Draft, work: tuple[str, Model, WeightFormat], vendors: tuple[str, ...], book: FactBook
) -> Engine | None:
    """The most used engine that does the task, loads model and format and runs on an allowed vendor's cards."""
    task, model, weights = work
    own = own_engine(weights.id)
    usual = [engine_id for engine_id in (own, *_USUAL_ENGINES.get(task, ())) if engine_id in book.engine_ids]
    for engine in map(book.engine, dict.fromkeys((*usual, *book.engine_ids))):
        if (
            task in engine.tasks
            and weights.id in engine.weight_formats
            and (not vendors or set(vendors) & engine.vendors)
            and engine.runs(model)
        ):
            draft.assume("engine", engine.id, "format_engine" if engine.id == own else "usual_engine")
            return engine
    draft.problem(
        "quantization" if "quantization" in draft else "engine",
        Code.CONFLICT,
        f"{task} with {weights.id}" + (f" on {', '.join(vendors)}" if vendors else ""),
        "a format and a vendor that some engine supports for the task",
        "choose another quantization or vendor, or name the engine",
    )
    return None
