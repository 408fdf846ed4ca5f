// Hand-made faults; memscale-test-mutations (mutations.mlir) makes them by the hundred.
// RUN: memscale-opt %s --split-input-file --verify-diagnostics --memscale-verify-values

!t = !memscale.tensor<f32[4]>
// expected-error @+1 {{has no reference @step.reference; run memscale-keep-reference on the captured step first}}
memscale.step @step rewritten for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}

// -----

// A batch norm's statistics would be updated twice.
!t = !memscale.tensor<f32[4]>
module {
memscale.step @step.reference captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>,
    %m: !t #memscale.argument<role = buffer, name = "running_mean", bytes = 16, storage = 1>) attributes {reference} {
  %a = memscale.call 0 "aten::norm"(%x, %m) alias [fresh(16)] mutates [1] : (!t, !t) -> !t
  memscale.border outputs(%a : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>,
    %m: !t #memscale.argument<role = buffer, name = "running_mean", bytes = 16, storage = 1>) {
  %a = memscale.call 0 "aten::norm"(%x, %m) alias [fresh(16)] mutates [1] : (!t, !t) -> !t
  memscale.border outputs(%a : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  // expected-error @+1 {{repeats a write}}
  %b = memscale.recompute 0 "aten::norm"(%x, %m) alias [fresh(16)] mutates [1] : (!t, !t) -> !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
}

// -----

// The operand of exp was overwritten before exp ran again.
!t = !memscale.tensor<f32[4]>
module {
memscale.step @step.reference captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) attributes {reference} {
  %a = memscale.call 0 "aten::sin"(%x) alias [fresh(16)] : (!t) -> !t
  %b = memscale.call 1 "aten::exp"(%a) alias [fresh(16)] : (!t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  %a = memscale.call 0 "aten::sin"(%x) alias [fresh(16)] : (!t) -> !t
  %b = memscale.call 1 "aten::exp_"(%a) alias [operand(0)] mutates [0] {takes_over = 0 : i32} : (!t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  // expected-error @+1 {{operand #0 holds result #0 of call 1, the captured step reads result #0 of call 0}}
  %c = memscale.recompute 1 "aten::exp"(%a) alias [fresh(16)] : (!t) -> !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
}

// -----

// mm is not elementwise: no in-place form of it is accepted.
!t = !memscale.tensor<f32[4x4]>
module {
memscale.step @step.reference captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) attributes {reference} {
  %a = memscale.call 0 "aten::sin"(%x) alias [fresh(64)] : (!t) -> !t
  %b = memscale.call 1 "aten::mm"(%a, %x) alias [fresh(64)] : (!t, !t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) {
  %a = memscale.call 0 "aten::sin"(%x) alias [fresh(64)] : (!t) -> !t
  // expected-error @+1 {{neither the captured aten::mm nor an in-place form of it}}
  %b = memscale.call 1 "aten::mm.out"(%a, %x, %a) alias [operand(2)] mutates [2] {takes_over = 2 : i32} : (!t, !t, !t) -> !t
  memscale.border outputs(%b : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
}

// -----

// A lost draw would shift every later mask.
!t = !memscale.tensor<f32[4]>
module {
memscale.step @step.reference captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) attributes {reference} {
  %a = memscale.call 0 "aten::rand_like"(%x) alias [fresh(16)] rng : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
// expected-error @+1 {{call 0 draws random numbers and is missing}}
memscale.step @step rewritten for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>) {
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
}
