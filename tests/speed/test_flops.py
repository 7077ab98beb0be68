"""FLOPs against values worked out by hand."""

import pytest
from tests.speed.build import LLAMA_7B, LLAMA_8B, MIXTRAL, serve, train

from rackrate.speed.flops import (
    attended_layer_tokens,
    attention_flop_per_token,
    matrix_training_flop_per_token,
    model_flop_per_token,
    multiplied_params,
    trainable_params,
)
from rackrate.speed.replica import routed_expert_params, weight_bytes_touched
from rackrate.workload.workload import Checkpointing, Task

from tests.speed.build import one_replica  # isort: skip


def test_input_embedding_is_looked_up_and_not_multiplied(book):
    assert multiplied_params(book.model(LLAMA_7B)) == 6_738_415_616 - 32_000 * 4096


def test_tied_embedding_is_multiplied_as_the_head(book):
    gemma = (
        book.model("google/gemma-2-2b-it")
        if "google/gemma-2-2b-it" in book.model_ids
        else book.model("google/gemma-2-2b")
    )
    assert gemma.tie_embeddings
    assert multiplied_params(gemma) == gemma.params_active


def test_attention_of_llama_2_7b_takes_4_d_s_a_layer(book):
    assert attention_flop_per_token(book.model(LLAMA_7B), 1024) == 32 * 4 * 4096 * 1024


def test_windowed_layers_attend_to_their_window_at_most(book):
    gemma = book.model(next(name for name in book.model_ids if name.startswith("google/gemma-2-9b")))
    near, far = attended_layer_tokens(gemma, 1000), attended_layer_tokens(gemma, 8000)
    assert near == gemma.layers * 1000
    assert far == gemma.layers_full * 8000 + gemma.layers_windowed * gemma.window


def test_full_training_needs_six_n_and_checkpointing_a_third_more(book):
    plain = train(book, LLAMA_7B, Task.FULL_FINETUNE, checkpointing=Checkpointing.NONE)
    full = train(book, LLAMA_7B, Task.FULL_FINETUNE)
    n = multiplied_params(plain.model)
    assert matrix_training_flop_per_token(plain, plain.training) == 6 * n
    assert matrix_training_flop_per_token(full, full.training) == 8 * n
    assert model_flop_per_token(plain, plain.training) == 6 * n + 6 * 32 * 4096 * 2048
    assert model_flop_per_token(full, full.training) == model_flop_per_token(plain, plain.training)


def test_adapters_need_four_n_and_little_more(book):
    lora = train(book, LLAMA_7B, Task.LORA, checkpointing=Checkpointing.NONE)
    n = multiplied_params(lora.model)
    adapters = 6 * trainable_params(lora, lora.training)
    assert matrix_training_flop_per_token(lora, lora.training) == 4 * n + adapters
    assert adapters < 0.03 * 4 * n


def test_experts_touched_grow_from_the_active_ones_to_all(book):
    mixtral = book.model(MIXTRAL)
    assert routed_expert_params(mixtral) == pytest.approx(45.1e9, rel=0.01)
    one = one_replica(book, serve(book, MIXTRAL), "h100-sxm5-80")
    active = 2 * (mixtral.params_active - 32_000 * 4096)
    assert weight_bytes_touched(one, 1) == pytest.approx(active, rel=0.01)
    touched = [weight_bytes_touched(one, tokens) for tokens in (1, 2, 4, 16, 64, 10_000)]
    assert touched == sorted(touched)
    assert touched[-1] == pytest.approx(one.read_bytes)
    assert weight_bytes_touched(one_replica(book, serve(book, LLAMA_8B), "a40"), 1) == 2 * multiplied_params(
        book.model(LLAMA_8B)
    )
