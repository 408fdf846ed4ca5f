// The schedule's order: exp runs again before its reader in backward, its view is made anew beside it; the random call gets a slot.
// RUN: memscale-opt %s --split-input-file --memscale-apply-plan --verify-diagnostics | FileCheck %s

!t = !memscale.tensor<f32[16]>
!v = !memscale.tensor<f32[4x4]>
// CHECK-LABEL: @step rewritten
// CHECK-NOT: schedule
memscale.step @step planned for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0, requires_grad = true>,
    %g: !v #memscale.argument<role = tangent, name = "out", bytes = 64, storage = 1>)
    attributes {schedule = array<i32: 0, 1, 3, 0, 4, 1, 5>, schedule_inplace = array<i32: -1, -1, 0, -1, -1, -1, -1>} {
  // CHECK: %[[A:.*]] = memscale.call 0 "aten::exp"
  // CHECK-NEXT: %[[R:.*]] = memscale.call 1 "aten::rand_like"(%{{.*}}) alias [fresh(64)] rng(0)
  // CHECK-NEXT: %[[V:.*]] = memscale.call 2 "aten::view"(%[[A]]
  // CHECK-NEXT: %[[B:.*]] = memscale.call 3 "aten::mul.Tensor"(%[[V]], %[[R]]) alias [fresh(64)] {takes_over = 0 : i32}
  // CHECK-NEXT: memscale.border outputs(%[[B]]
  // CHECK-NEXT: %[[A2:.*]] = memscale.recompute 0 "aten::exp"
  // CHECK-NEXT: %[[V2:.*]] = memscale.recompute 2 "aten::view"(%[[A2]]
  // CHECK-NEXT: %[[C:.*]] = memscale.call 4 "aten::mul.Tensor"(%{{.*}}, %[[V2]])
  // CHECK-NEXT: %[[R2:.*]] = memscale.recompute 1 "aten::rand_like"(%{{.*}}) alias [fresh(64)] rng(0)
  // CHECK-NEXT: %[[D:.*]] = memscale.call 5 "aten::mul.Tensor"(%[[C]], %[[R2]])
  // CHECK-NEXT: memscale.return gradients(%[[D]]
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  %r = memscale.call 1 "aten::rand_like"(%x) alias [fresh(64)] rng : (!t) -> !v
  %v = memscale.call 2 "aten::view"(%a, array<i64: 4, 4>) alias [operand(0)] : (!t) -> !v
  %b = memscale.call 3 "aten::mul.Tensor"(%v, %r) alias [fresh(64)] : (!v, !v) -> !v
  memscale.border outputs(%b : !v) {requires_grad = array<i1: true>, tangents = array<i32: 1>, writeback_arguments = array<i32>}
  %c = memscale.call 4 "aten::mul.Tensor"(%g, %v) alias [fresh(64)] backward : (!v, !v) -> !v
  %d = memscale.call 5 "aten::mul.Tensor"(%c, %r) alias [fresh(64)] backward : (!v, !v) -> !v
  memscale.return gradients(%d : !v) {arguments = array<i32: 0>, undefined = array<i32>}
}

// -----

// An order that reads before it writes.
!t = !memscale.tensor<f32[16]>
memscale.step @step planned for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>)
    attributes {schedule = array<i32: 1, 0>, schedule_inplace = array<i32: -1, -1>} {
  // expected-error @+1 {{has no live result where the schedule reads it}}
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  %b = memscale.call 1 "aten::sin"(%a) alias [fresh(64)] : (!t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[16]>
memscale.step @step planned for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>)
    attributes {schedule = array<i32: 0>, schedule_inplace = array<i32: -1>} {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  // expected-error @+1 {{is missing from the schedule}}
  %b = memscale.call 1 "aten::sin"(%a) alias [fresh(64)] : (!t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
