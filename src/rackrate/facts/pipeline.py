"""Diffusion pipelines: the shapes of the networks that make an image, from which memory is computed."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.values import Value


class Pipeline(Value, frozen=True, kw_only=True):
    """The networks of a pipeline for images: text encoders, a denoiser and the decoder of a VAE.

    ``denoiser`` is the kind: ``unet``, ``flux`` or ``sd3``. ``text_params`` are
    those of each text encoder, ``text_tokens`` what the denoiser sees of the
    prompt, ``text_width`` and ``text_feed`` the widest encoder's hidden and
    feed-forward sizes, ``text_table`` the largest embedding. ``guided``: every
    image is denoised twice, with and without the prompt, in one batch.

    ``widths`` of a U-Net are its channels from the finest level, ``attends``
    the levels with attention and ``layers`` its residual blocks in one; a
    transformer has one width. ``context`` is the width of the prompt's states.
    A token or pixel of the denoiser covers ``patch`` latents a side, a latent
    ``scale`` pixels.

    ``vae_widths`` are from the finest level. ``vae_widens``: an FP16 pipeline
    decodes in FP32. ``vae_tile``: pixels a side up to which tiling changes nothing.
    ``side`` is the size in pixels that the pipeline was trained for.
    """

    id: str
    denoiser: str
    denoiser_params: int
    text_params: tuple[int, ...]
    text_tokens: int
    text_width: int
    text_feed: int
    text_table: int
    guided: bool
    widths: tuple[int, ...]
    attends: tuple[bool, ...]
    layers: int
    context: int
    patch: int
    scale: int
    vae_params: int
    vae_widths: tuple[int, ...]
    vae_widens: bool
    vae_tile: int
    side: int
    source: str = ""

    @property
    def params_total(self) -> int:
        """Parameters of all networks together, as they are downloaded."""
        return sum(self.text_params) + self.denoiser_params + self.vae_params


def pipeline(row: Mapping[str, str]) -> Pipeline:
    """One row of pipelines.csv."""
    return Pipeline(
        id=row["id"],
        denoiser=row["denoiser"],
        denoiser_params=int(row["denoiser_params"]),
        text_params=_wholes(row["text_params"]),
        text_tokens=int(row["text_tokens"]),
        text_width=int(row["text_width"]),
        text_feed=int(row["text_feed"]),
        text_table=int(row["text_table"]),
        guided=row["guided"] == "true",
        widths=_wholes(row["widths"]),
        attends=tuple(word == "true" for word in row["attends"].split("|") if word),
        layers=int(row["layers"]),
        context=int(row["context"]),
        patch=int(row["patch"]),
        scale=int(row["scale"]),
        vae_params=int(row["vae_params"]),
        vae_widths=_wholes(row["vae_widths"]),
        vae_widens=row["vae_widens"] == "true",
        vae_tile=int(row["vae_tile"]),
        side=int(row["side"]),
        source=row["source"],
    )


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("|")))
