"""Questions on speed that people asked in public, with what was measured."""

import pytest
from tests.speed.build import LLAMA_7B, LLAMA_70B, serve, speed

from rackrate.workload.layout import Layout


def test_nine_tokens_a_second_of_a_4_bit_70b_are_a_fifth_of_the_ceiling(book):
    """ExLlama 1 on an A100 40 GB reached 9, tuned for consumer cards (turboderp/exllama#266)."""
    found = speed(
        book, serve(book, LLAMA_70B, "gptq-int4", prompt_tokens=20, output_tokens=100), "a100-sxm4-40", "exllamav2"
    )
    ceiling = found.ceiling_tokens_per_s
    assert ceiling == pytest.approx(43, rel=0.05)
    assert 0.2 < 9 / ceiling < 0.3
    assert found.serving.per_user_tokens_per_s.low > 9


def test_six_cards_generate_no_faster_than_one(book):
    """149 tokens/s on one RTX 4090, 38 on six in a layer split (XiongjieDai/GPU-Benchmarks-on-LLM-Inference#8)."""
    workload = serve(book, LLAMA_7B, "gguf-q4_0", prompt_tokens=10, output_tokens=128)
    one, six = (
        speed(book, workload, "rtx4090", "llama.cpp==2900", layout).serving.per_user_tokens_per_s
        for layout in (Layout(), Layout(pipeline=6, layer_split=True))
    )
    assert six.likely < one.likely
    assert one.low <= 149 <= one.high


def test_a_faster_card_buys_little_where_the_host_launches(book):
    """Llama 8B in PyTorch: 47 tokens/s on an RTX 4090 in a desktop, 41 on an H100 in a server (bitsandbytes benchmarking)."""
    workload = serve(book, "meta-llama/Meta-Llama-3-8B", prompt_tokens=64, output_tokens=64)
    desktop, server = (
        speed(book, workload, card, "transformers").serving.per_user_tokens_per_s.likely
        for card in ("rtx4090", "h100-sxm5-80")
    )
    assert server < desktop
