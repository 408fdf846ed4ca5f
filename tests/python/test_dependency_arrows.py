"""The includes of the C++ sources follow the dependency arrows of the design: ir ← passes ← compiler/driver ← tools; the planner knows
neither MLIR nor torch; the runtime knows nobody above it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MLIR = r"(mlir|llvm)(-c)?/"
TORCH = r"(torch|ATen|c10|caffe2)/"

# Folder → includes that its files must not have. Exceptions are plain headers made to be the border.
FORBIDDEN: dict[str, list[str]] = {
    "ir": [r"passes/", r"compiler/", r"runtime/", r"tools/", TORCH],
    "passes": [r"compiler/(driver|import|export|codegen)/", r"compiler/capture/(?!graph\.h$)", r"tools/", TORCH],
    "compiler/planner": [MLIR, TORCH, r"ir/", r"passes/", r"runtime/", r"tools/", r"compiler/(driver|import|export|capture)/"],
    "compiler/cost": [MLIR, TORCH, r"ir/", r"passes/", r"runtime/", r"tools/", r"compiler/(driver|import|export)/",
                      r"compiler/capture/(?!graph\.h$)"],
    "compiler/simulate": [MLIR, TORCH, r"ir/", r"passes/", r"runtime/", r"tools/", r"compiler/(driver|import|export)/",
                          r"compiler/capture/(?!graph\.h$)"],
    "compiler/support": [MLIR, TORCH, r"ir/", r"passes/", r"runtime/", r"tools/", r"compiler/(?!support/)"],
    "compiler/import": [MLIR, r"ir/", r"passes/", r"tools/", r"compiler/driver/"],
    "compiler/capture": [MLIR, r"ir/", r"passes/", r"tools/", r"compiler/(driver|planner|export)/"],
    # plan_from_ir reads the dialect and the alias analysis; nothing else of MLIR comes near the archive writer.
    "compiler/export": [MLIR, r"ir/(?!Memscale\.h$)", r"passes/(?!analysis/Storages\.h$)", r"tools/", r"compiler/driver/"],
    "compiler/report": [TORCH, r"tools/", r"compiler/driver/"],
    "compiler/driver": [r"tools/", TORCH],
    "runtime": [MLIR, r"ir/", r"passes/", r"compiler/", r"tools/"],
}
# Headers that both sides of a border include: no torch and no MLIR in them.
PLAIN_HEADERS = [
    "compiler/capture/graph.h", "compiler/capture/capture.h", "compiler/import/model.h", "compiler/export/archive.h",
    "compiler/planner/problem.h", "compiler/planner/plan.h",
]


def includes(path: Path) -> list[tuple[int, str]]:
    """(line, included path) of a source file."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            found.append((number, match[1]))
    return found


def sources(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix in {".h", ".cpp", ".hpp", ".cc", ".cu", ".cuh", ".td"} and p.is_file())


def violations(root: Path, folder: str, patterns: list[str]) -> list[str]:
    """file:line of every include in `folder` that matches one of `patterns`."""
    return [
        f"{path.relative_to(root)}:{line} includes {name}"
        for path in sources(root / folder)
        for line, name in includes(path)
        if any(re.match(pattern, name) for pattern in patterns)
    ]


@pytest.mark.parametrize("folder", sorted(FORBIDDEN))
def test_no_forbidden_include(folder: str) -> None:
    assert (ROOT / folder).is_dir()
    assert violations(ROOT, folder, FORBIDDEN[folder]) == []


@pytest.mark.parametrize("header", PLAIN_HEADERS)
def test_border_headers_are_plain(header: str) -> None:
    bad = [f"{header}:{line} includes {name}" for line, name in includes(ROOT / header) if re.match(f"{MLIR}|{TORCH}", name)]
    assert bad == []


def test_a_violation_is_found(tmp_path: Path) -> None:
    (tmp_path / "compiler/planner").mkdir(parents=True)
    (tmp_path / "compiler/planner/bad.cpp").write_text('#include <vector>\n#  include <torch/torch.h>\n#include "ir/Ops.h"\n')
    found = violations(tmp_path, "compiler/planner", FORBIDDEN["compiler/planner"])
    assert found == ["compiler/planner/bad.cpp:2 includes torch/torch.h", "compiler/planner/bad.cpp:3 includes ir/Ops.h"]
