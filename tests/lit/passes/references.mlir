// RUN: memscale-opt %s --memscale-keep-reference | FileCheck %s --check-prefix=KEEP
// RUN: memscale-opt %s --memscale-keep-reference --memscale-drop-reference | FileCheck %s --check-prefix=DROP
// No pass touches a reference.
// RUN: memscale-opt %s --memscale-keep-reference --memscale-eliminate-dead-calls | FileCheck %s --check-prefix=DEAD

// KEEP: memscale.step @step captured
// KEEP: memscale.step @step.reference captured
// KEEP: attributes {reference}
// DROP: memscale.step @step captured
// DROP-NOT: reference
// DEAD: memscale.step @step captured
// DEAD-NOT: aten::exp
// DEAD: memscale.step @step.reference captured
// DEAD: aten::exp
!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
