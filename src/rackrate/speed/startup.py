"""Start-up: the hours on the meter before work begins."""

from __future__ import annotations

from rackrate.evidence import Range, add_independent
from rackrate.facts.engine import Engine
from rackrate.facts.engine_speed import Host
from rackrate.memory.stages import Stage
from rackrate.memory.weights import parameter_groups, weight_bytes
from rackrate.offers.regions import ALIASES
from rackrate.units import SECONDS_PER_HOUR
from rackrate.values import Value
from rackrate.workload.decide_use import download_bytes
from rackrate.workload.workload import Workload

BOOT_S = Range(45.0, 180.0, 720.0)
"""Power-on until a shell answers: 45 s (tensorfuse/tensorfuse-examples#1), 5 to 7 min (coiled/feedback#30,
iterative/cml#1084), 25 min for 8 H100 (dstackai/dstack#2342); providers' containers start in a minute or two."""

IMAGE_S = Range(30.0, 165.0, 360.0)
"""Pull and unpack of the container image: 30 s when cached or small, 165 s for a cold 16 GB (measured on RunPod,
Crazytieguy/alignment-hive#98), 20 s for 15 GB from a lazy store (tensorfuse-examples#1)."""

DOWNLOAD_BYTES_PER_S = Range(50e6, 300e6, 1000e6)
"""Rate of model downloads: 40-50 MB/s plain (hiyouga/LlamaFactory#6750, microsoft/PyRIT#354), 350 to 1,000 MB/s
with parallel transfers in data centres (meta-pytorch/torchforge#164: an 8B model in 45 and 15 s;
huggingface/transformers#37902: 61 GB in 1 to 2 minutes)."""

DOWNLOAD_IN_CHINA_BYTES_PER_S = Range(4e6, 50e6, 100e6)
"""The same in mainland China, from mirrors: 30 to 100 MB/s (LetheSec/HuggingFace-Download-Accelerator#1), over 100 that
later broke down (padeoe/hf-mirror-site#15), 3 to 5 MB/s from ModelScope (qhjqhj00/MemoRAG#9)."""

LOAD_BYTES_PER_S = Range(0.5e9, 1.2e9, 4e9)
"""Disk to card: 0.5 GB/s (vllm-project/vllm#38820), 0.8 (tensorfuse-examples#1), 1.3 (vllm#44881), 5 from NVMe
when cached (transformers#37902)."""

WARM_UP_S = {Host.GRAPHS: Range(30.0, 90.0, 280.0), Host.EAGER: Range(5.0, 20.0, 60.0)}
"""Compilation, profiling and graph capture: 34 s (vllm#20264), 215 s for 70B on 8 cards (vllm#19824), 277 s
(vllm#44881). Eager engines: imports and the first step, assumed."""


class StartupParts(Value, frozen=True, kw_only=True):
    """What happens between power-on and the first useful step, in hours, in this order.

    ``data`` is the workload's own data coming in, at the rate of models outside
    mainland China; its size is that of the whole job, so it comes in once, at the first start.
    """

    boot: Range
    image: Range
    model_download: Range
    data: Range
    load: Range
    warm_up: Range

    @property
    def parts(self) -> dict[str, Range]:
        """The parts by name, in hours."""
        return {
            "boot": self.boot,
            "image": self.image,
            "model_download": self.model_download,
            "data": self.data,
            "load": self.load,
            "warm_up": self.warm_up,
        }

    @property
    def total_hours(self) -> Range:
        """The sum of the parts, taken as independent."""
        return add_independent(self.parts.values())

    @property
    def restart_hours(self) -> Range:
        """The sum at later starts: the parts without the data."""
        return add_independent(span for name, span in self.parts.items() if name != "data")


def startup_hours(workload: Workload, engine: Engine) -> StartupParts:
    """Hours from power-on until work begins, for a fresh machine (nothing cached).

    Every rate is an assumption from published reports, named at its constant;
    images on a provider's own disk or a model already there take less.
    """
    download = download_bytes(workload.model, workload.weights, workload.task)
    return StartupParts(
        boot=_hours(BOOT_S),
        image=_hours(IMAGE_S),
        model_download=_hours(_download_rate(workload).inverse(download)),
        data=_hours(DOWNLOAD_BYTES_PER_S.inverse(workload.use.data_in_bytes)),
        load=_hours(LOAD_BYTES_PER_S.inverse(stored_bytes(workload))),
        warm_up=_hours(WARM_UP_S[engine.speed.host]),
    )


def _download_rate(workload: Workload) -> Range:
    """The rate of model downloads: that of mainland China where nothing but that is asked for."""
    regions = [region.strip().casefold() for region in workload.limits.regions]
    china = bool(regions) and all(ALIASES.get(region, region) == "cn" for region in regions)
    return DOWNLOAD_IN_CHINA_BYTES_PER_S if china else DOWNLOAD_BYTES_PER_S


def stored_bytes(workload: Workload) -> float:
    """Bytes of the model in its weight format."""
    layers = max(1, workload.model.layers or 0)
    whole = Stage(layers=layers, of=layers, first=True, last=True)
    return weight_bytes(workload.model, parameter_groups(workload.model), whole, workload.weights, ties=True)


def _hours(seconds: Range) -> Range:
    return seconds.scaled(1 / SECONDS_PER_HOUR)
