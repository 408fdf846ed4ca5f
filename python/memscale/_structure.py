"""Nested arguments and outputs from and to flat tensors, as the plan's structure JSON describes them (docs/formats/plan.md).

Nothing named by an archive is imported, except classes that torch's pytree registry already knows and transformers' ModelOutput
classes.
"""

from __future__ import annotations

import collections
import importlib
import json
import re
import sys
import warnings
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor

from .errors import StructureWarning

Node = dict[str, Any]


class Mismatch(Exception):
    """The arguments are not of the structure that the plan was made for."""


def flatten_arguments(structure: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The flat inputs of a call. Raises TypeError as a Python call would, Mismatch where values differ from the captured ones."""
    positional: list[Node] = structure["args"]
    keyword: dict[str, Node] = structure.get("kwargs", {})
    names: list[str] = list(structure["names"])
    for i in range(len(positional), len(args)):  # captured as keywords, given by position
        if i >= len(names) or names[i] not in keyword:
            raise TypeError(f"forward() takes {max(len(names), len(positional))} arguments ({', '.join(names)}), {len(args)} were given")
        if names[i] in kwargs:
            raise TypeError(f"forward() got multiple values for argument {names[i]!r}")
        kwargs = {**kwargs, names[i]: args[i]}
    unknown = [name for name in kwargs if name not in names and name not in keyword]
    if unknown:
        raise TypeError(f"forward() got an unexpected keyword argument {unknown[0]!r}; it takes {', '.join(names)}")
    leaves: dict[int, Tensor] = {}
    for i, node in enumerate(positional):
        name = names[i] if i < len(names) else str(i)
        if i < len(args):
            if name in kwargs:
                raise TypeError(f"forward() got multiple values for argument {name!r}")
            _flatten(node, args[i], name, leaves)
        elif name in kwargs:
            _flatten(node, kwargs[name], name, leaves)
        else:
            _default(node, name)
    for name, node in keyword.items():
        if name in kwargs:
            _flatten(node, kwargs[name], name, leaves)
        else:
            _default(node, name)
    return [leaves[i] for i in sorted(leaves)]


def _default(node: Node, name: str) -> None:
    if "leaf" in node and node.get("optional"):
        raise Mismatch(f"{name} was a tensor at capture and is absent now")
    if "none" not in node and "const" not in node:
        raise TypeError(f"forward() missing a required argument: {name!r}")


def _flatten(node: Node, value: Any, name: str, leaves: dict[int, Tensor]) -> None:
    if "leaf" in node:
        if not isinstance(value, Tensor):
            if value is None and node.get("optional"):
                raise Mismatch(f"{name} was a tensor at capture and is None now")
            raise TypeError(f"{name} must be a Tensor, not {type(value).__name__}")
        leaves[node["leaf"]] = value
    elif "none" in node:
        if value is not None:
            raise Mismatch(f"{name} was None at capture and is {type(value).__name__} now")
    elif "const" in node:
        if type(value) is not type(node["const"]) or value != node["const"]:
            raise Mismatch(f"{name} was {node['const']!r} at capture and is {value!r} now")
    elif "tuple" in node or "list" in node:
        children = node["tuple"] if "tuple" in node else node["list"]
        if not isinstance(value, (tuple, list)) or len(value) != len(children):
            raise Mismatch(f"{name} was a sequence of {len(children)} at capture and is {_described(value)} now")
        for i, child in enumerate(children):
            _flatten(child, value[i], f"{name}[{i}]", leaves)
    elif "dict" in node:
        if not isinstance(value, dict) or set(value) != set(node["dict"]):
            raise Mismatch(f"{name} had the keys {sorted(node['dict'])} at capture and is {_described(value)} now")
        for key, child in node["dict"].items():
            _flatten(child, value[key], f"{name}[{key!r}]", leaves)
    elif "type" in node:
        children = _children_of(value)
        if children is None or len(children) != len(node["children"]):
            raise Mismatch(f"{name} was a {node['type']} at capture and is {_described(value)} now")
        for i, child in enumerate(node["children"]):
            _flatten(child, children[i], f"{name}[{i}]", leaves)
    else:
        raise Mismatch(f"{name} has a structure that this version does not know: {sorted(node)}")


def _described(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict with the keys {sorted(map(str, value))}"
    return type(value).__name__


def _children_of(value: Any) -> list[Any] | None:
    if isinstance(value, tuple):
        return list(value)
    entry = pytree.SUPPORTED_NODES.get(type(value))
    return None if entry is None else list(entry.flatten_fn(value)[0])


def rebuild(node: Node, tensors: list[Any]) -> Any:
    """The nested value whose flat tensors are `tensors`."""
    if "leaf" in node:
        return tensors[node["leaf"]]
    if "none" in node:
        return None
    if "const" in node:
        return node["const"]
    if "tuple" in node:
        return tuple(rebuild(child, tensors) for child in node["tuple"])
    if "list" in node:
        return [rebuild(child, tensors) for child in node["list"]]
    if "dict" in node:
        items = sorted(node["dict"].items(), key=lambda item: _first_leaf(item[1]))  # the order in which they were flattened
        return {key: rebuild(child, tensors) for key, child in items}
    if "type" in node:
        return _rebuild_object(node, [rebuild(child, tensors) for child in node["children"]])
    raise ValueError(f"an output has a structure that this version does not know: {sorted(node)}")


def _first_leaf(node: Node) -> float:
    if "leaf" in node:
        return float(node["leaf"])
    children = node.get("tuple") or node.get("list") or node.get("children") or list(node.get("dict", {}).values())
    return min((_first_leaf(child) for child in children), default=float("inf"))


def _context(node: Node) -> Any:
    context = node.get("context")
    if isinstance(context, str):
        try:
            return json.loads(context)
        except ValueError:
            return context
    return context


_warned: set[str] = set()


def _rebuild_object(node: Node, children: list[Any]) -> Any:
    name, context = node["type"], _context(node)
    keys = node.get("keys") if isinstance(node.get("keys"), list) else context
    keys = keys if isinstance(keys, list) and len(keys) == len(children) and all(isinstance(k, str) for k in keys) else None
    cls = _known_class(name)
    if cls is not None:
        entry = pytree.SUPPORTED_NODES[cls]
        serialized = pytree.SUPPORTED_SERIALIZED_TYPES.get(cls)
        if serialized is not None and serialized.from_dumpable_context is not None:
            context = serialized.from_dumpable_context(context)
        return entry.unflatten_fn(children, context)
    fields = keys or [str(i) for i in range(len(children))]
    if context == "namedtuple" or name.startswith("__torch__."):
        short = name.rsplit(".", 1)[-1]
        return collections.namedtuple(short if short.isidentifier() else "Output", fields)(*children)  # noqa: PYI024
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"an output of class {name} comes back as a dict: the class is not registered with torch.utils._pytree in this process. "
            "Import the module that registers it before the first call.",
            StructureWarning,
            stacklevel=3,
        )
    return dict(zip(fields, children))


def _known_class(name: str) -> type | None:
    """The registered class of that serialized name; transformers' output classes are imported to be found."""
    cls = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if cls is None and re.fullmatch(r"transformers\.(modeling_outputs|models\.\w+\.modeling_\w+)\.\w+", name):
        module, _, attribute = name.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ImportError:
            return None
        base = sys.modules["transformers.utils"].ModelOutput if "transformers.utils" in sys.modules else None
        cls = found if isinstance(found, type) and base is not None and issubclass(found, base) else None
    return cls if cls in pytree.SUPPORTED_NODES else None
