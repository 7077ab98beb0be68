"""Networks: what joins machines, as people write it (``100 Gb/s``, ``8 x InfiniBand 400 Gb/s``)."""

from __future__ import annotations

import math
import re

from rackrate.values import Value

ADAPTERS_AT_MOST = 64
_SLOWEST, _FASTEST = 1e8, 1e13  # bits a second of one adapter
_WRITTEN = (
    r"(?i:(?:(?P<adapters>[0-9]{1,3})\s*[x\u00d7*]\s*)?(?:(?:infiniband|ethernet|roce(?:v2)?|efa|ib)\s+)?)"
    r"(?P<rate>[0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(?P<unit>[A-Za-z/]+)"
    r"(?i:\s*(?:infiniband|ethernet|roce(?:v2)?|efa|ib))?"
)
_BITS = {
    **dict.fromkeys(("gb/s", "gbit/s", "gbps", "gbits/s", "g", "gbe", "gbit"), 1e9),
    **dict.fromkeys(("mb/s", "mbit/s", "mbps", "mbits/s"), 1e6),
    **dict.fromkeys(("tb/s", "tbit/s", "tbps"), 1e12),
}
_BYTES = {"GB/s": 8e9, "MB/s": 8e6, "TB/s": 8e12, "GBps": 8e9, "MBps": 8e6}


class Network(Value, frozen=True, kw_only=True):
    """The network of one machine: ``adapters`` of ``bits_per_s`` each, in each direction."""

    bits_per_s: float
    adapters: int = 1

    @property
    def bytes_per_s(self) -> float:
        """Bytes a second that all adapters of a machine can send, by their label."""
        return self.adapters * self.bits_per_s / 8

    @property
    def text(self) -> str:
        """As it is written: ``8 x 400 Gb/s``."""
        each = f"{self.bits_per_s / 1e9:.12g} Gb/s"
        return each if self.adapters == 1 else f"{self.adapters} x {each}"


def network_of(text: str) -> Network:
    """The network that ``text`` means; the rate is that of one adapter.

    Raises:
        ValueError: the text names no rate that an adapter can have.
    """
    found = re.fullmatch(_WRITTEN, text.strip())
    if found is None:
        raise ValueError("write the rate of an adapter, such as 100 Gb/s, or 8 x 400 Gb/s for eight of them")
    scale = _BYTES.get(found["unit"]) or _BITS.get(found["unit"].casefold())
    if scale is None:
        raise ValueError("write the rate in Gb/s, as networks are sold")
    bits, adapters = float(found["rate"]) * scale, int(found["adapters"] or 1)
    if not 1 <= adapters <= ADAPTERS_AT_MOST:
        raise ValueError(f"write from 1 to {ADAPTERS_AT_MOST} adapters")
    if not (math.isfinite(bits) and _SLOWEST <= bits <= _FASTEST):
        raise ValueError("write a rate from 0.1 Gb/s to 10,000 Gb/s")
    return Network(bits_per_s=bits, adapters=adapters)
