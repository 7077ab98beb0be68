"""Keys of image generation: how large, how many at a time, and what spares memory."""

from __future__ import annotations

from rackrate.workload.key import Key

_MOST_PIXELS = 8192

IMAGES = (
    Key(
        path="images.width",
        kind="whole",
        flag="--width",
        unit="pixels",
        low=64,
        high=_MOST_PIXELS,
        scope="images",
        rule="the size that the pipeline was trained for",
        help="Width of an image.",
        example="1024",
    ),
    Key(
        path="images.height",
        kind="whole",
        flag="--height",
        unit="pixels",
        low=64,
        high=_MOST_PIXELS,
        scope="images",
        rule="the size that the pipeline was trained for",
        help="Height of an image.",
        example="1024",
    ),
    Key(
        path="images.at_once",
        kind="whole",
        unit="images",
        high=65536,
        scope="images",
        default=1,
        why="one_image",
        help="Images made at a time.",
        example="4",
        known_as=("num_images_per_prompt",),
    ),
    Key(
        path="images.pipeline_offload",
        kind="choice",
        flag="--pipeline-offload",
        choices=("none", "model", "sequential"),
        scope="images",
        default="none",
        why="all_on_card",
        help="What waits in the host's memory: nothing, networks not at work, or all layers but one.",
        example="model",
        known_as=("enable_model_cpu_offload", "enable_sequential_cpu_offload"),
    ),
    Key(
        path="images.slicing",
        kind="switch",
        flag="--vae-slicing",
        scope="images",
        rule="false",
        help="The VAE decodes one image after the other.",
        example="true",
        known_as=("enable_vae_slicing",),
    ),
    Key(
        path="images.tiling",
        kind="switch",
        flag="--vae-tiling",
        scope="images",
        rule="false",
        help="The VAE decodes one tile after the other.",
        example="true",
        known_as=("enable_vae_tiling",),
    ),
)
