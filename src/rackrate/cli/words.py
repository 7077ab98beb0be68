"""The words for codes: the one place where rooms' codes become English text for the terminal."""

from __future__ import annotations

REASONS = {
    "card_unknown": "card not known to rackrate",
    "card_not_asked": "not one of the cards asked for",
    "arithmetic": "card cannot compute in the precision asked for",
    "card_property": "card lacks a required property",
    "engine_unsupported": "engine does not run on this card",
    "gpu_count": "not the number of cards asked for",
    "provider": "provider not wanted",
    "region": "region not wanted",
    "region_unknown": "region not stated by the source",
    "market": "market not wanted",
    "access": "renting asks for what you cannot give",
    "access_unknown": "what renting asks for is not known",
    "interruptible": "can be interrupted, and the work may not be",
    "superseded": "replaced by a newer price of the same offer",
    "price_invalid": "price fails a sanity test",
    "price_incomplete": "price leaves out the host machine",
    "price_from": "price is only the lowest of several ('from')",
    "commitment_unknown": "needs a commitment of unstated length",
    "no_exchange_rate": "no exchange rate for its currency",
    "currency": "not priced in a currency asked for",
    "older": "price seen before the day asked for",
    "price_above": "price above the most asked for",
    "no_layout": "model cannot be divided over its cards",
    "memory_unknown": "memory of card or model not known",
    "does_not_fit": "does not fit",
    "speed_unknown": "speed not known",
    "latency": "misses the latency target",
    "load": "cannot carry the load",
    "deadline": "misses the deadline",
    "budget": "over the budget",
}

VERDICTS = {"fits": "fits", "tight": "tight", "does_not_fit": "does not fit"}

BOUNDS = {
    "compute": "arithmetic",
    "bandwidth": "memory bandwidth (weights)",
    "cache_bandwidth": "memory bandwidth (KV cache)",
    "host": "the host launching kernels",
    "communication": "traffic between cards",
    "cache_room": "room for the KV cache",
}

BOUNDS_OF_IMAGES = BOUNDS | {"bandwidth": "memory bandwidth (element-wise work)"}

ENDS_LOAD = {
    "first_token": "the first token comes too late",
    "output_token": "tokens come too slowly",
    "capacity": "it does not keep up",
}
"""What ends the load that a machine carries within the targets."""

BOUNDS_IN_A_COLUMN = {
    "bandwidth": "bandwidth",
    "cache_bandwidth": "KV bandwidth",
    "host": "launches",
    "communication": "links",
    "cache_room": "KV room",
}

MARKETS = {
    "on_demand": "on demand",
    "on_demand_secure": "secure",
    "on_demand_community": "community",
    "on_demand_from": "from price",
    "on_demand_virtual_gpu": "virtual GPU",
    "marketplace_on_demand": "marketplace",
    "marketplace_from": "marketplace from",
    "reserved_from": "reserved from",
    "daily_package": "day pack",
    "weekly_package": "week pack",
    "monthly_package": "month pack",
    "monthly_contract": "month lease",
    "credit_package": "credit pack",
    "capacity_block": "block",
    "reserved_1y": "reserved 1y",
    "reserved_3y": "reserved 3y",
    "savings_1y": "savings 1y",
    "savings_3y": "savings 3y",
}

SEEN = {
    "page_read": "seen {day}, {days} ago",
    "generated": "of a file dated {day}, {days} ago",
    "not_after": "seen on or before {day}, age unknown",
    "not_before": "seen on or after {day}, at most {days} ago",
    "schema_era": "of a file kept until about {day}, {days} ago",
}

STOPS = {
    "ends_billing": "billing ends",
    "goes_on": "billing goes on",
    "term_is_paid": "the term is paid",
    "loses_term": "the term is lost",
    "unknown": "not known",
}
"""What stopping a machine does to its bill."""

INTERCONNECTS = {
    "nvlink_bridge": "an NVLink bridge",
    "nvswitch": "NVSwitch",
    "pcie": "PCIe",
    "other": "the vendor's link",
}

STEPS = {
    "only": ("", ""),
    "condition": ("holds without a condition", "holds under a condition alone"),
    "own": ("your own goes before", "your own goes before it"),
    "kind": ("known in a better way", "known in a less good way"),
    "newest": ("the newest", "older"),
    "order": ("first in the file", "later in the file"),
    "record": ("your own record", "your own record replaces it"),
    "ruled": ("derived: no driver's reading is known", ""),
    "not_in_force": ("", "not in force on that day"),
    "effective": ("the latest in force", "an older rule"),
    "confidence": ("the surer source", "a less sure source"),
    "dearest": ("bills the most", "bills less"),
}
"""Why a row counts, and why one does not."""

STANDINGS = {"stands": "stands beside the others", "replaces": "replaces", "replaced": "is replaced by"}

TASKS = {
    "inference": "inference",
    "lora": "LoRA fine-tune",
    "qlora": "QLoRA fine-tune",
    "full_finetune": "full fine-tune",
    "pretrain": "pretraining",
}

PHASES = {
    "always": "always",
    "load": "load",
    "prefill": "prefill",
    "decode": "decode",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "step": "optimizer step",
    "save": "checkpoint save",
    "encode": "encoding",
    "denoise": "denoising",
    "picture": "VAE decoding",
}

BILL = {
    "compute": "compute",
    "compute_stopped": "compute while stopped",
    "stopped_bills_compute": "compute while stopped",
    "term": "prepaid terms",
    "disk_running": "disk while running",
    "disk_stopped": "disk while stopped",
    "data_in": "data in",
    "data_out": "data out",
    "ip": "public address",
    "one_time": "one-time fees",
}
"""Lines of a bill, and parts of it that no rule was seen for."""


def word(table: dict[str, str], code: str) -> str:
    """The words for a code, or the code itself with spaces where no words were written."""
    return table.get(code, code.replace("_", " "))
