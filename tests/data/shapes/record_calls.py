"""Records ATen calls below autograd and functionalization, with the layout of every operand and result.

The files that it writes (*.calls, one call a line) are the oracle of tests/unit/capture/shapes_test.cpp. Calls come from forward and
backward of PyTorch's own operator samples, of small configurations of the models that we plan, and of a list of further calls.

    python tests/data/shapes/record_calls.py --device cpu -o cpu.calls [--shard 0/4] [--per-op 60]
    python tests/data/shapes/record_calls.py --merge out.calls part0.calls part1.calls [--per-op 12]

Needs torch, expecttest (PyTorch's samples import it); transformers and torchvision for the models.

A line is "name.overload arguments -> results". Tensors are dtype[sizes|strides|offset|storage bytes|storage number], with an "h" after the
dtype for a tensor on the host beside a CUDA target and "=contents" for small integer tensors. A number where the schema has a tensor is
a number of Python's, wrapped.
"""

import argparse
import collections
import os
import sys
import zlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
    torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
    torch.uint64: "u64",
}
DTYPE_CODES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6, torch.float64: 7,
    torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}
FORMAT_CODES = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3}
CONTENTS_LIMIT = 64
BYTES_LIMIT = 1 << 26


class Skip(Exception):
    """A call that the format cannot hold: sparse, nested or conjugated tensors, generators, 8-bit floats."""


def contents(tensor):
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype == torch.uint64 or tensor.numel() > CONTENTS_LIMIT or tensor.numel() == 0:
        return ""
    return "=" + ",".join(str(int(v)) for v in tensor.cpu().flatten().tolist())


class Writer:
    def __init__(self, device):
        self.device = device
        self.storages = {}
        self.with_contents = True  # of operands

    def tensor(self, t):
        if t.layout != torch.strided or t.dtype not in DTYPES or t.is_conj() or t.is_neg() or t.is_nested or t.is_quantized:
            raise Skip(str(t.layout))
        storage = t.untyped_storage()
        number = self.storages.setdefault(storage._cdata, len(self.storages))
        if storage.nbytes() > BYTES_LIMIT:
            raise Skip("too large")
        ints = lambda values: ",".join(map(str, values))
        mark = ""
        if self.device != "cpu" and t.device.type == "cpu":
            mark = "h"
        return (f"{DTYPES[t.dtype]}{mark}[{ints(t.shape)}|{ints(t.stride())}|{t.storage_offset()}|{storage.nbytes()}|{number}]"
                + (contents(t) if self.with_contents else ""))

    def value(self, v):
        if v is None:
            return "-"
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if isinstance(v, bool):
            return "true" if v else "false"
        if isinstance(v, (int, torch.SymInt)):
            return f"{int(v)}"
        if isinstance(v, float):
            return f"d{v!r}"
        if isinstance(v, complex):
            return f"c{v.real!r},{v.imag!r}"
        if isinstance(v, str):
            return f'"{v}"'
        if isinstance(v, torch.dtype):
            if v not in DTYPE_CODES:
                raise Skip(str(v))
            return str(DTYPE_CODES[v])
        if isinstance(v, torch.memory_format):
            return str(FORMAT_CODES[v])
        if isinstance(v, torch.layout):
            if v != torch.strided:
                raise Skip(str(v))
            return "0"
        if isinstance(v, torch.device):
            return "@" + ("host" if self.device != "cpu" and v.type == "cpu" else "target")
        if isinstance(v, (list, tuple)):
            return "( " + "".join(self.value(x) + " " for x in v) + ")"
        raise Skip(type(v).__name__)


def layout_class(t):
    order = sorted(range(t.dim()), key=lambda d: (-t.stride(d), d))
    return (str(t.dtype), t.dim(), tuple(order), t.is_contiguous(), t.numel() == 0, t._is_view() and t.storage_offset() > 0,
            0 in t.stride(), t.device.type)


def call_class(arguments):
    result = []
    for v in arguments:
        if isinstance(v, torch.Tensor):
            result.append(layout_class(v))
        elif isinstance(v, (list, tuple)):
            result.append((len(v), tuple(call_class(v))))
        elif isinstance(v, int) and not isinstance(v, bool):
            result.append(max(-1, min(v, 2)))
        elif isinstance(v, float):
            result.append(v == 0)
        else:
            result.append(str(v))
    return tuple(result)


class Recorder(TorchDispatchMode):
    def __init__(self, device, file):
        super().__init__()
        self.device = device
        self.file = file  # written to call by call: a kernel that crashes costs nothing but the rest
        self.lines = set()
        self.skipped = collections.Counter()
        self.every = ()  # ops of which each call counts, not one a class

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        arguments = list(args)
        for argument in schema.arguments[len(args):]:
            arguments.append(kwargs[argument.name] if argument.name in kwargs else argument.default_value)
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        key = None
        try:
            key = (name, len(self.lines) if name in self.every else call_class(arguments))
            if key in self.lines or not name.startswith("aten::"):
                key = None
            else:
                writer = Writer(self.device)
                text = " ".join(writer.value(v) for v in arguments)
        except (Skip, RuntimeError) as reason:
            self.skipped[f"{name}: {reason}"] += 1
            key = None
        result = func(*args, **kwargs)
        if key is not None:
            try:
                results = result if isinstance(result, (tuple, list)) and len(schema.returns) != 1 else (result,)
                if len(schema.returns) == 0:
                    results = ()
                writer.with_contents = False
                print(name, text, "->", *(writer.value(v) for v in results), file=self.file, flush=True)
                self.lines.add(key)
            except (Skip, RuntimeError) as reason:
                self.skipped[f"{name}: {reason}"] += 1
        return result


def functional(value, leaves):
    """Functional twins of all tensors in a nest; those that require grad are appended to leaves."""

    def twin(t):
        if not isinstance(t, torch.Tensor):
            return t
        wrapped = torch._to_functional_tensor(t.detach())
        if t.requires_grad:
            wrapped.requires_grad_(True)
            leaves.append(wrapped)
        return wrapped

    return tree_map(twin, value)


def run(recorder, function, args, kwargs, tangent="like"):
    """Forward and backward of function under recording."""
    leaves = []
    args, kwargs = functional((args, kwargs), leaves)
    with recorder:
        torch._enable_functionalization(reapply_views=True)
        try:
            outputs = [t for t in tree_flatten(function(*args, **kwargs))[0] if isinstance(t, torch.Tensor) and t.requires_grad]
            if outputs and leaves:
                if tangent == "like":
                    tangents = [torch.ones_like(t) for t in outputs]
                else:
                    tangents = [torch.ones(t.shape, dtype=t.dtype, device=t.device) for t in outputs]
                torch.autograd.grad(outputs, leaves, tangents, allow_unused=True)
        finally:
            torch._disable_functionalization()


def transposed(t):
    if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.dim() >= 2:
        return t.detach().transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_(t.requires_grad)
    return t


def channels_last(t):
    if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.dim() in (4, 5):
        order = torch.channels_last if t.dim() == 4 else torch.channels_last_3d
        return t.detach().contiguous(memory_format=order).requires_grad_(t.requires_grad)
    return t


def same(t):
    return t


def operator_samples(recorder, shard, shards, per_dtype):
    from torch.testing._internal.common_methods_invocations import op_db

    device = recorder.device
    for op in op_db:
        if zlib.crc32(op.full_name.encode()) % shards != shard or op.full_name.startswith(("sparse.", "jiterator")):
            continue
        supported = op.supported_dtypes(device)
        differentiable = op.supported_backward_dtypes(device) if op.supports_autograd else set()
        dtypes = [d for d in (torch.float32, torch.bfloat16, torch.int64, torch.complex64) if d in supported] or list(supported)[:1]
        for dtype in dtypes:
            try:
                torch.manual_seed(0)
                samples = list(op.sample_inputs(device, dtype, requires_grad=dtype in differentiable))
            except Exception:  # samples of some operators need what is not installed
                continue
            step = max(1, len(samples) // (per_dtype if dtype == torch.float32 else max(2, per_dtype // 4)))
            for sample in samples[::step]:
                for variant, tangent in ((same, "like"), (transposed, "like"), (channels_last, "contiguous"), (channels_last, "like")):
                    values = (sample.input, tuple(sample.args))
                    changed = tree_map(variant, values)
                    if variant is not same and all(a is b for a, b in zip(tree_flatten(values)[0], tree_flatten(changed)[0])):
                        continue
                    try:
                        run(recorder, op.op, (changed[0], *changed[1]), dict(sample.kwargs), tangent)
                    except Exception as error:  # what the samples mean to fail, or cannot be functional
                        recorder.skipped[f"{op.full_name}: {type(error).__name__}"] += 1
                        torch._disable_functionalization()
        print(op.full_name, len(recorder.lines), file=sys.stderr, flush=True)


def merge(paths, per_op):
    groups = collections.defaultdict(set)
    for path in paths:
        with open(path) as file:
            for line in file:
                groups[line.split(" ", 1)[0]].add(line.rstrip("\n"))
    lines = []
    for name in sorted(groups):
        ordered = sorted(groups[name], key=lambda line: (len(line), line))
        # the shortest half, and an even choice of the rest
        short, rest = ordered[: per_op // 2], ordered[per_op // 2:]
        stride = max(1, len(rest) // max(1, per_op - per_op // 2))
        lines += short + rest[::stride][: per_op - per_op // 2]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("-o", "--output")
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--per-dtype", type=int, default=12, help="samples of an operator and dtype")
    parser.add_argument("--per-op", type=int, default=60, help="lines kept of an ATen operator")
    parser.add_argument("--only", default="samples,models,calls")
    parser.add_argument("--merge", nargs="+", metavar="FILE", help="output, then inputs")
    options = parser.parse_args()
    if options.merge:
        with open(options.merge[0], "w") as file:
            file.writelines(line + "\n" for line in merge(options.merge[1:], options.per_op))
        return
    torch.set_num_threads(1)
    shard, shards = map(int, options.shard.split("/"))
    recorder = Recorder(options.device, open(options.output, "w"))
    if "samples" in options.only:
        operator_samples(recorder, shard, shards, options.per_dtype)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if shard == 0 and ("models" in options.only or "calls" in options.only):
        import record_models

        if "models" in options.only:
            record_models.models(recorder, run)
        if "calls" in options.only:
            record_models.calls(recorder, run)
    for reason, count in sorted(recorder.skipped.items()):
        print("skipped", count, reason, file=sys.stderr)


if __name__ == "__main__":
    main()
