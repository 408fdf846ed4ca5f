// RUN: memscale-opt %s --split-input-file --verify-diagnostics --memscale-verify-memory

!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.free %a : !t
  // expected-error @+1 {{reads operand #0 after it was freed}}
  %b = memscale.call 1 "aten::sin"(%a) alias [fresh(16)] : (!t) -> !t
  memscale.free %b : !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

// The memory of a is taken over; a view of it made before shows what is gone.
!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  %v = memscale.call 1 "aten::view"(%a, array<i64: 4>) alias [operand(0)] : (!t) -> !t
  %b = memscale.call 2 "aten::sin_"(%a) alias [operand(0)] mutates [0] {takes_over = 0 : i32} : (!t) -> !t
  // expected-error @+1 {{reads operand #1 after a kernel took its memory over}}
  %c = memscale.call 3 "aten::mul.Tensor"(%b, %v) alias [fresh(16)] : (!t, !t) -> !t
  memscale.free %a, %v, %b, %c : !t, !t, !t, !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{takes over the memory of an argument}}
  %b = memscale.call 0 "aten::sin_"(%x) alias [operand(0)] mutates [0] {takes_over = 0 : i32} : (!t) -> !t
  memscale.free %b : !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border outputs(%a : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  // expected-error @+1 {{takes over the memory of an output}}
  %b = memscale.call 1 "aten::sin_"(%a) alias [operand(0)] mutates [0] backward {takes_over = 0 : i32} : (!t) -> !t
  memscale.free %a, %b : !t, !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{result #0 is never freed}}
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.free %a : !t
  // expected-error @+1 {{frees a tensor a second time}}
  memscale.free %a : !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
