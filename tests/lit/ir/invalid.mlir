// RUN: memscale-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{unknown dtype `f31`; expected f32, bf16, i64, bool, ...}}
module attributes {a = !memscale.tensor<f31[4]>} {}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{result #0 reaches 16 bytes into fresh memory of 8}}
  %0 = memscale.call 0 "aten::relu"(%x) alias [fresh(8)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{result #0 shares memory with operand #1, expected one below #1}}
  %0 = memscale.call 0 "aten::view"(%x) alias [operand(1)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %0 = memscale.call 0 "aten::rand_like"(%x) alias [fresh(16)] rng : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  // expected-error @+1 {{draws random numbers without a slot to replay: gradients would be wrong}}
  %1 = memscale.recompute 0 "aten::rand_like"(%x) alias [fresh(16)] rng : (!t) -> !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  // expected-error @+1 {{is the first run of a forward call behind the border}}
  %0 = memscale.call 0 "aten::relu"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{is a backward call before the border}}
  %0 = memscale.call 0 "aten::relu"(%x) alias [fresh(16)] backward : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %0 = memscale.call 0 "aten::relu"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  // expected-error @+1 {{must not stand in a step of the phase `captured`}}
  memscale.free %0 : !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  // expected-error @+1 {{a gradient names argument #3 of 1}}
  memscale.return gradients(%x : !t) {arguments = array<i32: 3>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
// expected-error @+1 {{argument `c` holds 4 bytes, its type says 16}}
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = constant, name = "c", bytes = 16, storage = 0, data = "abcd">) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
// expected-error @+1 {{expected memscale.border between forward and backward}}
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
