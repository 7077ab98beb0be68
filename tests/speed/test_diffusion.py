"""Diffusion: FLOPs against published counts, and what changes the time of a step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.speed.build import without_fact

from rackrate.evidence import Unknown, known
from rackrate.facts.accelerator import Precision
from rackrate.facts.bundled import denoisers
from rackrate.facts.denoiser import denoiser
from rackrate.speed.diffusion import diffusion, diffusion_rates, run_of
from rackrate.speed.diffusion_flops import Canvas, pass_work, tokens, vae_flop
from rackrate.speed.estimate_types import Bound
from rackrate.values import replace

MODELS = {model.id.rpartition("/")[2]: model for model in denoisers()}
FLUX, SDXL, SD15 = (MODELS[name] for name in ("FLUX.1-dev", "stable-diffusion-xl-base-1.0", "stable-diffusion-v1-5"))
HUNYUAN = MODELS["HunyuanVideo"]
H100 = "h100-sxm5-80"


def speed(book, run, card=H100, gpus=1):
    return known(diffusion(run, book.accelerators[card], gpus))


@pytest.mark.parametrize(
    ("name", "tera"),
    [("stable-diffusion-v1-5", 0.80), ("stable-diffusion-xl-base-1.0", 6.0), ("FLUX.1-dev", 74.0)],
)
def test_flops_of_a_pass_are_as_published(name, tera):
    """SD 1.5 0.4 and SDXL 3.0 tera multiply-adds (arXiv 2307.01952 users' profiles), FLUX 74 TFLOP a step."""
    model = MODELS[name]
    work = pass_work(model, Canvas(width=model.width, height=model.height))
    assert (work.matrix_flop + work.attention_flop) / 1e12 == pytest.approx(tera, rel=0.15)


def test_transformers_do_24_d_squared_a_token_and_layer():
    work = pass_work(FLUX, Canvas(width=1024, height=1024))
    assert tokens(FLUX, Canvas(width=1024, height=1024)) == 4096
    assert work.matrix_flop == 24 * 57 * 3072**2 * (4096 + 512)
    assert work.attention_flop == 4 * 57 * 3072 * (4096 + 512) ** 2


def test_video_tokens_count_every_fourth_frame():
    model = MODELS["CogVideoX-5b"]
    assert tokens(model, Canvas(width=720, height=480, frames=49)) == 13 * 30 * 45
    assert vae_flop(model, Canvas(width=8, height=8, frames=2)) == 3 * vae_flop(
        FLUX, Canvas(width=8, height=8, frames=2)
    )


@given(st.sampled_from(list(MODELS.values())), st.sampled_from([256, 512, 1024]))
def test_more_pixels_are_more_work(model, side):
    small, large = (pass_work(model, Canvas(width=n, height=n, frames=model.frames)) for n in (side, 2 * side))
    assert large.matrix_flop > small.matrix_flop
    assert large.attention_flop > 2 * small.attention_flop
    assert large.blocks == small.blocks


@given(
    st.sampled_from(list(MODELS.values())),
    st.sampled_from([H100, "rtx4090", "a100-sxm4-80", "t4", "p40", "mi300x-192"]),
    st.booleans(),
)
def test_nothing_is_faster_than_the_peak(book, model, card, compiled):
    run = run_of(model, compiled=compiled)
    found = diffusion(run, book.accelerators[card])
    if isinstance(found, Unknown):
        return
    assert found.least_s_per_result <= found.s_per_result.low * (1 + 1e-9)
    assert found.s_per_result.low <= found.s_per_result.likely <= found.s_per_result.high
    assert found.step_s.likely * run.steps <= found.s_per_result.likely


def test_guidance_doubles_the_work_and_not_the_launches(book):
    one, two = (speed(book, run_of(FLUX, passes=n)).step_s.likely for n in (1, 2))
    assert two == pytest.approx(2 * one, rel=0.01)
    assert speed(book, run_of(SD15, passes=1), "rtx5090").limited_by is Bound.HOST
    one, two = (speed(book, run_of(SD15, passes=n), "b200-180").step_s.likely for n in (1, 2))
    assert one == two


def test_compiling_helps_as_published(book):
    """FLUX.1-dev on H100: 6.6 to 4.2 s an image (sayakpaul/diffusers-torchao README)."""
    eager, compiled = (speed(book, run_of(FLUX, compiled=flag)).s_per_result.likely for flag in (False, True))
    assert eager / compiled == pytest.approx(6.6 / 4.2, rel=0.15)


def test_fp8_is_faster_where_the_card_has_it(book):
    wide, narrow = (
        speed(book, run_of(FLUX, compiled=True, precision=p)).s_per_result.likely
        for p in (Precision.BF16, Precision.FP8)
    )
    assert 1.2 < wide / narrow < 1.7
    missing = diffusion(run_of(FLUX, precision=Precision.FP8), book.accelerators["a100-sxm4-80"])
    assert isinstance(missing, Unknown)


def test_geforce_cards_sum_faster_in_16_bits(book):
    exact, rough = (
        speed(book, run_of(SDXL, compiled=True, half_accumulate=flag), "rtx4080").step_s.likely
        for flag in (False, True)
    )
    assert rough < exact


def test_cards_before_matrix_units_multiply_in_fp32(book):
    rates = diffusion_rates(run_of(SD15), book.accelerators["p100-sxm2"])
    assert rates.precision is Precision.FP32


def test_cards_that_share_a_sequence_help_long_ones_most(book):
    def gain(model):
        run = run_of(model)
        return speed(book, run).s_per_result.likely / speed(book, run, gpus=8).s_per_result.likely

    assert gain(FLUX) < gain(HUNYUAN) < 8
    assert gain(HUNYUAN) > 4


def test_a_batch_shares_the_launches(book):
    one = speed(book, run_of(SD15), "rtx5090").s_per_result.likely
    many = replace(run_of(SD15), canvas=Canvas(width=512, height=512, batch=4))
    assert speed(book, many, "rtx5090").s_per_result.likely < one


def test_what_is_not_known_is_said(book):
    card = without_fact(book.accelerators[H100], "bandwidth_bytes_per_s")
    assert isinstance(diffusion(run_of(FLUX), card), Unknown)


def test_a_bad_row_is_refused():
    with pytest.raises(ValueError, match="invalid literal"):
        denoiser({"id": "x", "kind": "dit", "layers": "many"})
