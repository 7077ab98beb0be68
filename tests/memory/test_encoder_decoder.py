"""Encoder-decoders in inference: both caches, the encoder's pass, beams and windows of sound."""

import pytest
from tests.memory.build import GIB, SINGLE, likely, measure
from tests.memory.build import card as card_of

from rackrate.evidence import Unknown
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Phase
from rackrate.memory.fit import smallest_changes
from rackrate.plan.largest import Case, largest
from rackrate.problems import Code
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.layouts import layouts
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags
from rackrate.workload.settings import settings

LARGE, TURBO, FLAN, NLLB, BART = (
    "openai/whisper-large-v3",
    "openai/whisper-large-v3-turbo",
    "google/flan-t5-xl",
    "facebook/nllb-200-3.3B",
    "facebook/bart-large",
)


def _path(name):
    return name if name in {"engine", "quantization", "task"} else f"serving.{name}"


def asked(book, model, **said):
    flags = {"model": model} | {
        name if name in {"engine", "quantization", "task"} else f"serving.{name}": value for name, value in said.items()
    }
    return parse(request_from_flags(flags), book)


def work(book, model, **said):
    found = asked(book, model, **said)
    assert isinstance(found, Parsed), found
    return found.workload


@pytest.fixture(scope="session")
def card(book):
    return book.accelerators["rtx4090"]


def in_engine(book, card, workload):
    return measure(workload, card, book.engine(workload.engine_id))


@pytest.mark.parametrize(("model", "layers"), [(LARGE, 32), (TURBO, 4), ("distil-whisper/distil-large-v3", 2)])
def test_every_layer_of_the_decoder_keeps_the_encoders_positions_and_its_own_tokens(book, card, model, layers):
    found = in_engine(book, card, work(book, model, engine="transformers", concurrency=3, context_tokens=448))
    each = 2 * layers * 1280 * 2
    assert likely(found, "cross_cache") == pytest.approx(3 * each * 1500)
    assert likely(found, "kv_cache") == pytest.approx(3 * each * 448)
    assert found.cache.bytes_per_token == each


def test_weights_are_the_models_whole_count(book, card):
    for model in (LARGE, FLAN, NLLB, BART):
        found = in_engine(book, card, work(book, model, engine="transformers", quantization="fp16"))
        assert likely(found, "weights") == pytest.approx(2 * book.model(model).params_total)


def test_beams_multiply_what_is_written_and_in_transformers_what_was_read(book, card):
    one, five = (in_engine(book, card, work(book, LARGE, engine="transformers", beams=n)) for n in (1, 5))
    for name in ("kv_cache", "cross_cache", "encoder_output", "sampler"):
        assert likely(five, name) == pytest.approx(5 * likely(one, name))
    shared = in_engine(book, card, work(book, LARGE, engine="faster-whisper"))
    assert likely(shared, "kv_cache") == pytest.approx(likely(five, "kv_cache"))
    assert likely(shared, "cross_cache") == pytest.approx(likely(one, "cross_cache"))


def test_the_text_is_read_in_the_encoder_and_the_cache_holds_what_is_written(book, card):
    found = in_engine(book, card, work(book, FLAN, engine="transformers", prompt_tokens=2000, output_tokens=100))
    each = 2 * 24 * 32 * 64 * 2
    assert likely(found, "kv_cache") == pytest.approx(100 * each)
    assert likely(found, "cross_cache") == pytest.approx(2000 * each)


@pytest.mark.parametrize(("model", "biased"), [(FLAN, True), (NLLB, False)])
def test_relative_positions_make_the_scores(book, card, model, biased):
    """T5 adds a bias for each head and pair of positions, which grow with the square of the input."""
    found = [
        in_engine(book, card, work(book, model, engine="transformers", prompt_tokens=n)) for n in (1000, 2000, 4000)
    ]
    sizes = [
        sum(part.bytes.likely for part in each.components if part.name in {"activations", "biased_scores"})
        for each in found
    ]
    square = 12 * 32 * 4000**2
    assert (sizes[2] == pytest.approx(square, rel=0.01)) is biased
    assert (sizes[2] / sizes[1] == pytest.approx(2)) is not biased


def test_the_encoder_runs_before_the_decoder(book, card):
    found = in_engine(book, card, work(book, LARGE, engine="faster-whisper", concurrency=8))
    phases = {part.name: part.phases for part in found.components}
    assert phases["activations"] == (Phase.PREFILL,)
    assert phases["spectrogram"] == (Phase.ALWAYS,)
    assert phases["cross_cache"] == phases["encoder_output"] == (Phase.DECODE,)
    scores = 8 * 20 * 1500**2 * 4
    assert likely(found, "activations") > scores


def test_long_sound_needs_no_more_memory_than_a_window(book, card):
    window, hour = (work(book, LARGE, audio_seconds=n) for n in (30, 3600))
    assert in_engine(book, card, window).peak == in_engine(book, card, hour).peak
    assert (window.serving.windows, hour.serving.windows) == (1, 120)


def test_settings_give_the_workload_back(book):
    for model, said in (
        (LARGE, {"audio_seconds": 95.0, "beams": 2}),
        (FLAN, {"prompt_tokens": 300, "engine": "transformers"}),
    ):
        first = work(book, model, **said)
        found = parse(request_from_flags(dict(settings(first))), book)
        assert isinstance(found, Parsed), found
        assert not found.workload.assumptions
        assert found.workload.serving == first.serving


@pytest.mark.parametrize(
    ("model", "said", "subject", "code"),
    [
        (LARGE, {"prompt_tokens": 200}, "serving.prompt_tokens", Code.CONFLICT),
        (FLAN, {"audio_seconds": 30}, "serving.audio_seconds", Code.CONFLICT),
        ("meta-llama/Llama-2-7b-hf", {"beams": 4}, "serving.beams", Code.CONFLICT),
        (FLAN, {"engine": "vllm"}, "engine", Code.NOT_YET),
        (LARGE, {"engine": "sglang"}, "engine", Code.NOT_YET),
    ],
)
def test_what_has_no_meaning_is_refused_with_the_next_step(book, model, said, subject, code):
    (found,) = asked(book, model, **said)
    assert found.subject == "--" + subject.rpartition(".")[2].replace("_", "-")
    assert found.code == code
    assert found.action
    assert found.expected


def test_sides_of_unknown_depth_are_refused(book):
    model = replace(book.model(FLAN), encoder_layers=None, decoder_layers=None)
    unsided = replace(book, model=lambda name: model if name == FLAN else book.model(name))
    (found,) = asked(unsided, FLAN)
    assert found.code is Code.MISSING_VALUE
    assert "encoder_layers" in found.expected
    workload = replace(work(book, FLAN), model=model)
    gone = estimate(workload, book.accelerators["rtx4090"], SINGLE, book.engine("transformers"))
    assert isinstance(gone, Unknown)


def test_a_split_by_layers_is_refused_and_none_is_tried(book, card):
    workload = work(book, LARGE)
    found = estimate(workload, card, Layout(pipeline=2), book.engine("vllm"))
    assert isinstance(found, Unknown)
    assert "split by layers" in found.reason
    tried = layouts(workload.model, workload, book.engine("vllm"), 4)
    assert tried
    assert all(layout.pipeline == 1 for layout in tried)


def test_a_quantised_cache_of_both_sides_is_refused(book, card):
    workload = work(book, LARGE, cache_precision="fp8")
    found = estimate(workload, card, SINGLE, book.engine("vllm"))
    assert isinstance(found, Unknown)
    assert "quantised cache" in found.reason


def test_what_would_make_it_fit_keeps_to_windows(book):
    small = card_of(6_144)
    workload = work(book, LARGE, engine="transformers", concurrency=16, beams=5)
    case = Case(workload=workload, accelerator=small, layout=SINGLE, engine=book.engine("transformers"))
    knobs = {change.knob for change in smallest_changes(workload, small, SINGLE, book.engine("transformers"))}
    assert "serving.context_tokens" not in knobs
    assert [found.knob for found in largest(case)] == ["serving.concurrency"]


def test_more_of_anything_never_needs_less(book, card):
    for model, engine in ((LARGE, "vllm"), (LARGE, "faster-whisper"), (FLAN, "transformers"), (BART, "transformers")):
        sizes = [
            in_engine(book, card, work(book, model, engine=engine, concurrency=n, output_tokens=64)).peak.likely
            for n in (1, 2, 4, 8)
        ]
        assert sizes == sorted(sizes)


def test_whisper_in_vllm_pages_both_caches(book, card):
    found = in_engine(book, card, work(book, LARGE, concurrency=1000))
    each = 2 * 32 * 1280 * 2
    assert found.queues
    assert found.cache.room_bytes.likely / GIB > 10
    assert found.cache.full_sequences == int(found.cache.room_bytes.likely // (each * (1504 + 448)))


@pytest.mark.parametrize(
    ("engine", "concurrency", "tokens"), [("faster-whisper", 1, 448), ("faster-whisper", 8, 128), ("vllm", 8, 448)]
)
def test_windows_in_a_batch_stand_for_themselves(book, engine, concurrency, tokens):
    """One after the other they are given the text before; an engine that plans for the maximum takes it."""
    assert work(book, LARGE, engine=engine, concurrency=concurrency).serving.cached_tokens == tokens
