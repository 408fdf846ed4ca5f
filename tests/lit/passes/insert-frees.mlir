// Names die right behind their last use; an unused result behind its call; gradients pass to the caller.
// RUN: memscale-opt %s --memscale-insert-frees --memscale-verify-memory | FileCheck %s

!t = !memscale.tensor<f32[4]>
// CHECK-LABEL: @step scheduled
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0, requires_grad = true>,
    %g: !t #memscale.argument<role = tangent, name = "out", bytes = 16, storage = 1>) {
  // CHECK: %[[A:.*]] = memscale.call 0
  // CHECK-NEXT: %[[V:.*]] = memscale.call 1
  // CHECK-NEXT: %[[U:.*]]:2 = memscale.call 2
  // CHECK-NEXT: memscale.free %[[V]], %[[U]]#1 :
  // CHECK-NEXT: memscale.border
  // CHECK-NEXT: memscale.free %[[U]]#0 :
  // CHECK-NEXT: %[[G:.*]] = memscale.call 3
  // CHECK-NEXT: memscale.free %[[A]] :
  // CHECK-NEXT: memscale.return gradients(%[[G]]
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  %v = memscale.call 1 "aten::view"(%a, array<i64: 4>) alias [operand(0)] : (!t) -> !t
  %u:2 = memscale.call 2 "aten::two"(%v) alias [fresh(16), fresh(16)] : (!t) -> (!t, !t)
  memscale.border outputs(%u#0 : !t) {requires_grad = array<i1: true>, tangents = array<i32: 1>, writeback_arguments = array<i32>}
  %d = memscale.call 3 "aten::mul.Tensor"(%g, %a) alias [fresh(16)] backward : (!t, !t) -> !t
  memscale.return gradients(%d : !t) {arguments = array<i32: 0>, undefined = array<i32>}
}
