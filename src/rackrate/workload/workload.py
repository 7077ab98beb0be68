"""Workload: what someone asks for, fully decided (every default made and listed)."""

from __future__ import annotations

import math
from datetime import timedelta
from enum import StrEnum

from rackrate.facts.accelerator import Precision
from rackrate.facts.engine_serving import CacheType
from rackrate.facts.formats import WeightFormat
from rackrate.facts.model import Model
from rackrate.facts.pipeline import Pipeline
from rackrate.facts.sight import Sight
from rackrate.money import Money
from rackrate.values import Value
from rackrate.workload.layout import Parallel
from rackrate.workload.measured import Measured


class Task(StrEnum):
    """What is to be done with the model."""

    INFERENCE = "inference"
    LORA = "lora"
    QLORA = "qlora"
    FULL_FINETUNE = "full_finetune"
    PRETRAIN = "pretrain"
    DIFFUSION = "diffusion"
    RENDER = "render"

    @property
    def trains(self) -> bool:
        """Whether gradients are computed."""
        return self in {Task.LORA, Task.QLORA, Task.FULL_FINETUNE, Task.PRETRAIN}

    @property
    def trains_adapters(self) -> bool:
        """Whether only low-rank adapters get gradients."""
        return self in {Task.LORA, Task.QLORA}


def engine_task(task: Task, *, pictured: bool) -> str:
    """The word for ``task`` in an engine's list: training of diffusion models is apart from that of language models."""
    return f"diffusion_{task}" if pictured and task.trains else str(task)


class Checkpointing(StrEnum):
    """Which activations are recomputed in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class Pictured(Value, frozen=True, kw_only=True):
    """What a diffusion model is trained on: images of ``width`` x ``height`` pixels.

    ``cached``: what was computed beforehand and is not on the card: ``texts`` the
    prompts' states, ``all`` those and the images' latents, empty nothing.
    """

    pipeline: Pipeline
    width: int
    height: int
    cached: str = ""

    @property
    def latents(self) -> float:
        """Tokens of an image, or positions of a U-Net's finest level."""
        side = self.pipeline.denoiser.latent_scale * self.pipeline.denoiser.patch
        return float(-(-self.width // side) * -(-self.height // side))


class Training(Value, frozen=True, kw_only=True):
    """Sizes of a training run.

    ``micro_batch`` sequences of ``sequence_tokens`` go through one replica at a
    time; ``global_batch`` sequences make one optimizer step; ``tokens`` is the
    whole run (epochs included). ``optimizer`` is an id such as ``adamw``,
    ``adamw-8bit``, ``paged-adamw-8bit``, ``adafactor``, ``lion``, ``sgd``,
    ``muon``. ``pure_16bit``: weights, gradients and moments all stay in the
    16-bit precision (no FP32 master copy). ``lora_targets`` are of
    q, k, v, o, gate, up, down (``all`` = every linear layer).

    ``loss`` (``full``, ``chunked``, ``fused``) and ``attention`` (``flash``,
    ``eager``) are the engine's own where they are empty. Of an encoder-decoder
    ``sequence_tokens`` are what its encoder reads and ``target_tokens`` what it
    learns to write; one for sound always reads ``source_positions``, and its
    ``sequence_tokens`` are what it writes. ``compiled``: layers
    go through torch.compile. ``step_in_backward``: each gradient is used and
    freed as soon as it is there. ``offload``: what waits in the host's memory
    (``activations``, ``optimizer``, ``parameters`` with the optimizer).
    ``checkpoint_every`` and ``evaluate_every`` so many steps (0: at the end alone, never), on ``eval_tokens``.
    ``dora``: adapters with a magnitude for each output. ``modules_to_save``:
    ``embedding`` and ``head`` where copies of them are trained beside adapters.
    ``saving``: how divided weights are saved (empty: the engine's usual way).
    ``pictured``: the images of a
    diffusion model, each of which is a sequence.
    """

    sequence_tokens: int
    micro_batch: int
    global_batch: int
    tokens: float
    optimizer: str
    checkpointing: Checkpointing
    pure_16bit: bool
    packed: bool
    lora_rank: int = 0
    lora_targets: tuple[str, ...] = ()
    loss: str = ""
    attention: str = ""
    compiled: bool = False
    step_in_backward: bool = False
    offload: str = ""
    dora: bool = False
    checkpoint_every: int = 0
    evaluate_every: int = 0
    eval_tokens: float = 0.0
    modules_to_save: tuple[str, ...] = ()
    saving: str = ""
    pictured: Pictured | None = None
    target_tokens: int = 0
    source_positions: int = 0

    @property
    def read_tokens(self) -> int:
        """Positions that the encoder of an encoder-decoder reads in a sequence; 0 without one."""
        return self.source_positions or (self.sequence_tokens if self.target_tokens else 0)

    @property
    def written_tokens(self) -> int:
        """Tokens that the decoder writes in a sequence."""
        return self.target_tokens or self.sequence_tokens


NOT_HOSTED = "none"
"""What to call the hosted model for no comparison."""


class Seen(Value, frozen=True, kw_only=True):
    """The images in a prompt: ``count`` of ``width`` x ``height`` pixels, as a model with this ``sight`` sees them."""

    sight: Sight
    count: int
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """Tokens that the images add to a prompt."""
        from rackrate.facts import sight_rules  # imported here: a question without images does not need it

        return self.count * sight_rules.image_tokens(self.sight, self.width, self.height)


WINDOW_S = 30
"""Seconds of sound that Whisper reads at a time (arXiv 2212.04356, section 2.1)."""


class DraftModel(Value, frozen=True, kw_only=True):
    """Speculative decoding: ``model``, stored as ``weights``, guesses ``tokens`` at a time, which the model checks.

    ``acceptance_rate``: the chance that a guess is taken (None: not known).
    """

    model: Model
    weights: WeightFormat
    tokens: int
    acceptance_rate: float | None = None


def windows_of(audio_seconds: float, step_s: float) -> int:
    """Windows of ``audio_seconds``, each ``step_s`` behind the one before: ``1 + (seconds - 30) / step``."""
    return 1 + max(0, math.ceil((audio_seconds - WINDOW_S) / step_s))


class Serving(Value, frozen=True, kw_only=True):
    """Sizes of an inference job.

    ``concurrency`` requests are in flight, each of ``prompt_tokens`` +
    ``output_tokens``; the context planned for is their sum unless
    ``context_tokens`` says more. ``requests`` (offline) is the number of
    requests in the whole job; ``requests_per_s`` (online) the offered load.
    Latency targets are for the ``percentile`` of requests (50: the median one), in
    seconds. ``length_spread``: standard deviation of lengths over their means. ``hosted`` is the
    hosted model to compare with: empty means the same one, ``none`` none.
    ``prompt_tokens`` count those of the images ``seen``. ``cache_bits`` of a
    value in the KV cache, scales included, where ``cache`` is the type of keys
    and of values, unless ``value_cache`` says another for these. The first
    ``shared_prefix_tokens`` of all prompts are the same, and the engine keeps them.
    A ``draft`` model guesses tokens that the model checks together.

    ``encoded``: the model has an encoder, whose positions ``prompt_tokens``
    count, and its cache grows with what the decoder writes alone. ``beams`` are
    written at a time for each sequence. ``audio_seconds`` of a request are read
    in windows, one after the other, each ``window_step_s`` behind the one before:
    all other sizes are then of one window.
    """

    online: bool
    prompt_tokens: int
    output_tokens: int
    context_tokens: int
    concurrency: int
    requests_per_s: float | None = None
    requests: float | None = None
    max_first_token_s: float | None = None
    max_s_per_output_token: float | None = None
    cache_bits: float = 16
    cache: CacheType | None = None
    value_cache: CacheType | None = None
    hosted: str = ""
    seen: Seen | None = None
    percentile: int = 50
    length_spread: float = 0.0
    encoded: bool = False
    beams: int = 1
    audio_seconds: float | None = None
    window_step_s: float = WINDOW_S
    shared_prefix_tokens: int = 0
    draft: DraftModel | None = None

    @property
    def cached_tokens(self) -> int:
        """Tokens of one full sequence that the cache has to have room for, guesses of a draft model among them."""
        if self.encoded:
            return max(self.context_tokens - self.prompt_tokens, self.output_tokens, 1)
        return max(self.context_tokens, self.prompt_tokens + self.output_tokens, 1) + self.guessed_tokens

    @property
    def guessed_tokens(self) -> int:
        """Tokens that a draft model guesses ahead of a sequence; 0 without one."""
        return self.draft.tokens if self.draft is not None else 0

    @property
    def windows(self) -> int:
        """Windows that one request is read in; 1 where it is not sound."""
        return windows_of(self.audio_seconds or 0.0, self.window_step_s)

    @property
    def read_tokens(self) -> int:
        """Tokens of a prompt that are read for each request: all but a prefix that is kept."""
        return self.prompt_tokens - self.shared_prefix_tokens

    @property
    def image_tokens(self) -> int:
        """Tokens of a prompt that stand for images."""
        return self.seen.tokens if self.seen is not None else 0


class Images(Value, frozen=True, kw_only=True):
    """Sizes of image generation: ``at_once`` images of ``width`` x ``height`` pixels are made at a time.

    ``pipeline_offload``: what waits in the host's memory (``none``; ``model``, every
    network but the one at work; ``sequential``, every layer but one).
    ``slicing``: the VAE decodes one image after the other; ``tiling``: one tile.
    The job is ``count`` images of ``steps`` denoising steps each, or videos of ``frames``.
    """

    pipeline: Pipeline
    width: int
    height: int
    at_once: int
    pipeline_offload: str
    slicing: bool
    tiling: bool
    count: float
    steps: int
    frames: int = 1


class Budget(Value, frozen=True, kw_only=True):
    """The most that may be spent, for the whole job or per period (``total``, ``hour``, ``day``, ``month``)."""

    money: Money
    period: str = "total"


class Limits(Value, frozen=True, kw_only=True):
    """What a plan must keep to; empty tuples and None mean no limit."""

    deadline_hours: float | None = None
    budget: Budget | None = None
    gpus: tuple[str, ...] = ()
    gpu_counts: tuple[int, ...] = ()
    max_gpus: int | None = None
    regions: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    exclude_providers: tuple[str, ...] = ()
    markets: tuple[str, ...] = ()
    interruptible: bool = False
    require: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    access: tuple[str, ...] = ()


class Use(Value, frozen=True, kw_only=True):
    """When and around what the machine runs.

    A service runs ``hours_per_day`` on each of ``horizon_days``; a job runs
    once, in ``starts`` sessions. Data sizes are in bytes for the whole job
    (``data_in`` is your own data, the model comes on top) and disk is what is kept
    while the machine exists.
    """

    hours_per_day: float = 24.0
    horizon_days: float = 30.0
    starts: int = 1
    disk_bytes: float = 0.0
    data_in_bytes: float = 0.0
    data_out_bytes: float = 0.0
    keep_disk_days: float = 0.0


class Assumption(Value, frozen=True, kw_only=True):
    """A default that was made: the key, the value taken, and why (a code with its parameters)."""

    key: str
    value: str
    why: str


class Workload(Value, frozen=True, kw_only=True):
    """One job or service to plan for; ``training``, ``serving`` or ``images`` is set according to ``task``.

    ``sight`` is how the model sees, whether images are asked for or not.
    ``display_currency`` is the currency in which costs are compared and shown.
    ``parallel`` is the division over cards that was asked for (None: the best is searched).
    ``measured`` is a speed that was seen on one machine.
    """

    model: Model
    task: Task
    precision: Precision
    weights: WeightFormat
    limits: Limits
    use: Use
    engine_id: str
    training: Training | None = None
    serving: Serving | None = None
    images: Images | None = None
    parallel: Parallel | None = None
    sight: Sight | None = None
    display_currency: str = "USD"
    assumptions: tuple[Assumption, ...] = ()
    measured: Measured | None = None

    @property
    def engine_task(self) -> str:
        """What an engine must do: the task, of a diffusion model where it is trained."""
        return engine_task(self.task, pictured=self.training is not None and self.training.pictured is not None)

    @property
    def is_service(self) -> bool:
        """Whether the machine is kept for a horizon (online inference) instead of until the work is done."""
        return self.serving is not None and self.serving.online

    @property
    def horizon(self) -> timedelta:
        """How long a service is kept."""
        return timedelta(days=self.use.horizon_days)
