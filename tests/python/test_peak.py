"""The predicted peak is the measured one: allocations of whole steps (forward, backward, optimizer) are counted one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import training
import zoo
from torch import nn

import memscale

MODELS = ["gpt2", "bert", "llama", "resnet50", "vit", "lstm", "shared"]
OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), lr=1e-3),
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=1e-3),
}


def measured_peak(model: nn.Module, name: str, optimizer: str) -> int:
    """Bytes alive at the worst moment of three whole steps: static tensors plus what the steps allocated (optimizer state too)."""
    batches = [zoo.ZOO[name].inputs(step) for step in range(3)]
    static = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in [*model.parameters(), *model.buffers(), *batches[0]]}
    steps_of = OPTIMIZERS[optimizer](model)
    torch.manual_seed(5)
    with memscale.track_allocations() as tracked:
        for inputs in batches:
            outputs = model(*inputs)
            outputs[0].backward()
            del outputs
            steps_of.step()
            steps_of.zero_grad()
    return sum(static.values()) + tracked.peak_bytes


def lowest_at_least(name: str, budget: str, optimizer: str) -> nn.Module:
    """The model planned under `budget`, or at the lowest feasible one where that is higher."""
    try:
        return memscale.load(training.planned(name, "trace", budget, optimizer))
    except memscale.BudgetInfeasibleError:
        return memscale.load(training.planned(name, "trace", "min", optimizer))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("name", MODELS)
def test_a_planned_step_peaks_where_predicted(name: str, optimizer: str) -> None:
    model = lowest_at_least(name, "0.5x", optimizer)
    measured = measured_peak(model, name, optimizer)
    stats = memscale.memory_stats(model)
    assert measured == pytest.approx(stats["predicted_peak_bytes"], rel=0.01)
    assert stats["fall_backs"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_eager_peaks_where_save_all_is_predicted(name: str) -> None:
    predicted = memscale.memory_stats(memscale.load(training.planned(name, "trace", "1.0x")))["predicted_eager_peak_bytes"]
    assert measured_peak(zoo.make(name), name, "adamw") == pytest.approx(predicted, rel=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_doing_nothing_costs_no_more_than_eager(name: str) -> None:
    model = memscale.load(training.planned(name, "trace", "1.0x"))
    assert measured_peak(model, name, "adamw") <= 1.001 * measured_peak(zoo.make(name), name, "adamw")


def test_half_the_peak_is_half_the_peak() -> None:
    model = memscale.load(training.planned("gpt2", "trace", "0.5x"))
    assert measured_peak(model, "gpt2", "adamw") <= 0.51 * measured_peak(zoo.make("gpt2"), "gpt2", "adamw")


def test_tracking_counts_what_is_allocated() -> None:
    before = torch.zeros(1000)
    with memscale.track_allocations() as tracked:
        a = torch.empty(2_000_000, dtype=torch.uint8)
        b = torch.empty(3_000_000, dtype=torch.uint8)
        assert tracked.current_bytes() == pytest.approx(5_000_000, abs=1000)
        del a
        assert tracked.current_bytes() == pytest.approx(3_000_000, abs=1000)
        c = torch.empty(1_000_000, dtype=torch.uint8)
        del b, c, before
    assert tracked.peak_bytes == pytest.approx(5_000_000, abs=1000)
