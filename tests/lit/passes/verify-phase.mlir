// RUN: memscale-opt %s --split-input-file --verify-diagnostics --memscale-verify-phase=phase=rewritten

!t = !memscale.tensor<f32[4]>
// expected-error @+1 {{expected the phase `rewritten`, found `captured`}}
memscale.step @step captured for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  // expected-error @+1 {{is call 0 a second time; later runs are memscale.recompute}}
  %b = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

!t = !memscale.tensor<f32[4]>
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  // expected-error @+1 {{recomputes call 0, which has not run before}}
  %a = memscale.recompute 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

// Nothing to say.
!t = !memscale.tensor<f32[4]>
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::rand_like"(%x) alias [fresh(16)] rng(0) : (!t) -> !t
  %b = memscale.recompute 0 "aten::rand_like"(%x) alias [fresh(16)] rng(0) : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
