"""lit configuration: memscale-opt and FileCheck on .mlir files, memscalec in .test files."""

import os
import sys

import lit.formats

config.name = "memscale"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.substitutions.append(("%python", sys.executable))
config.test_source_root = config.memscale_lit_dir
config.test_exec_root = config.memscale_exec_dir
config.environment["PATH"] = os.pathsep.join([config.memscale_tools_dir, config.llvm_tools_dir, os.environ["PATH"]])
