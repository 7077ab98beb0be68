"""Deciding: the sizes of image generation that were not given."""

from __future__ import annotations

from rackrate.facts.denoiser import Denoiser
from rackrate.facts.pipeline import Pipeline
from rackrate.workload.draft import Draft
from rackrate.workload.workload import Images


def decide_images(draft: Draft, pipeline: Pipeline) -> Images:
    """The sizes of image generation, with the defaults of the key table."""
    return Images(
        pipeline=pipeline,
        width=draft.choose("images.width", pipeline.denoiser.width, "trained_size"),
        height=draft.choose("images.height", pipeline.denoiser.height, "trained_size"),
        at_once=draft.constant("images.at_once", int),
        pipeline_offload=draft.constant("images.pipeline_offload", str),
        slicing=draft.said("images.slicing") is True,
        tiling=draft.said("images.tiling") is True,
        count=_count(draft),
        steps=draft.choose("images.steps", pipeline.denoiser.steps, "usual_steps"),
        frames=_frames(draft, pipeline.denoiser),
    )


def _frames(draft: Draft, shape: Denoiser) -> int:
    """Frames of a video; one of an image, of which nothing is then assumed."""
    return draft.choose("images.frames", shape.frames, "usual_frames") if shape.makes_video else 1


def _count(draft: Draft) -> float:
    given = draft.number("images.count")
    return float(draft.constant("images.count", int)) if given is None else given
