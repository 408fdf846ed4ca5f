// Unused pure calls go, chains of them too; unused draws and writes stay.
// RUN: memscale-opt %s --memscale-eliminate-dead-calls | FileCheck %s

!t = !memscale.tensor<f32[4]>
// CHECK-LABEL: @step
memscale.step @step captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>,
    %b: !t #memscale.argument<role = buffer, name = "b", bytes = 16, storage = 1>) {
  // CHECK-NOT: aten::exp
  // CHECK-NOT: aten::view
  %0 = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  %1 = memscale.call 1 "aten::view"(%0, array<i64: 4>) alias [operand(0)] : (!t) -> !t
  // CHECK: memscale.call 2 "aten::rand_like"
  %2 = memscale.call 2 "aten::rand_like"(%x) alias [fresh(16)] rng : (!t) -> !t
  // CHECK: memscale.call 3 "aten::copy_"
  %3 = memscale.call 3 "aten::copy_"(%b, %x) alias [operand(0)] mutates [0] : (!t, !t) -> !t
  // CHECK: memscale.call 4 "aten::relu"
  %4 = memscale.call 4 "aten::relu"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border outputs(%4 : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
