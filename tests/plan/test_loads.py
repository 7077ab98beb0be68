"""Services under load, and jobs in sessions: every plan carries it, and short answers from pipelines have a speed; each session starts up."""

from datetime import date

import pytest
from tests.cli.ask import DAY

from rackrate import api

MIXTRAL = "mistralai/Mixtral-8x7B-v0.1"


def test_every_plan_carries_the_load_with_room_to_spare():
    job = {
        "model": MIXTRAL,
        "task": "inference",
        "serving": {"prompt_tokens": 6000, "output_tokens": 128, "requests_per_s": 128, "first_token_ms": 2000},
    }
    plans = api.plan(job, limit=50, at=date.fromisoformat(DAY)).plans
    assert plans
    for plan in plans:
        assert plan.speed.requests_per_s.likely >= 127.99


@pytest.mark.parametrize("model", [MIXTRAL, "deepseek-ai/DeepSeek-V3"])
def test_one_token_out_of_a_pipeline_takes_time(model):
    serving = {"prompt_tokens": 100, "output_tokens": 1, "concurrency": 8}
    plans = api.plan(
        {"model": model, "task": "inference", "serving": serving}, limit=50, at=date.fromisoformat(DAY)
    ).plans
    assert plans
    assert all(plan.speed.per_user_tokens_per_s.low > 0 for plan in plans)


def hours(starts: int) -> float:
    job = {
        "model": "meta-llama/Llama-2-7b-hf",
        "task": "lora",
        "training": {"tokens": 30_000_000},
        "use": {"starts": starts},
        "limits": {"gpus": ["h100-sxm5-80"], "gpu_counts": ["1"], "providers": ["runpod"]},
    }
    return api.plan(job, limit=1, at=date.fromisoformat(DAY)).plans[0].hours.likely


def test_every_start_takes_its_time():
    one, two, twenty = hours(1), hours(2), hours(20)
    assert two > one
    assert twenty - one == pytest.approx(19 * (two - one))
