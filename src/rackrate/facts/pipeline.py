"""Diffusion pipelines: the networks that make an image or a video, from which memory is computed."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.facts.denoiser import Denoiser
from rackrate.values import Value


class Pipeline(Value, frozen=True, kw_only=True):
    """The networks of a pipeline: text encoders, a denoiser and the decoder of a VAE.

    ``denoiser_params`` are those of each network that denoises (two take turns
    in some), whose shape is ``denoiser``. ``text_params`` are those of each
    text encoder, ``text_width`` and ``text_feed`` the widest one's hidden and
    feed-forward sizes, ``text_table`` the largest embedding.

    ``vae`` is the kind of its decoder, ``vae_widths`` its channels from the
    finest level. ``vae_widens``: the precision from which it decodes in FP32
    instead (``fp16``: an FP16 pipeline would overflow; ``16bit``: always; empty:
    never). ``vae_tile``: pixels a side of a tile, up to which tiling changes nothing.
    """

    id: str
    denoiser: Denoiser
    denoiser_params: tuple[int, ...]
    text_params: tuple[int, ...]
    text_width: int
    text_feed: int
    text_table: int
    vae: str
    vae_params: int
    vae_widths: tuple[int, ...]
    vae_widens: str
    vae_tile: int
    source: str = ""

    @property
    def params_total(self) -> int:
        """Parameters of all networks together, as they are downloaded."""
        return sum(self.text_params) + sum(self.denoiser_params) + self.vae_params


def pipeline(row: Mapping[str, str], denoises: Denoiser) -> Pipeline:
    """One row of pipelines.csv, whose denoiser is ``denoises``."""
    return Pipeline(
        id=row["id"],
        denoiser=denoises,
        denoiser_params=_wholes(row["denoiser_params"]),
        text_params=_wholes(row["text_params"]),
        text_width=int(row["text_width"]),
        text_feed=int(row["text_feed"]),
        text_table=int(row["text_table"]),
        vae=row["vae"],
        vae_params=int(row["vae_params"]),
        vae_widths=_wholes(row["vae_widths"]),
        vae_widens=row["vae_widens"],
        vae_tile=int(row["vae_tile"]),
        source=row["source"],
    )


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("|")))
