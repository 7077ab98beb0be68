"""Engines: the software that runs a model, as data with the policies in which they differ."""

from __future__ import annotations

import re
from collections.abc import Callable

from rackrate.facts.engine_serving import ServingPolicy
from rackrate.facts.engine_speed import Calibration, SpeedPolicy
from rackrate.facts.engine_training import TrainingPolicy
from rackrate.facts.model import Model
from rackrate.facts.scheduling import ONE_BATCH, Scheduling
from rackrate.values import Value, replace


class Older(Value, frozen=True, kw_only=True):
    """The policies of an engine before some version."""

    before: str
    serving: ServingPolicy | None
    training: TrainingPolicy | None
    speed: SpeedPolicy | None = None
    scheduling: Scheduling | None = None


class Engine(Value, frozen=True, kw_only=True):
    """One engine at one range of versions.

    ``tasks`` are the task ids it can run; ``parallel`` the layouts it knows
    (``tensor``, ``pipeline``, ``data``, ``zero``, ``layer_split``, and when asked
    for ``context``, ``expert``, ``sequence`` and ``interleaved`` stages);
    ``zero_stages`` are those of ZeRO that it has, ``zero_stages_in_pipelines`` those that go with pipelines;
    ``weight_formats`` the formats it loads; ``vendors`` the accelerator vendors
    it runs on; ``min_compute_capability`` for NVIDIA cards. ``older`` are the
    policies that it had before, the oldest version first. ``encoder_decoders``:
    modalities of the models with an encoder and a decoder that it runs. ``calibration`` is no
    fact of the engine but what was measured with it on one's own machine.
    """

    id: str
    title: str
    versions: str
    seen_at: str
    source: str
    tasks: frozenset[str]
    parallel: frozenset[str]
    weight_formats: frozenset[str]
    vendors: frozenset[str]
    min_compute_capability: tuple[int, int] | None
    speed: SpeedPolicy
    serving: ServingPolicy | None = None
    training: TrainingPolicy | None = None
    scheduling: Scheduling = ONE_BATCH
    notes: str = ""
    older: tuple[Older, ...] = ()
    zero_stages: tuple[int, ...] = ()
    zero_stages_in_pipelines: tuple[int, ...] = ()
    encoder_decoders: frozenset[str] = frozenset()
    calibration: Calibration | None = None

    def zero_stages_at(self, pipeline: int) -> tuple[int, ...]:
        """The stages of ZeRO that go with ``pipeline`` stages of layers."""
        return self.zero_stages_in_pipelines if pipeline > 1 else self.zero_stages

    def runs(self, model: Model) -> bool:
        """Whether it has code for both sides of ``model``, if it has two, and nothing else where it has no other."""
        return not model.is_encoder_decoder or model.modality in self.encoder_decoders

    def at(self, version: str) -> Engine:
        """The engine as it was at ``version``, e.g. ``"4.38.2"``; its id then says so."""
        asked = version_parts(version)
        for then in self.older:
            if asked < version_parts(then.before):
                found = replace(
                    self,
                    serving=then.serving,
                    training=then.training,
                    speed=then.speed or self.speed,
                    scheduling=then.scheduling or self.scheduling,
                    older=(),
                )
                return replace(found, id=f"{self.id}=={version}")
        return replace(self, id=f"{self.id}=={version}", older=())


def version_parts(version: str) -> tuple[int, ...]:
    """A version as numbers, to compare; what follows them (``.dev0``, ``rc1``) does not count."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:4])


def versioned(look_up: Callable[[str], Engine]) -> Callable[[str], Engine]:
    """``look_up`` that also knows ids with a version, such as ``transformers==4.38.2``."""

    def found(name: str) -> Engine:
        engine_id, _, version = name.partition("==")
        return look_up(engine_id).at(version) if version else look_up(engine_id)

    return found
