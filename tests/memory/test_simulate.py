"""What a simulation says: phases, the operation at the peak, what is held there; and what goes wrong."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `measure` is not installed")
pytest.importorskip("transformers", reason="the extra `measure` is not installed")

from tests.memory.simulations import TINY, operations_on_cpu, simulated
from torch import nn
from torch.nn import functional

from rackrate.memory.estimate_types import Phase
from rackrate.memory.simulation.recorder import Recorder, step_of
from rackrate.memory.simulation.records import Kind
from rackrate.memory.simulation.run import ProgramFailedError, simulate_program


def run(build):
    return simulate_program(build, lambda _step, _count: None)


class Net(nn.Module):
    """An embedding tied to a head, and three layers that share an input."""

    def __init__(self, width=64):
        super().__init__()
        self.embedding = nn.Embedding(100, width)
        self.norm = nn.LayerNorm(width)
        self.left, self.right, self.more = (nn.Linear(width, width) for _ in range(3))

    def forward(self, ids):
        x = self.embedding(ids)
        y = self.norm(x)
        return (x + self.left(y) * self.right(y) + self.more(y)) @ self.embedding.weight.T


def training(net, ids):
    loss = functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    net.zero_grad()


# ---------------------------------------------------------------- what it says


def test_the_parts_add_up_to_the_peak():
    for found in (
        simulated(),
        simulated("qwen3", rank=8, checkpointing=True),
        simulated(trains=False, output_tokens=4),
    ):
        assert sum(size for _, size in found.kinds) == found.peak_bytes
        assert max(size for _, size in found.phases) == found.peak_bytes
        assert all(held.bytes <= found.peak_bytes for held in found.largest)


def test_every_size_is_a_multiple_of_what_the_allocator_hands_out():
    found = run(lambda: lambda: torch.empty(1, device="cuda"))
    assert found.peak_bytes == 512
    assert run(lambda: lambda: torch.empty(513, dtype=torch.int8, device="cuda")).peak_bytes == 1024


def test_what_is_on_the_host_is_not_counted():
    found = run(lambda: lambda: (torch.empty(10_000, device="cpu"), torch.empty(1, device="cuda:0")))
    assert found.peak_bytes == 512


def test_a_large_vocabulary_peaks_in_the_backward_pass_of_the_loss():
    found = simulated(config=tuple({"model_type": "llama", **TINY, "vocab_size": 50_000}.items()))
    assert (found.peak_phase, found.operation, found.step) == (Phase.LOSS, "_log_softmax_backward_data", 2)
    logits = dict(found.kinds)[Kind.LOGITS]
    assert logits == pytest.approx(12 * 2 * 256 * 50_000, rel=0.001)  # FP32 log-softmax and two gradients


def test_moments_and_the_working_copy_of_adamw_are_there_in_the_first_step():
    found = simulated(tokens=16, batch=1)
    assert (found.peak_phase, found.operation, found.step) == (Phase.STEP, "_foreach_sqrt", 1)
    weights = dict(found.kinds)[Kind.WEIGHTS]
    assert dict(found.kinds)[Kind.OPTIMIZER_STATES] == pytest.approx(2 * weights, rel=0.01)
    assert dict(found.kinds)[Kind.GRADIENTS] == pytest.approx(weights, rel=0.01)
    assert found.peak_bytes == pytest.approx(5 * weights, rel=0.01)


def test_the_module_of_a_backward_pass_is_named():
    found = simulated(checkpointing=True, optimizer="sgd-fused", tokens=512)
    assert found.peak_phase is Phase.BACKWARD
    assert found.module.startswith("model.layers.")
    assert ".mlp" in found.module


def test_a_prompt_and_a_growing_cache():
    short, long = (simulated(trains=False, tokens=tokens, output_tokens=4) for tokens in (64, 512))
    assert [phase for phase, _ in long.phases] == [Phase.LOAD, Phase.PREFILL, Phase.DECODE]
    assert long.peak_phase is Phase.PREFILL
    grown = dict(long.phases)[Phase.DECODE] - dict(short.phases)[Phase.DECODE]
    per_token = 2 * 3 * 2 * 32 * 2 * 2  # keys and values, layers, heads, width, bytes, sequences
    assert grown >= per_token * 448


def test_attention_that_stores_its_scores_takes_that_much_more():
    flash, eager = (simulated(attention=attention, tokens=512, batch=1) for attention in ("flash", "eager"))
    scores = 3 * 8 * 512 * 512 * (4 + 2)  # layers, heads, pairs of tokens, softmax in FP32 and its cast
    assert 1.0 < (eager.peak_bytes - flash.peak_bytes) / scores < 1.2  # and copies for each query head


def test_gradients_are_added_in_place_where_the_engine_does():
    """Autograd adds in place what nobody else uses, but not under a dispatch mode: the ledger does it instead."""
    ids = torch.zeros(2, 8, dtype=torch.long)
    happened = operations_on_cpu(lambda: training(Net(), ids))
    added = [name for name, parent in happened if parent.startswith("autograd::engine") and "aten::add" in name]
    assert added == ["aten::add", "aten::add_", "aten::add", "aten::add"]
    recorder = Recorder(lambda _step, _count: None, of_user=True)
    recorder.run(lambda _: step_of((Net(), lambda net: training(net, ids.to("cuda")))), 1)
    made = [piece.place for piece in recorder.ledger.pieces if piece.place.operation == "add"]
    assert sum(place.phase is Phase.BACKWARD for place in made) == added.count("aten::add")


# ---------------------------------------------------------------- a program of one's own


def test_a_program_asks_for_a_card_and_gets_one_without_values():
    def build():
        net = Net().cuda().to("cuda:0", dtype=torch.float32)
        optimizer = torch.optim.AdamW(net.parameters(), fused=True)
        ids = torch.zeros(4, 32, dtype=torch.long, device=torch.device("cuda"))

        def step():
            loss = functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return step

    found = run(build)
    assert found.steps == 2
    assert {Phase.LOAD, Phase.FORWARD, Phase.LOSS, Phase.BACKWARD, Phase.STEP} == {phase for phase, _ in found.phases}
    assert found.line.startswith("test_simulate.py:")
    assert found.values_read == ()
    weights = sum(weight.numel() for weight in Net().parameters()) * 4
    assert dict(found.kinds)[Kind.WEIGHTS] == pytest.approx(weights, rel=0.05)


def test_a_model_and_a_step_of_it():
    found = run(lambda: (Net(), lambda net: training(net, torch.zeros(4, 32, dtype=torch.long, device="cuda"))))
    assert found.peak_bytes > 0


def test_values_that_are_read_are_zero_and_said():
    def build():
        net = Net()

        def step():
            out = net(torch.zeros(1, 4, dtype=torch.long, device="cuda"))
            assert out.sum().item() == 0.0
            assert not bool(out.max() > 1)

        return step

    assert [line.partition(":")[0] for line in run(build).values_read] == ["test_simulate.py"] * 2


def test_mixed_precision_makes_narrow_activations_and_wide_losses():
    def build():
        net = nn.Linear(256, 256)

        def step():
            with torch.autocast("cuda", dtype=torch.bfloat16):
                out = net(torch.zeros(64, 256, device="cuda"))
                assert out.dtype is torch.bfloat16
                with torch.autocast("cuda", enabled=False):
                    assert net(torch.zeros(1, 256, device="cuda")).dtype is torch.float32
                assert functional.softmax(out, -1).dtype is torch.float32
                assert torch.is_autocast_enabled("cuda")
            assert not torch.is_autocast_enabled("cuda")

        return step

    run(build)
    assert torch.autocast("cpu")._enabled  # PyTorch's own again


def test_a_program_as_people_write_them():
    """It asks whether there is a card, compiles, scales the loss, steps a schedule and reads the loss."""

    class Seer(nn.Module):
        def __init__(self):
            super().__init__()
            self.see, self.norm = nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)
            self.mix, self.out = nn.MultiheadAttention(64, 4, batch_first=True), nn.Linear(64, 10)

        def forward(self, x):
            y = functional.relu(self.norm(self.see(x))).flatten(2).transpose(1, 2)[:, :256]
            return self.out(functional.dropout(self.mix(y, y, y, need_weights=False)[0].mean(1), 0.1))

    def build():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = torch.compile(Seer().to(device))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        scaler = torch.amp.GradScaler("cuda")

        def step():
            pixels = torch.randn(8, 3, 32, 32).to(device, non_blocking=True)
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = functional.cross_entropy(model(pixels), torch.randint(0, 10, (8,), device=device))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            schedule.step()
            torch.cuda.synchronize()
            return loss.item()

        return step

    found = run(build)
    scores = (8 * 4, 256, 256)
    assert scores not in {held.shape for held in found.largest}  # attention inside of attention is flash too
    assert dict(found.kinds)[Kind.OPTIMIZER_STATES] == pytest.approx(dict(found.kinds)[Kind.WEIGHTS], rel=0.2)
    assert {line.partition(":")[0] for line in found.values_read} >= {"test_simulate.py"}


def test_a_step_that_fails_is_told_with_its_own_line():
    def build():
        def step():
            raise ValueError("no batch")  # the line

        return step

    with pytest.raises(ProgramFailedError, match="ValueError: no batch") as failed:
        run(build)
    number = int(failed.value.line.partition(":")[2])
    assert "# the line" in Path(__file__).read_text("utf-8").splitlines()[number - 1]
    assert not failed.value.needs_values


def test_a_shape_that_depends_on_values_is_told_as_such():
    with pytest.raises(ProgramFailedError) as failed:
        run(lambda: lambda: torch.ones(3, device="cuda").nonzero())
    assert failed.value.needs_values


def test_what_is_no_step_is_told():
    with pytest.raises(ProgramFailedError, match="returned int, not a step"):
        run(lambda: 3)


def test_nothing_of_it_stays_behind():
    import torch.optim.optimizer as optimizers
    from torch.nn.modules import module

    hooks = len(module._global_forward_hooks), len(optimizers._global_optimizer_pre_hooks)
    simulated()
    with pytest.raises(ProgramFailedError):
        run(lambda: 3)
    assert hooks == (len(module._global_forward_hooks), len(optimizers._global_optimizer_pre_hooks))
    assert "meta" not in optimizers._get_foreach_kernels_supported_devices()
    assert torch.ones(1).device.type == "cpu"
