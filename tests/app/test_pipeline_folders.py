"""A diffusion pipeline in a folder of the user's own: the shapes that its configurations give, in every verb."""

import json
from pathlib import Path

import pytest
from tests.app.pipeline_folders import IMAGES, SDXL, VIDEOS, lay_out
from tests.cli.ask import answer, run
from tests.facts.samples import make

from rackrate.app.checkpoint.local import read_path
from rackrate.app.context import facts
from rackrate.facts.architecture.read import pipeline_of
from rackrate.facts.model import Model
from rackrate.values import replace

BOOK = facts()


def shape_of(folder):
    found = read_path(folder, BOOK.formats, name="own")
    assert isinstance(found, Model), found
    return found.pipeline


@pytest.mark.parametrize("name", IMAGES)
def test_a_folder_gives_the_shapes_of_the_bundled_row(tmp_path, name):
    found, bundled = shape_of(lay_out(tmp_path / "own", IMAGES[name])), BOOK.pipelines[name]
    same = {"id": "", "source": ""}
    assert replace(found, denoiser=replace(found.denoiser, **same), **same) == replace(
        bundled, denoiser=replace(bundled.denoiser, **same), **same
    )


def test_a_folder_is_fitted_timed_and_planned_as_the_bundled_pipeline_is(tmp_path):
    own = str(lay_out(tmp_path / "own", SDXL))
    bundled = "stabilityai/stable-diffusion-xl-base-1.0"
    said = ("--task", "diffusion", "--precision", "fp16", "--gpu", "rtx4090", "--json")
    for verb, figure in (("fit", "peak_bytes"), ("speed", "cards"), ("plan", "plans")):
        mine, theirs = (answer(verb, "--model", name, *said).document for name in (own, bundled))
        assert mine["workload"]["model"] == own
        assert mine[figure] == theirs[figure]


def test_a_model_index_stands_for_its_folder(tmp_path):
    own = lay_out(tmp_path / "own", SDXL) / "model_index.json"
    found = answer("fit", "--model", str(own), "--task", "diffusion", "--gpu", "rtx4090", "--json").document
    assert found["peak_phase"] == "picture"


def test_what_a_folder_lacks_is_said(tmp_path):
    folder = lay_out(tmp_path / "own", SDXL)
    said = ("fit", "--model", str(folder), "--task", "diffusion", "--gpu", "rtx4090")
    (folder / "unet" / "config.json").write_text(json.dumps({"_class_name": "KandinskyUNet"}), encoding="utf-8")
    assert "model_index.json unet" in run(*said).err
    index = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))
    (folder / "unet" / "config.json").write_text(json.dumps(SDXL["unet"]), encoding="utf-8")
    (folder / "model_index.json").write_text(json.dumps(index | {"vae": ["x", "AutoencoderTiny"]}), encoding="utf-8")
    refused = run(*said)
    assert refused.code != 0
    assert "AutoencoderTiny" in refused.err


def test_a_part_without_a_configuration_leaves_the_shapes_unknown():
    folder = Path(make.__file__).parent / "pipeline"
    found = read_path(folder, BOOK.formats, name="own")
    assert found.pipeline is None
    assert [remark.subject for remark in found.remarks] == ["model_index.json text_encoder"]


@pytest.mark.parametrize("name", VIDEOS)
def test_a_video_pipeline_gives_the_shapes_of_the_bundled_row(name):
    parts, bundled = VIDEOS[name], BOOK.pipelines[name]
    index = dict(parts["model_index"])
    for part, config in parts.items():
        if part != "model_index":
            index[part] = ["library", config.get("_class_name", "T5EncoderModel")]
    counts = {"transformer": bundled.denoiser_params[0], "vae": bundled.vae_params}
    counts |= dict(zip(("text_encoder", "text_encoder_2"), bundled.text_params, strict=False))
    found = pipeline_of(index, counts, {part: parts[part] for part in parts if part != "model_index"}, id="own")
    same = {"id": "", "source": ""}
    denoiser = replace(found.pipeline.denoiser, **same)
    usual = {"width": bundled.denoiser.width, "height": bundled.denoiser.height}  # LTX-Video's page runs another size
    assert replace(found.pipeline, denoiser=replace(denoiser, **usual), **same) == replace(
        bundled, denoiser=replace(bundled.denoiser, **same), **same
    )


def test_a_transformer_for_video_is_counted_from_its_configuration(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(VIDEOS["genmo/mochi-1-preview"]["transformer"]), encoding="utf-8")
    found = read_path(tmp_path, BOOK.formats, name="own")
    assert found.params_total == 10_027_677_744
    assert found.modality == "text-to-video"
