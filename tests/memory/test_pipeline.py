"""Diffusion pipelines: activations against simulations of the real classes, a published peak, and what spares memory."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.build import GIB

from rackrate.evidence import Unknown
from rackrate.memory.estimate import estimate
from rackrate.memory.estimate_types import Phase, Verdict
from rackrate.memory.fit import smallest_changes
from rackrate.memory.pipeline_activations import decode_bytes, denoise_bytes, pixels
from rackrate.values import replace
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags

with (Path(__file__).parent / "pipelines_simulated.csv").open(encoding="utf-8") as lines:
    SIMULATED = list(csv.DictReader(lines))

SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
FLUX = "black-forest-labs/FLUX.1-dev"


def work(book, model=SDXL, **images):
    said = {"model": model, "task": "diffusion", "precision": "bf16" if model == FLUX else "fp16"}
    said |= {f"images.{name}": value for name, value in images.items() if name != "quantization"}
    said |= {"quantization": images["quantization"]} if "quantization" in images else {}
    parsed = parse(request_from_flags(said), book)
    assert isinstance(parsed, Parsed), parsed
    return parsed.workload


def held(book, workload, card="rtx4090", layout=None):
    found = estimate(workload, book.accelerators[card], layout or Layout(), book.engine("diffusers"))
    assert not isinstance(found, Unknown), found
    return found


def part_of(found, name, phase=None):
    return sum(p.bytes.likely for p in found.components if p.name == name and (phase is None or phase in p.phases))


@pytest.mark.parametrize("row", SIMULATED, ids=lambda r: "-".join(list(r.values())[:6]))
def test_activations_agree_with_a_simulation_of_the_class(book, row):
    pipe, images, element = book.pipelines[row["model"]], int(row["images"]), float(row["element_bytes"])
    area = pixels(pipe, int(row["width"]), int(row["height"]))
    if row["part"] == "denoise":
        found = denoise_bytes(pipe, area, images, element)
    else:
        found = decode_bytes(pipe, area, images, element).low
    assert found == pytest.approx(float(row["peak_bytes"]), rel=0.03)


def test_sdxl_as_published(book):
    """10.47 GiB allocated for one image of 1024 x 1024 in FP16 (huggingface/diffusers docs, using-diffusers/loading.md)."""
    found = held(book, work(book))
    assert found.peak_phase is Phase.PICTURE
    assert found.allocated.likely == pytest.approx(10.47 * GIB, rel=0.02)
    assert found.allocated.low < 10.47 * GIB < found.allocated.high


def test_weights_are_those_of_the_parts(book):
    found, pipe = held(book, work(book)), book.pipelines[SDXL]
    assert part_of(found, "denoiser") == 2 * pipe.denoiser_params[0] == 2 * book.model(SDXL).params_total
    assert part_of(found, "text_encoders") == 2 * sum(pipe.text_params)
    assert part_of(found, "vae") + part_of(found, "vae_widened") == 4 * pipe.vae_params


def test_a_pipeline_in_bf16_decodes_in_bf16(book):
    wide = held(book, work(book))
    narrow = held(book, replace(work(book), precision=work(book, FLUX).precision))
    assert part_of(narrow, "vae_widened") == 0
    assert 2 * part_of(narrow, "activations", Phase.PICTURE) == part_of(wide, "activations", Phase.PICTURE)


def test_a_format_is_that_of_the_denoiser(book):
    full, small = held(book, work(book, FLUX)), held(book, work(book, FLUX, quantization="nf4"))
    assert part_of(small, "denoiser") < part_of(full, "denoiser") / 3
    assert part_of(small, "text_encoders") == part_of(full, "text_encoders")


def test_offload_holds_one_network_then_one_layer(book):
    peaks = [held(book, work(book, FLUX, pipeline_offload=mode)) for mode in ("none", "model", "sequential")]
    assert peaks[0].peak.likely > peaks[1].peak.likely > peaks[2].peak.likely
    assert peaks[1].peak_phase is Phase.DENOISE
    pipe = book.pipelines[FLUX]
    model = peaks[1]
    assert part_of(model, "text_encoders") == 2 * max(pipe.text_params)
    in_decoding = dict(model.phases)[Phase.PICTURE].likely
    assert in_decoding < 2 * sum(pipe.denoiser_params)


def test_slicing_decodes_one_image_at_a_time(book):
    many, sliced = held(book, work(book, at_once=4)), held(book, work(book, at_once=4, slicing=True))
    one = held(book, work(book))
    each = part_of(one, "activations", Phase.PICTURE)
    assert part_of(many, "activations", Phase.PICTURE) == 4 * each
    assert part_of(sliced, "activations", Phase.PICTURE) == each + 4 * 3 * 1024 * 1024 * 4  # four pictures in FP32


def test_tiling_helps_above_the_size_of_a_tile_alone(book):
    at_tile = [held(book, work(book, tiling=tiling)).peak.likely for tiling in (False, True)]
    assert at_tile[0] == at_tile[1]
    above = [held(book, work(book, width=2048, height=2048, tiling=tiling)) for tiling in (False, True)]
    assert part_of(above[1], "activations", Phase.PICTURE) < part_of(above[0], "activations", Phase.PICTURE) / 3


def test_cards_share_the_images(book):
    two = held(book, work(book, at_once=4), layout=Layout(data=2))
    assert two.peak == held(book, work(book, at_once=2)).peak


@given(
    width=st.integers(64, 4096),
    height=st.integers(64, 4096),
    images=st.integers(1, 64),
    model=st.sampled_from([SDXL, FLUX]),
)
def test_more_pixels_or_images_never_need_less(book, width, height, images, model):
    smaller = held(book, work(book, model, width=width, height=height, at_once=images))
    for larger in ({"width": width + 64}, {"height": height + 64}, {"at_once": images + 1}):
        sizes = {"width": width, "height": height, "at_once": images} | larger
        assert held(book, work(book, model, **sizes)).peak.likely >= smaller.peak.likely


def test_changes_that_make_it_fit(book):
    card, engine = book.accelerators["rtx3060-12"], book.engine("diffusers")
    assert held(book, work(book), "rtx3060-12").verdict is Verdict.DOES_NOT_FIT
    changes = smallest_changes(work(book), card, Layout(), engine)
    assert "images.pipeline_offload" in [change.knob for change in changes]
    for change in changes:
        again = estimate(change.case.workload, card, Layout(), engine)
        assert not isinstance(again, Unknown)
        assert again.verdict is Verdict.FITS


def test_other_models_are_refused_with_those_that_are_known(book):
    found = parse(request_from_flags({"model": "Qwen/Qwen2.5-7B", "task": "diffusion"}), book)
    assert isinstance(found, tuple)
    assert SDXL in found[0].action


def test_every_pipeline_is_estimated(book):
    for name in book.pipelines:
        assert held(book, work(book, name), "h100-sxm5-80").peak.likely > 2 * book.pipelines[name].denoiser_params[0]
