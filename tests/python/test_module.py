"""A loaded module behaves as the original does: state, modes, hooks, accumulation, copies, fall-backs, distributed training."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from pathlib import Path

import pytest
import torch
import torch.multiprocessing
import training
import zoo
from torch import Tensor, nn
from training import same_bits

import memscale


@pytest.fixture
def gpt2() -> nn.Module:
    return memscale.load(training.planned("gpt2", "pt2", "0.7x"))


def run(model: nn.Module, step: int = 0, name: str = "gpt2") -> list[Tensor]:
    """One forward and backward from seed 3; the outputs."""
    torch.manual_seed(3)
    outputs = model(*zoo.ZOO[name].inputs(step))
    outputs[0].backward()
    return list(outputs)


def gradients(model: nn.Module) -> dict[str, Tensor | None]:
    return {name: p.grad for name, p in model.named_parameters()}


def assert_same_gradients(found: nn.Module, expected: nn.Module) -> None:
    assert list(gradients(found)) == list(gradients(expected))
    different = []
    for (name, a), b in zip(gradients(found).items(), gradients(expected).values()):
        if (a is None) != (b is None) or (a is not None and not same_bits(a, b)):
            different.append(name)
    assert different == []


@pytest.mark.parametrize("name", list(zoo.ZOO))
def test_names_order_kinds_and_tying_are_the_originals(name: str) -> None:
    original = zoo.make(name)
    model = memscale.load(training.planned(name, "pt2", "0.7x"))
    for found, expected in [
        (model.named_parameters(), original.named_parameters()),
        (model.named_parameters(remove_duplicate=False), original.named_parameters(remove_duplicate=False)),
        (model.named_buffers(), original.named_buffers()),
    ]:
        found, expected = list(found), list(expected)
        assert [n for n, _ in found] == [n for n, _ in expected]
        for (key, a), (_, b) in zip(found, expected):
            assert same_bits(a, b), key
            assert a.requires_grad == b.requires_grad
            assert type(a) is type(b)
    assert list(model.state_dict()) == list(original.state_dict())


def test_tied_weights_are_one_parameter(gpt2: nn.Module) -> None:
    assert gpt2.model.lm_head.weight is gpt2.model.transformer.wte.weight
    assert gpt2.get_parameter("model.lm_head.weight") is gpt2.get_parameter("model.transformer.wte.weight")


def test_state_dict_goes_both_ways(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2", seed=1)
    gpt2.load_state_dict(original.state_dict())
    run(gpt2)
    run(original)
    assert_same_gradients(gpt2, original)
    other = zoo.make("gpt2", seed=2)
    other.load_state_dict(gpt2.state_dict())
    assert all(same_bits(a, b) for a, b in zip(other.state_dict().values(), original.state_dict().values()))
    buffer = io.BytesIO()
    torch.save(gpt2.state_dict(), buffer)
    buffer.seek(0)
    assert list(torch.load(buffer, weights_only=True)) == list(original.state_dict())


def test_no_grad_gives_the_same_numbers_and_no_graph(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            torch.manual_seed(3)
            expected = original(*zoo.ZOO["gpt2"].inputs(0))
            torch.manual_seed(3)
            found = gpt2(*zoo.ZOO["gpt2"].inputs(0))
        assert all(same_bits(a, b) for a, b in zip(found, expected))
        assert found[0].grad_fn is None
    assert memscale.memory_stats(gpt2)["fall_backs"] == 0


def test_gradients_accumulate(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for step in range(3):
        run(gpt2, step)
        run(original, step)
    assert_same_gradients(gpt2, original)


def test_frozen_at_export(tmp_path: Path) -> None:
    original = zoo.make("gpt2")
    original.model.transformer.wpe.weight.requires_grad_(False)
    original.model.transformer.h[0].requires_grad_(False)
    memscale.export(original, zoo.ZOO["gpt2"].inputs(0), tmp_path / "m.pt2")
    memscale.compile(tmp_path / "m.pt2", tmp_path / "m.ms.pt", budget="0.8x", target="cpu")
    model = memscale.load(tmp_path / "m.ms.pt")
    assert [p.requires_grad for p in model.parameters()] == [p.requires_grad for p in original.parameters()]
    run(model)
    run(original)
    assert_same_gradients(model, original)
    assert memscale.memory_stats(model)["fall_backs"] == 0


def test_frozen_after_loading_is_right_even_if_it_costs_the_plan(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for model in (gpt2, original):
        model.model.transformer.wpe.weight.requires_grad_(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", memscale.FallBackWarning)
        run(gpt2)
    run(original)
    assert_same_gradients(gpt2, original)


@pytest.mark.parametrize("name", ["gpt2", "shared", "lstm"])
def test_three_forwards_before_a_backward(name: str) -> None:
    """Autograd adds the gradients of every use of a parameter in one order, across calls: ((a + b) + c) + d, not (a + b) + (c + d)."""
    model, original = memscale.load(training.planned(name, "pt2", "0.7x")), zoo.make(name)
    for m in (model, original):
        torch.manual_seed(9)
        first, second, third = (m(*zoo.ZOO[name].inputs(step))[0] for step in range(3))
        (first * 2 + second + third * 0.5).backward()
    assert_same_gradients(model, original)


def test_a_parameter_used_outside_the_plan_too(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for model in (gpt2, original):
        torch.manual_seed(9)
        weight = model.model.transformer.wte.weight
        before = (weight * 0.3).sin().sum()
        loss = model(*zoo.ZOO["gpt2"].inputs(0))[0]
        (before + loss + weight.square().mean()).backward()
    assert_same_gradients(gpt2, original)


def test_backwards_in_the_other_order(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for model in (gpt2, original):
        torch.manual_seed(9)
        first = model(*zoo.ZOO["gpt2"].inputs(0))[0]
        second = model(*zoo.ZOO["gpt2"].inputs(1))[0]
        second.backward()
        first.backward()
    assert_same_gradients(gpt2, original)


def test_a_second_backward_is_an_error(gpt2: nn.Module) -> None:
    loss = gpt2(*zoo.ZOO["gpt2"].inputs(0))[0]
    loss.backward()
    with pytest.raises(RuntimeError, match="(?i)second|twice|already"):
        loss.backward()


def test_the_loss_may_be_scaled(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    for model in (gpt2, original):
        torch.manual_seed(3)
        (model(*zoo.ZOO["gpt2"].inputs(0))[0] * 1024.0).backward()
    assert_same_gradients(gpt2, original)


def test_a_parameter_changed_between_forward_and_backward_is_noticed(gpt2: nn.Module) -> None:
    loss = gpt2(*zoo.ZOO["gpt2"].inputs(0))[0]
    with torch.no_grad():
        gpt2.model.transformer.h[1].mlp.c_fc.weight.add_(1.0)
    with pytest.raises(RuntimeError, match="modified|in place|version"):
        loss.backward()


def test_deterministic_mode(tmp_path: Path) -> None:
    original = zoo.make("gpt2")
    source = training.archive("gpt2", "pt2")
    torch.use_deterministic_algorithms(True)
    try:
        memscale.compile(source, tmp_path / "m.ms.pt", budget="0.7x", target="cpu")  # for this process's mode
        model = memscale.load(tmp_path / "m.ms.pt")
        run(model)
        run(original)
    finally:
        torch.use_deterministic_algorithms(False)
    assert_same_gradients(model, original)
    assert memscale.memory_stats(model)["fall_backs"] == 0
    assert training.memscalec("verify", tmp_path / "m.ms.pt").returncode == 0
    with pytest.warns(memscale.FallBackWarning, match="deterministic"):
        run(model)


def test_matmul_precision_is_the_users(gpt2: nn.Module) -> None:
    torch.set_float32_matmul_precision("high")
    try:
        loss = gpt2(*zoo.ZOO["gpt2"].inputs(0))[0]
        torch.set_float32_matmul_precision("medium")
        with pytest.raises(RuntimeError, match="between forward and backward"):
            loss.backward()
    finally:
        torch.set_float32_matmul_precision("highest")
    assert memscale.memory_stats(gpt2)["fall_backs"] == 0


def test_gradient_hooks_run(gpt2: nn.Module) -> None:
    original = zoo.make("gpt2")
    order: dict[str, list[str]] = {"found": [], "expected": []}
    for model, key in ((gpt2, "found"), (original, "expected")):
        for name, parameter in model.named_parameters():
            parameter.register_hook(lambda g: g * 2)
            parameter.register_post_accumulate_grad_hook(lambda p, name=name, key=key: order[key].append(name))
        run(model)
    assert_same_gradients(gpt2, original)
    assert sorted(order["found"]) == sorted(order["expected"])


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "torch.save"])
def test_copies_train_apart(gpt2: nn.Module, way: str) -> None:
    run(gpt2)
    gpt2.zero_grad()
    if way == "deepcopy":
        twin = copy.deepcopy(gpt2)
    elif way == "pickle":
        twin = pickle.loads(pickle.dumps(gpt2))
    else:
        buffer = io.BytesIO()
        torch.save(gpt2, buffer)
        buffer.seek(0)
        twin = torch.load(buffer, weights_only=False)
    original = zoo.make("gpt2")
    assert twin.model.lm_head.weight is twin.model.transformer.wte.weight
    assert twin.model.lm_head.weight is not gpt2.model.lm_head.weight
    run(twin)
    run(original)
    assert_same_gradients(twin, original)
    assert all(p.grad is None for p in gpt2.parameters())
    assert memscale.memory_stats(twin)["fall_backs"] == 0


def test_the_other_mode_is_an_error_that_names_the_remedy(gpt2: nn.Module) -> None:
    assert gpt2.training
    gpt2.train()
    with pytest.raises(memscale.ModeError, match="export"):
        gpt2.eval()
    assert gpt2.training


def test_another_shape_runs_the_original_graph(gpt2: nn.Module) -> None:
    model = memscale.load(training.planned("mlp", "trace", "1.0x"))
    original = zoo.make("mlp")
    x, labels = torch.randn(7, 32), torch.randint(0, 10, (7,))
    for module in (original, model):
        torch.manual_seed(3)
        if module is model:
            with pytest.warns(memscale.FallBackWarning, match="x"):
                loss = module(x, labels)[0]
        else:
            loss = module(x, labels)[0]
        loss.backward()
    assert_same_gradients(model, original)
    stats = memscale.memory_stats(model)
    assert stats["fall_backs"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(x, labels)  # said once
    assert memscale.memory_stats(model)["fall_backs"] == 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.first.weight.detach().clone()
    optimizer.step()
    assert not torch.equal(before, model.first.weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.manual_seed(3)
        planned_again = model(*zoo.ZOO["mlp"].inputs(0))[0]
    original.load_state_dict(model.state_dict())
    torch.manual_seed(3)
    assert same_bits(planned_again, original(*zoo.ZOO["mlp"].inputs(0))[0])


def test_arguments_by_keyword() -> None:
    model = memscale.load(training.planned("mlp", "pt2", "1.0x"))
    x, labels = zoo.ZOO["mlp"].inputs(0)
    torch.manual_seed(3)
    expected = model(x, labels)[0]
    torch.manual_seed(3)
    assert same_bits(model(x, labels=labels)[0], expected)
    with pytest.raises(TypeError, match="labels"):
        model(x)
    with pytest.raises(TypeError, match="bogus"):
        model(x, labels, bogus=1)


def test_outputs_keep_their_class(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForMaskedLM
    from transformers.modeling_outputs import MaskedLMOutput

    torch.manual_seed(0)
    config = BertConfig(num_hidden_layers=1, hidden_size=32, intermediate_size=64, num_attention_heads=2, vocab_size=64)
    original = BertForMaskedLM(config).train()
    ids = torch.randint(1, 64, (4, 16))
    memscale.export(original, (), tmp_path / "m.pt2", kwargs={"input_ids": ids, "labels": ids})
    memscale.compile(tmp_path / "m.pt2", tmp_path / "m.ms.pt", target="cpu", budget="1.0x")
    model = memscale.load(tmp_path / "m.ms.pt")
    for module in (model, original):
        torch.manual_seed(3)
        output = module(input_ids=ids, labels=ids)
        assert type(output) is MaskedLMOutput
        output.loss.backward()
    assert_same_gradients(model, original)


def test_torch_jit_load_trains_the_same_file() -> None:
    path = training.planned("gpt2", "pt2", "0.7x")
    memscale.load_runtime()
    model = torch.jit.load(str(path))
    original = zoo.make("gpt2")
    for step in range(2):
        run(model, step)
        run(original, step)
    found, expected = gradients(model), gradients(original)
    shared = [name for name in expected if name in found]
    assert len(shared) == len(expected)
    assert [name for name in shared if not same_bits(found[name], expected[name])] == []


def test_weights_need_not_be_loaded() -> None:
    model = memscale.load(training.planned("mlp", "pt2", "1.0x"), load_weights=False)
    original = zoo.make("mlp", seed=4)
    assert all(p.device.type == "meta" for p in model.parameters())
    model.load_state_dict(original.state_dict(), assign=True)
    run(model, name="mlp")
    run(original, name="mlp")
    assert_same_gradients(model, original)


def test_a_structure_only_archive_takes_the_live_modules_weights(tmp_path: Path) -> None:
    original = zoo.make("gpt2")
    memscale.export(original, zoo.ZOO["gpt2"].inputs(0), tmp_path / "m.pt2", structure_only=True)
    memscale.compile(tmp_path / "m.pt2", tmp_path / "m.ms.pt", target="cpu", budget="0.7x")
    assert (tmp_path / "m.ms.pt").stat().st_size < sum(p.nbytes for p in original.parameters())
    with pytest.raises(memscale.ArchiveError, match="load_weights"):
        memscale.load(tmp_path / "m.ms.pt")
    model = memscale.load(tmp_path / "m.ms.pt", load_weights=False)
    model.load_state_dict(original.state_dict(), assign=True)
    run(model)
    run(original)
    assert_same_gradients(model, original)
    assert memscale.memory_stats(model)["fall_backs"] == 0


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_load_answers_wrong_files(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "m.ms.pt"
    path.write_bytes(training.archive("mlp", "trace").read_bytes() if content is None else content)
    with pytest.raises(memscale.ArchiveError, match="m.ms.pt"):
        memscale.load(path)


def test_load_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        memscale.load(tmp_path / "absent.ms.pt")


def test_truncated_and_flipped_archives_never_crash(tmp_path: Path) -> None:
    whole = training.planned("mlp", "pt2", "1.0x").read_bytes()
    refused = 0
    for i in range(40):
        damaged = bytearray(whole)
        if i % 2:
            damaged = damaged[: len(whole) * i // 40]
        else:
            start = len(whole) * i // 40
            damaged[start : start + 16] = bytes(b ^ 0xFF for b in damaged[start : start + 16])
        path = tmp_path / f"{i}.ms.pt"
        path.write_bytes(damaged)
        try:
            memscale.load(path)
        except memscale.ArchiveError:
            refused += 1
    assert refused >= 20  # every truncated one


def _distributed(rank: int, path: str, port: int, folder: str) -> None:
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for kind in ("eager", "planned"):
        for option in ({}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
            model = memscale.load(path) if kind == "planned" else zoo.make("mlp")
            parallel = DistributedDataParallel(model, **option)
            optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
            torch.manual_seed(20 + rank)
            for step in range(3):
                parallel(*zoo.ZOO["mlp"].inputs(10 * step + rank))[0].backward()
                optimizer.step()
                optimizer.zero_grad()
            torch.save(model.state_dict(), f"{folder}/{kind}-{rank}-{'-'.join(option) or 'default'}.pt")
    dist.destroy_process_group()


def test_distributed_data_parallel(tmp_path: Path) -> None:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = training.planned("mlp", "trace", "0.7x")
    torch.multiprocessing.spawn(_distributed, args=(str(path), port, str(tmp_path)), nprocs=2)
    for option in ("default", "gradient_as_bucket_view", "static_graph"):
        eager, *others = [
            torch.load(tmp_path / f"{kind}-{rank}-{option}.pt", weights_only=True) for kind in ("eager", "planned") for rank in (0, 1)
        ]
        for other in others:
            assert [n for n in eager if not same_bits(eager[n], other[n])] == []
