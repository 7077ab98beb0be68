"""Families of transformers: the closed form against a simulated training step of small models of each.

``simulated.csv`` holds what two steps of transformers 5.24 on meta tensors hold at their peak (torch 2.13, batch 4 x
1,024, 16 bits, multi-tensor AdamW, flash attention, no dropout); parameters are read off the step, 10 bytes each.
"""

import csv
from pathlib import Path

import pytest
from tests.memory.build import GIB, card, likely, measure, train

from rackrate.values import replace
from rackrate.workload.workload import Checkpointing, Task

ROWS = list(csv.DictReader(Path(__file__).with_name("simulated.csv").read_text("utf-8").splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["family"])
def test_a_family_is_within_three_per_cent_of_its_simulation(book, row):
    workload = train(book, "meta-llama/Llama-3.2-1B", Task.FULL_FINETUNE, tokens=1024, batch=4, pure_16bit=True)
    params = int(row["params"])
    model = replace(
        workload.model,
        family=row["family"],
        mlp_gated=row["gated"] == "True",
        hidden_size=int(row["hidden"]),
        layers=int(row["layers"]),
        layers_full=int(row["layers"]),
        attention_heads=int(row["heads"]),
        kv_heads=int(row["kv_heads"]),
        head_dim=int(row["head_dim"]),
        intermediate_size=int(row["intermediate"]),
        vocab_size=int(row["vocabulary"]),
        tie_embeddings=row["ties"] == "True",
        params_total=params,
        params_active=params,
    )
    found = measure(replace(workload, model=model), card(1_000_000), book.engine("transformers"))
    beside = likely(found, "workspace") + likely(found, "unnamed")
    assert (found.allocated.likely - beside) / GIB == pytest.approx(float(row["peak_gib"]), rel=0.03)


@pytest.mark.parametrize(
    ("model_id", "tokens", "how", "gib"),
    [
        ("Qwen/Qwen3-0.6B", 512, ("none", 0), 5.551),
        ("Qwen/Qwen3-0.6B", 512, ("none", 16), 2.801),
        ("Qwen/Qwen3-0.6B", 512, ("full", 16), 2.035),
        ("Qwen/Qwen3-0.6B", 2048, ("none", 0), 10.662),
        ("Qwen/Qwen3-0.6B", 2048, ("none", 16), 7.794),
        ("Qwen/Qwen3-0.6B", 2048, ("full", 0), 6.934),
        ("Qwen/Qwen3-0.6B", 2048, ("full", 16), 4.732),
        ("meta-llama/Llama-3.2-1B", 512, ("none", 16), 3.760),
        ("meta-llama/Llama-3.2-1B", 512, ("full", 16), 3.090),
        ("meta-llama/Llama-3.2-1B", 2048, ("none", 0), 13.190),
        ("meta-llama/Llama-3.2-1B", 2048, ("none", 16), 8.078),
        ("meta-llama/Llama-3.2-1B", 2048, ("full", 0), 11.510),
        ("meta-llama/Llama-3.2-1B", 2048, ("full", 16), 5.398),
    ],
)
def test_whole_models_are_within_one_per_cent(book, model_id, tokens, how, gib):
    checkpointing, rank = Checkpointing(how[0]), how[1]
    task = Task.LORA if rank else Task.FULL_FINETUNE
    settings = {"lora_rank": rank, "lora_targets": ("q", "v")} if rank else {"pure_16bit": True}
    workload = train(book, model_id, task, tokens=tokens, checkpointing=checkpointing, **settings)
    found = measure(workload, card(1_000_000), book.engine("peft-trl" if rank else "transformers"))
    beside = likely(found, "workspace") + likely(found, "unnamed")
    assert (found.allocated.likely - beside) / GIB == pytest.approx(gib, rel=0.01)
