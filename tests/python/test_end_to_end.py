"""Every model of the zoo, from both archive formats, at three budgets: trained for three steps, equal to eager in every bit."""

from __future__ import annotations

import pytest
import torch
import training
import zoo

import memscale


@pytest.mark.parametrize("budget", ["1.0x", "0.7x", "min"])
@pytest.mark.parametrize("form", ["trace", "pt2"])
@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_three_steps_equal_eager(name: str, form: str, budget: str) -> None:
    model = memscale.load(training.planned(name, form, budget))
    found = training.train(model, zoo.ZOO[name].inputs)
    assert training.differences(found, training.eager(name)) == []
    stats = memscale.memory_stats(model)
    assert stats["fall_backs"] == 0
    assert stats["forward_runs"] == 3


@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_the_trace_itself_equals_eager(name: str) -> None:
    with torch.jit.optimized_execution(False):
        found = training.train(torch.jit.load(str(training.archive(name, "trace"))), zoo.ZOO[name].inputs)
    expected = training.eager(name)
    names = set(found.state[0])  # a trace drops what forward does not read
    for record in expected.state:
        assert names <= set(record)
    assert all(training.same_bits(a, b) for x, y in zip(found.outputs, expected.outputs) for a, b in zip(x, y))
    for x, y in zip(found.state, expected.state):
        assert [n for n in names if not training.same_bits(x[n], y[n])] == []


def test_a_difference_is_found() -> None:
    expected = training.eager("mlp")
    model = zoo.make("mlp")
    with torch.no_grad():
        model.first.weight[0, 0] += 1e-7
    assert any("gradients first.weight" in line for line in training.differences(training.train(model, zoo.ZOO["mlp"].inputs), expected))
