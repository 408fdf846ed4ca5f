"""Writes structure-only archives of the device check's models. usage: export_models.py FOLDER"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "python")]

import memscale
from gpu_models import DTYPES, MODELS

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
warnings.simplefilter("ignore")
for name, (build, inputs) in MODELS.items():
    for label, dtype in DTYPES.items():
        memscale.export(build().to(dtype).train(), inputs(dtype, "cpu"), folder / f"{name}-{label}.pt2", structure_only=True)
        print(f"{folder}/{name}-{label}.pt2")
