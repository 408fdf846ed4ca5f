// RUN: memscale-opt %s --split-input-file --memscale-print-peak -o /dev/null 2>&1 | FileCheck %s
// RUN: memscale-opt %s --split-input-file --memscale-print-peak=rounding-bytes=512 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ROUND

// x is 64 bytes. exp adds 64; its view adds nothing and holds it; at mul exp (through the view), relu and mul are live: 64 + 3 * 64 = 256.
// The output belongs to the caller behind the border: 64 + 64 there.
// CHECK: remark: peak 256 bytes at call 3 aten::mul.Tensor, of which 64 are arguments; live: 64 by call 0 aten::exp, 64 by call 2 aten::relu, 64 by call 3 aten::mul.Tensor
// ROUND: remark: peak 2048 bytes at call 3 aten::mul.Tensor, of which 512 are arguments
!t = !memscale.tensor<f32[16]>
!v = !memscale.tensor<f32[4x4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) {
  %0 = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  %1 = memscale.call 1 "aten::view"(%0, array<i64: 4, 4>) alias [operand(0)] : (!t) -> !v
  %2 = memscale.call 2 "aten::relu"(%1) alias [fresh(64)] : (!v) -> !v
  %3 = memscale.call 3 "aten::mul.Tensor"(%1, %2) alias [fresh(64)] : (!v, !v) -> !v
  memscale.border outputs(%3 : !v) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

// No kernel: the peak is the arguments.
// CHECK: remark: peak 64 bytes, of which 64 are arguments
!t = !memscale.tensor<f32[16]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) {
  memscale.border outputs(%x : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

// Two outputs stay with the caller although nothing reads them any more: 64 + 64 + 64, then two more in backward, of which the first
// dies: the peak is at call 3 with 64 + 4 * 64 = 320.
// CHECK: remark: peak 320 bytes at call 3 aten::cos
!t = !memscale.tensor<f32[16]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = tangent, name = "x", bytes = 64, storage = 0>) {
  %0 = memscale.call 0 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  %1 = memscale.call 1 "aten::exp"(%x) alias [fresh(64)] : (!t) -> !t
  memscale.border outputs(%0, %1 : !t, !t) {requires_grad = array<i1: true, false>, tangents = array<i32: 0, -1>, writeback_arguments = array<i32>}
  %2 = memscale.call 2 "aten::sin"(%x) alias [fresh(64)] backward : (!t) -> !t
  %3 = memscale.call 3 "aten::cos"(%2) alias [fresh(64)] backward : (!t) -> !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
