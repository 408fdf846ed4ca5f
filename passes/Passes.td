// The passes of memscale and their manual: docs/passes.md is generated from this file.
#ifndef MEMSCALE_PASSES_TD
#define MEMSCALE_PASSES_TD

include "mlir/Pass/PassBase.td"

class Memscale_StepPass<string arg> : Pass<arg, "::memscale::ir::StepOp"> {
  let dependentDialects = ["::memscale::ir::MemscaleDialect"];
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

def KeepReference : Pass<"memscale-keep-reference", "::mlir::ModuleOp"> {
  let summary = "Copy the captured step, so that verification has something to compare with";
  let description = [{
    Clones each captured step `@name` to `@name.reference`. No pass changes a reference. Without one `memscale-verify-values` refuses to run.

    Before: `memscale.step @step captured ...`. After: the same, and `memscale.step @step.reference captured ...`.
  }];
}

def DropReference : Pass<"memscale-drop-reference", "::mlir::ModuleOp"> {
  let summary = "Erase the copies that memscale-keep-reference made";
  let description = [{ Runs last, after verification. }];
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

def PrintPeak : Memscale_StepPass<"memscale-print-peak"> {
  let summary = "Print the peak of a step and what is live there";
  let description = [{
    A remark at the operation of the peak: bytes of the arguments, bytes of the peak, and the storages that are live there, largest first.
    Workspaces of kernels are not counted. In the phase `scheduled` memory is released by `memscale.free`, before that at the last use.

    ```
    remark: peak 448 bytes at call 3 aten::mm, of which 192 are arguments; live: 128 by call 0 aten::relu, 128 by call 3 aten::mm
    ```
  }];
  let options = [
    Option<"roundingBytes", "rounding-bytes", "int64_t", "1", "the allocator's block size, in bytes">
  ];
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

def EliminateDeadCalls : Memscale_StepPass<"memscale-eliminate-dead-calls"> {
  let summary = "Erase calls that compute nothing anybody uses";
  let description = [{
    Erases, from the end backwards, calls without effects whose results are unused. Kept although unused: calls that write memory, and
    calls that draw random numbers. Eager draws them too, and the numbers of later calls depend on it.

    ```mlir
    %1 = memscale.call 0 "aten::exp"(%0) alias [fresh(64)] : ...       // unused: erased
    %2 = memscale.call 1 "aten::rand_like"(%0, ...) alias [fresh(64)] rng : ...  // unused: stays
    ```
  }];
  let statistics = [Statistic<"numErased", "erased", "Calls erased">];
}

def AssignBlocks : Memscale_StepPass<"memscale-assign-blocks"> {
  let summary = "Number the repeated blocks that calls belong to";
  let description = [{
    Reads module paths: everything up to the first component that is a number names a block (`transformer.h.3.attn` lies in `transformer.h.3`).
    Blocks are numbered in order of their first call. Backward calls carry the location of their forward call, so they get its block. Calls
    outside of any numbered module get none.

    Before: `loc("h.3.attn"("model.py":7:0))`. After: the same call with `{block_number = 3 : i32}`.
  }];
  let statistics = [Statistic<"numBlocks", "blocks", "Blocks found">];
}

//===----------------------------------------------------------------------===//
// Policy: annotates, changes nothing else
//===----------------------------------------------------------------------===//

def PlanRecompute : Memscale_StepPass<"memscale-plan-recompute"> {
  let summary = "Decide which results are kept, recomputed or overwritten in place";
  let description = [{
    Turns the step into a planner::Problem, asks the planner for an order of runs whose peak is within the budget, and writes its answer down:
    `schedule` on the step, `#memscale.decision` on each call whose results cross the border, run again or take memory over. No operation is
    added, moved or erased. Phase: captured to planned.

    A budget that no plan meets is an error at the step. It names the op and the storages that alone exceed the budget.

    ```mlir
    %1 = memscale.call 2 "aten::gelu"(%0, "none") alias [fresh(64)]
       {decision = #memscale.decision<recompute, "64 bytes not held from call 3 to call 8; 1 further run">} : ...
    ```
  }];
  let options = [
    Option<"budgetBytes", "budget-bytes", "int64_t", "0", "peak not to be exceeded, in bytes; 0: no budget, free improvements only">,
    Option<"budgetFraction", "budget-fraction", "double", "0", "budget as a fraction of the save-all peak; 0: none">,
    Option<"minimize", "minimize", "bool", "false", "go to the smallest peak that the planner finds">,
    Option<"staticBytes", "static-bytes", "int64_t", "0", "bytes held all through the step: optimizer state, reserve">,
    Option<"policy", "policy", "std::string", "\"auto\"", "auto, save-all, or the name of one of the planner's policies">,
    Option<"profile", "profile", "std::string", "\"\"", "target profile, a YAML file; empty: the built-in profile of the step's target">
  ];
}

//===----------------------------------------------------------------------===//
// Transforms: obey
//===----------------------------------------------------------------------===//

def ApplyPlan : Memscale_StepPass<"memscale-apply-plan"> {
  let summary = "Put the step into the order of its schedule";
  let description = [{
    The first run of a call becomes `memscale.call`, each later one `memscale.recompute` at the place where the schedule has it; operands read the
    last instance before them. Views cost nothing and are made again beside the instance that they show, when they are first needed. The
    border stands behind the last first run of a forward call. A random call that runs again gets a slot: the call saves the generator's state,
    its recomputations replay it. Phase: planned to rewritten.
  }];
  let statistics = [Statistic<"numRecomputes", "recomputes", "Recomputations inserted">];
}

def Reinplace : Memscale_StepPass<"memscale-reinplace"> {
  let summary = "Turn calls into their in-place form where the plan says so";
  let description = [{
    A call with `takes_over n` writes its result into the memory of operand n: by its trailing-underscore form if the operand is `self`, by its
    `out` form otherwise. The table of forms (passes/analysis/InPlaceForms.cpp) holds elementwise kernels only.

    ```mlir
    // before
    %1 = memscale.call 0 "aten::relu"(%0) alias [fresh(64)] {takes_over = 0 : i32} : ...
    // after
    %1 = memscale.call 0 "aten::relu_"(%0) alias [operand(0)] mutates [0] {takes_over = 0 : i32} : ...
    ```
  }];
  let statistics = [Statistic<"numInPlace", "in-place", "Calls made in-place">];
}

def InsertFrees : Memscale_StepPass<"memscale-insert-frees"> {
  let summary = "Free every name right after its last use";
  let description = [{
    One `memscale.free` behind each operation that is the last to use something. Arguments are never freed, gradients pass to the caller at the
    return. Phase: rewritten to scheduled.
  }];
  let statistics = [Statistic<"numFrees", "frees", "Names freed">];
}

//===----------------------------------------------------------------------===//
// Verification: shares no code with the transforms
//===----------------------------------------------------------------------===//

def VerifyPhase : Memscale_StepPass<"memscale-verify-phase"> {
  let summary = "Check that a step is in a phase and holds what the phase promises";
  let description = [{
    `captured`: every call once, numbered in order. `planned`: the schedule runs every call that is no view, and nothing else. `rewritten`: each
    recomputation stands behind its call and reads a slot that the call saved. `scheduled`: no `takes_over` is left unobeyed. References are skipped.
  }];
  let options = [Option<"phase", "phase", "std::string", "\"\"", "captured, planned, rewritten or scheduled">];
}

def VerifyValues : Pass<"memscale-verify-values", "::mlir::ModuleOp"> {
  let summary = "Prove that a rewritten step computes what the captured step computes";
  let description = [{
    Numbers the contents of memory through both steps: every operand of every kernel must have the contents and the layout that the captured call read,
    through recomputation, in-place writes and views. Every effect, a random draw or a write, happens once and in order; a recomputed draw replays the
    state that its own first run saved. Outputs, write-backs and gradients are those of the captured step and share memory where those do.

    Needs `@name.reference`. A fault is an error at the call, with the operand, what was expected and what was found.
  }];
}

def VerifyMemory : Memscale_StepPass<"memscale-verify-memory"> {
  let summary = "Prove that a scheduled step neither reads freed memory nor leaks";
  let description = [{
    No name is read or freed after its free, or after a kernel took its memory over; every name is freed once, save for gradients, which the return
    hands over; nothing takes over the memory of an argument, an output or a gradient.
  }];
}

#endif // MEMSCALE_PASSES_TD
