"""Image generation on the command line: fit answers in every form, plan and speed say what is not known."""

import pytest

from .ask import answer, run

ASKED = ("--task", "diffusion", "--model", "stabilityai/stable-diffusion-xl-base-1.0", "--precision", "fp16")


def test_fit_tells_the_phases_and_what_spares_memory():
    document = answer("fit", *ASKED, "--gpu", "rtx3060-12", "--json").document
    assert document["verdict"] == "does_not_fit"
    assert document["peak_phase"] == "picture"
    assert {phase["phase"] for phase in document["phases"]} == {"encode", "denoise", "picture"}
    changes = {change["knob"]: change["after"] for change in document["changes"]}
    assert changes["images.pipeline_offload"] == "model"
    assert (
        answer("fit", *ASKED, "--gpu", "rtx3060-12", "--pipeline-offload", "model", "--json").document["verdict"]
        == "fits"
    )


@pytest.mark.parametrize("form", [(), ("--csv",), ("--md",)])
def test_fit_answers_in_every_form(form):
    out = answer("fit", *ASKED, "--gpu", "rtx4090", "--batch", "2", "--width", "1280", *form).out
    assert "denoiser" in out
    assert form or "1280 x 1024 pixels, 2 at a time" in " ".join(out.split())
    assert form or "VAE decoding" in out


def test_plan_and_speed_say_that_speed_is_not_known():
    found = run("plan", *ASKED)
    assert found.code == 3
    assert "speed of diffusion is not part of plans yet" in " ".join(found.out.split())
    assert "not part of plans yet" in " ".join(run("speed", *ASKED, "--gpu", "rtx4090").out.split())


def test_a_pipeline_asked_to_write_text_names_its_task():
    found = run("fit", "--model", "stabilityai/stable-diffusion-xl-base-1.0", "--gpu", "rtx4090")
    assert found.code == 2
    assert "say --task diffusion" in " ".join(found.err.split())
