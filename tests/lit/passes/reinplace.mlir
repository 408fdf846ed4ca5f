// Underscore forms write self, out forms take the operand once more; a call that has no such form is an error.
// RUN: memscale-opt %s --split-input-file --memscale-reinplace --verify-diagnostics | FileCheck %s

!t = !memscale.tensor<f32[4]>
// CHECK-LABEL: @step
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>,
    %g: !t #memscale.argument<role = tangent, name = "out", bytes = 16, storage = 1>) {
  // CHECK: %[[A:.*]] = memscale.call 0 "aten::exp"(%{{.*}}) alias [fresh(16)] :
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  // CHECK: %[[B:.*]] = memscale.call 1 "aten::add_.Tensor"(%[[A]], %{{.*}}, 1) alias [operand(0)] mutates [0]
  %b = memscale.call 1 "aten::add.Tensor"(%a, %x, 1) alias [fresh(16)] {takes_over = 0 : i32} : (!t, !t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: true>, tangents = array<i32: 1>, writeback_arguments = array<i32>}
  // CHECK: %[[C:.*]] = memscale.call 2 "aten::sin"
  %c = memscale.call 2 "aten::sin"(%g) alias [fresh(16)] backward : (!t) -> !t
  // CHECK: memscale.call 3 "aten::threshold_backward.grad_input"(%[[C]], %{{.*}}, 0, %[[C]]) alias [operand(2)] mutates [2] backward {takes_over = 2 : i32}
  %d = memscale.call 3 "aten::threshold_backward"(%c, %x, 0) alias [fresh(16)] backward {takes_over = 0 : i32} : (!t, !t) -> !t
  memscale.return gradients(%d : !t) {arguments = array<i32: 0>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4x4]>
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  // expected-error @+1 {{should take over operand #0, but aten::mm has no in-place form for that}}
  %b = memscale.call 1 "aten::mm"(%a, %x) alias [fresh(64)] {takes_over = 0 : i32} : (!t, !t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
