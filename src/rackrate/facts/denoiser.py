"""Denoisers: the shapes of the networks of diffusion models that their memory and speed are computed from."""

from __future__ import annotations

from collections.abc import Mapping

from rackrate.values import Value


class Denoiser(Value, frozen=True, kw_only=True):
    """The U-Net or transformer of a diffusion pipeline, of the ``kind`` that its class is.

    ``widths``: channels by level (U-Net) or the hidden size alone. ``layers``:
    residual blocks a level on the way down, or transformer layers. ``depths``:
    transformer blocks by level of a U-Net (0: none), ``middle_depth`` those of
    its middle. ``feed``: width of a transformer's feed-forward block.
    ``text_tokens`` of one prompt, ``context_width`` of a text token.
    ``latent_scale``: pixels a side of one latent, ``frame_scale`` frames of one;
    ``patch``: latents a side of one token. ``passes`` of the network for each
    step: two with classifier-free guidance. ``steps``, ``width``, ``height``
    and ``frames`` are usual ones.
    """

    id: str
    kind: str
    widths: tuple[int, ...]
    layers: int
    heads: int
    head_width: int
    feed: int
    depths: tuple[int, ...]
    middle_depth: int
    context_width: int
    text_tokens: int
    latent_scale: int
    frame_scale: int
    patch: int
    passes: int
    steps: int
    width: int
    height: int
    frames: int
    source: str

    @property
    def is_unet(self) -> bool:
        """Whether it is a U-Net of convolutions and attention; else a transformer."""
        return self.kind.startswith("unet")

    @property
    def guided(self) -> bool:
        """Whether every image is denoised with and without the prompt."""
        return self.passes > 1

    @property
    def makes_video(self) -> bool:
        """Whether it makes several frames."""
        return self.frames > 1


def denoiser(row: Mapping[str, str]) -> Denoiser:
    """A row of denoisers.csv.

    Raises:
        ValueError: a number cannot be read.
    """
    wholes = {name: int(row[name]) for name in _WHOLES}
    return Denoiser(
        id=row["id"], kind=row["kind"], source=row["source"],
        widths=_list(row["widths"]), depths=_list(row["depths"]), **wholes,
    )  # fmt: skip


_WHOLES = (
    "layers", "heads", "head_width", "feed", "middle_depth", "context_width", "text_tokens", "latent_scale",
    "frame_scale", "patch", "passes", "steps", "width", "height", "frames",
)  # fmt: skip


def _list(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("|") if part)
