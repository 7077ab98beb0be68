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


def test_a_plan_of_images_has_hours_and_the_cost_of_a_thousand():
    document = answer("plan", *ASKED, "--images", "10k", "--json").document
    assert document["workload"]["images"] == 10_000
    assert document["workload"]["steps"] == 50
    for plan in document["plans"]:
        speed, cost = plan["speed"], plan["cost"]
        assert speed["tokens_per_s"] is None
        assert cost["per_million_tokens"] is None
        assert float(cost["per_thousand_images"]) == pytest.approx(float(cost["likely"]) / 10, rel=1e-3, abs=1e-4)
        assert plan["hours"]["likely"] * 3600 > 10_000 / speed["images_per_s"]["likely"]
    assert all(plan["tokens_per_s"] is None and plan["images_per_s"] > 0 for plan in document["frontier"])


@pytest.mark.parametrize("form", [(), ("--csv",), ("--md",)])
def test_plan_and_speed_of_images_answer_in_every_form(form):
    planned = " ".join(answer("plan", *ASKED, *form).out.split())
    fast = " ".join(answer("speed", *ASKED, "--gpu", "rtx4090", *form).out.split())
    assert ("images_per_s" if form else "images/s") in planned
    assert ("images_per_s" if form else "images/s") in fast
    assert form or "a thousand images" in planned
    assert "(weights)" not in planned + fast


def test_cards_make_images_side_by_side():
    machines = answer("speed", *ASKED, "--gpu", "h100-sxm5-80", "--gpus", "1,4", "--json").document["cards"][0][
        "machines"
    ]
    one, four = machines
    assert four["images_per_s"]["likely"] == pytest.approx(4 * one["images_per_s"]["likely"])
    assert four["s_per_image"] == one["s_per_image"]
    assert 0 < one["share_of_ceiling"] < 1


def test_a_deadline_is_met_by_more_machines():
    asked = (*ASKED, "--images", "100k", "--gpu", "h100-sxm5-80", "--gpus", "1")
    slow = answer("plan", *asked, "--json").document["plans"][0]
    plans = answer("plan", *asked, "--deadline", "24h", "--json").document["plans"]
    assert slow["hours"]["likely"] > 24
    for plan in plans:
        assert plan["machines"] > 1
        assert plan["hours"]["high"] <= 24
        each = plan["speed"]["images_per_s"]["likely"] / plan["gpus"]
        assert each == pytest.approx(1 / plan["speed"]["s_per_image"]["likely"])
    assert plans


def test_speed_that_is_not_modelled_is_not_known():
    found = run("speed", *ASKED, "--gpu", "rtx4090", "--pipeline-offload", "model")
    assert "speed with pipeline_offload model is not modelled" in " ".join(found.out.split())


def test_a_pipeline_asked_to_write_text_names_its_task():
    found = run("fit", "--model", "stabilityai/stable-diffusion-xl-base-1.0", "--gpu", "rtx4090")
    assert found.code == 2
    assert "say --task diffusion" in " ".join(found.err.split())


LORA = (
    "--task",
    "lora",
    "--model",
    "stabilityai/stable-diffusion-xl-base-1.0",
    "--precision",
    "fp16",
    "--rows",
    "2000",
)


@pytest.mark.parametrize("form", [(), ("--csv",), ("--md",)])
def test_training_on_images_answers_in_every_form(form):
    fitted = " ".join(answer("fit", *LORA, "--gpu", "rtx4090", *form).out.split())
    fast = " ".join(answer("speed", *LORA, "--gpu", "rtx4090", *form).out.split())
    planned = answer("plan", *LORA, *form).out
    assert "optimizer" in fitted
    assert form or "6,000 images of 1024 x 1024 pixels, batch 1" in fitted
    assert "tok/s" in fast or form
    assert planned


def test_training_takes_longer_with_more_images_and_blocks_computed_again():
    def hours(*more):
        machine = answer("speed", *LORA, *more, "--gpu", "h100-sxm5-80", "--gpus", "1", "--json").document["cards"][0]
        return machine["machines"][0]["work_hours"]["likely"]

    assert hours("--epochs", "6") == pytest.approx(2 * hours())
    assert hours() > hours("--checkpointing", "none")
    assert hours() > hours("--cached", "all")


WAN = ("--task", "diffusion", "--model", "Wan-AI/Wan2.1-T2V-14B-Diffusers")


def test_videos_are_fitted_timed_and_planned():
    fitted = answer("fit", *WAN, "--gpu", "h100-sxm5-80", "--frames", "49", "--json").document
    assert fitted["workload"]["frames"] == 49
    assert fitted["verdict"] == "fits"
    assert "1,000 videos of 49 frames, 50 steps each" in " ".join(
        answer("fit", *WAN, "--gpu", "h100-sxm5-80", "--frames", "49").out.split()
    )
    short, long = (
        answer("speed", *WAN, "--frames", n, "--gpu", "h100-sxm5-80", "--gpus", "1", "--json").document["cards"][0]
        for n in ("41", "81")
    )
    assert long["machines"][0]["s_per_image"]["likely"] > 2 * short["machines"][0]["s_per_image"]["likely"]
    assert answer("plan", *WAN, "--images", "10", "--json").document["plans"]
