"""Jobs of images: steps, batches and cards change the speed as they do the work; what is not known stays so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackrate.evidence import Unknown, known
from rackrate.speed.diffusion import diffusion, run_of
from rackrate.speed.pictures import pictured
from rackrate.workload.layout import Layout
from rackrate.workload.parse import Parsed, parse
from rackrate.workload.request import request_from_flags

FLUX = {"model": "black-forest-labs/FLUX.1-dev", "task": "diffusion"}
CARD = "h100-sxm5-80"


def asked(book, **said):
    found = parse(request_from_flags(FLUX | said), book)
    assert isinstance(found, Parsed), found
    return found.workload


def speed(book, work, layout=None):
    return pictured(work, work.images, book.accelerators[CARD], layout or Layout())


def test_one_image_takes_the_time_of_its_steps(book):
    found = known(speed(book, asked(book, **{"images.count": 7200})))
    alone = known(diffusion(run_of(book.pipelines[FLUX["model"]].denoiser), book.accelerators[CARD]))
    prompt = found.images.encode_s.likely
    assert 0 < prompt < 0.01 * alone.s_per_result.likely
    assert found.images.s_per_image.likely == pytest.approx(alone.s_per_result.likely + prompt)
    assert found.work_hours.likely == pytest.approx(2 * (alone.s_per_result.likely + prompt))
    parts = (found.images.encode_s, found.images.denoise_s, found.images.decode_s)
    assert sum(part.likely for part in parts) == pytest.approx(found.images.s_per_image.likely)
    assert found.images.steps_per_s.likely == pytest.approx(1 / alone.step_s.likely)


@given(st.integers(4, 100), st.integers(1, 8))
def test_more_steps_take_longer_and_no_image_beats_the_ceiling(book, steps, at_once):
    said = {"images.at_once": at_once}
    few, many = (known(speed(book, asked(book, **said, **{"images.steps": n}))) for n in (steps, steps + 1))
    assert many.images.s_per_image.likely > few.images.s_per_image.likely
    assert few.images.images_per_s.high <= few.images.ceiling_images_per_s * (1 + 1e-9)


def test_steps_are_the_pipelines_own(book):
    assert asked(book).images.steps == 28
    assert asked(book, model="black-forest-labs/FLUX.1-schnell").images.steps == 4


def test_one_image_over_several_cards_is_not_planned(book):
    assert isinstance(speed(book, asked(book), Layout(tensor=2)), Unknown)
