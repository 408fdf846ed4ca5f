"""The in-place tables of passes/ against the schemas of the installed torch.

Every pair "captured=in-place" of the verifier must exist in torch with fitting schemas, and its table and that of the transforms, which are
written apart, must agree on what an elementwise kernel may become.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch


def overload(name: str) -> torch._ops.OpOverload:
    base, _, over = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), over or "default")


def shape(schema: torch.FunctionSchema, without_out: bool) -> list[tuple[str, str]]:
    """(name, type) of the arguments, without what an out form takes beside them."""
    return [(a.name, str(a.type)) for a in schema.arguments if not (without_out and a.is_out)]


def check_pair(captured: str, inplace: str) -> list[str]:
    faults = []
    try:
        before, after = overload(captured)._schema, overload(inplace)._schema
    except AttributeError as error:
        return [f"{captured}={inplace}: {error}"]
    out = any(a.is_out for a in after.arguments)
    # in-place overloads name a renamed argument at times (pow_.Scalar: exponent); types and order are what counts
    if [t for _, t in shape(before, False)] != [t for _, t in shape(after, True)]:
        faults.append(f"{captured}={inplace}: the arguments differ: {before} / {after}")
    written = [a for a in after.arguments if a.alias_info is not None and a.alias_info.is_write]
    if len(written) != 1 or (written[0].is_out if not out else not written[0].is_out):
        faults.append(f"{captured}={inplace}: expected one written argument, found {[a.name for a in written]}")
    if not out and written and written[0].name != after.arguments[0].name:
        faults.append(f"{captured}={inplace}: writes {written[0].name}, expected the first argument")
    if out and not after.arguments[-1].is_out:
        faults.append(f"{captured}={inplace}: the out argument is not the last")
    if len(before.returns) != 1 or len(after.returns) != 1:
        faults.append(f"{captured}={inplace}: expected one result")
    if out and not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{inplace}", "CPU"):
        faults.append(f"{captured}={inplace}: the out form has no kernel of its own on the CPU: it would compute elsewhere and copy")
    return faults


def main(root: Path) -> int:
    rules = (root / "passes/verify/InPlaceRules.cpp").read_text()
    pairs = sorted(set(re.findall(r'"([\w.]+)=([\w.]+)"', rules)))
    faults = [fault for pair in pairs for fault in check_pair(*pair)]
    table = (root / "passes/analysis/InPlaceForms.cpp").read_text()
    names = set(re.findall(r'"([a-z][a-z0-9_]+)"', table))
    for captured, _ in pairs:
        if captured.partition(".")[0] not in names:
            faults.append(f"{captured}: the verifier knows it, passes/analysis/InPlaceForms.cpp does not")
    known = {captured.partition(".")[0] for captured, _ in pairs}
    for name in sorted(names - {"out", "self_out", "grad_input", "self", "src", "value", "reduce", "value_reduce", "two"}):
        if name not in known:
            faults.append(f"{name}: passes/analysis/InPlaceForms.cpp knows it, the verifier does not")
    print("\n".join(faults) or f"{len(pairs)} pairs agree with torch {torch.__version__}")
    return 1 if faults or len(pairs) < 70 else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
