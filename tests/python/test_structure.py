"""Arguments to flat tensors and flat tensors to outputs."""

from __future__ import annotations

import warnings

import pytest
import torch

from memscale import _structure
from memscale.errors import StructureWarning


def one(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape)


STRUCTURE = {
    "names": ["x", "pair", "flag", "extra"],
    "args": [{"leaf": 0}, {"tuple": [{"leaf": 1}, {"dict": {"b": {"leaf": 2}}}]}, {"const": True}, {"none": True}],
    "kwargs": {"scale": {"leaf": 3}},
}


def test_positional_and_keyword_arguments_reach_the_same_leaves() -> None:
    x, y, z, s = one(1), one(2), one(3), one(4)
    for args, kwargs in [
        ((x, (y, {"b": z}), True, None), {"scale": s}),
        ((x, [y, {"b": z}]), {"flag": True, "scale": s}),
        ((), {"x": x, "pair": (y, {"b": z}), "scale": s}),
    ]:
        flat = _structure.flatten_arguments(STRUCTURE, args, kwargs)
        assert [id(t) for t in flat] == [id(x), id(y), id(z), id(s)]


def test_what_was_captured_by_keyword_may_be_given_by_position() -> None:
    structure = {"names": ["ids", "labels"], "args": [], "kwargs": {"ids": {"leaf": 0}, "labels": {"leaf": 1}}}
    ids, labels = one(1), one(2)
    for args, kwargs in [((ids, labels), {}), ((ids,), {"labels": labels}), ((), {"labels": labels, "ids": ids})]:
        assert [id(t) for t in _structure.flatten_arguments(structure, args, kwargs)] == [id(ids), id(labels)]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {"scale": one(1)}, "missing a required argument: 'x'"),
        ((one(1), (one(1), {"b": one(1)})), {}, "missing a required argument: 'scale'"),
        ((one(1),), {"x": one(1), "scale": one(1)}, "multiple values for argument 'x'"),
        ((one(1),), {"bogus": 1}, "unexpected keyword argument 'bogus'"),
        ((1, (one(1), {"b": one(1)})), {"scale": one(1)}, "x must be a Tensor, not int"),
        ((one(1), 2, 3, 4, 5), {}, "takes 4 arguments"),
    ],
)
def test_calls_that_python_would_refuse(args: tuple, kwargs: dict, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        _structure.flatten_arguments(STRUCTURE, args, kwargs)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((one(1), (one(1), {"b": one(1)}), False), "flag was True at capture and is False now"),
        ((one(1), (one(1), {"b": one(1)}), True, 3), "extra was None at capture and is int now"),
        ((one(1), (one(1),)), "pair was a sequence of 2 at capture and is a tuple of 1 now"),
        ((one(1), (one(1), {"c": one(1)})), r"pair\[1\] had the keys \['b'\] at capture"),
    ],
)
def test_other_values_than_at_capture(args: tuple, message: str) -> None:
    with pytest.raises(_structure.Mismatch, match=message):
        _structure.flatten_arguments(STRUCTURE, args, {"scale": one(1)})


def test_outputs_are_rebuilt() -> None:
    tensors = [one(i) for i in range(5)]
    node = {"tuple": [{"leaf": 0}, {"list": [{"leaf": 1}]}, {"dict": {"a": {"leaf": 3}, "z": {"leaf": 2}}}, {"none": True}, {"const": 7}]}
    loss, listed, mapping, nothing, number = _structure.rebuild(node, tensors)
    assert loss is tensors[0]
    assert listed == [tensors[1]]
    assert list(mapping) == ["z", "a"]  # the order in which forward returned them, not the alphabet's
    assert nothing is None
    assert number == 7


@pytest.mark.parametrize("context", ['["loss", "logits"]', ["loss", "logits"]])
def test_model_outputs_keep_their_class(context: object) -> None:
    from transformers.modeling_outputs import MaskedLMOutput

    node = {"type": "transformers.modeling_outputs.MaskedLMOutput", "context": context, "children": [{"leaf": 0}, {"leaf": 1}]}
    output = _structure.rebuild(node, [one(1), one(2)])
    assert type(output) is MaskedLMOutput
    assert output.logits.shape == (2,)
    assert output.hidden_states is None


@pytest.mark.parametrize("context", ["namedtuple", ["a", "b"]])
def test_named_tuples_keep_their_fields(context: object) -> None:
    node = {"type": "__torch__.Pair", "context": context, "keys": ["a", "b"], "children": [{"leaf": 0}, {"leaf": 1}]}
    output = _structure.rebuild(node, [one(1), one(2)])
    assert output._fields == ("a", "b")
    assert isinstance(output, tuple)


def test_unknown_classes_come_back_as_dicts_with_one_warning() -> None:
    node = {"type": "os.system", "context": ["x"], "children": [{"leaf": 0}]}
    with pytest.warns(StructureWarning, match=r"os\.system comes back as a dict"):
        output = _structure.rebuild(node, [one(1)])
    assert list(output) == ["x"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _structure.rebuild(node, [one(1)])
