// The verifiers catch every damage, wherever it is done; the kinds that this step has places for are named.
// RUN: memscale-opt %s "-pass-pipeline=builtin.module(memscale-prepare,memscale.step(memscale-plan-recompute{minimize=true},memscale-apply-plan,memscale-reinplace,memscale-insert-frees),memscale-test-mutations)" -o /dev/null 2>&1 | FileCheck %s
// RUN: memscale-opt %s "-pass-pipeline=builtin.module(memscale-prepare,memscale.step(memscale-plan-recompute,memscale-apply-plan,memscale-reinplace,memscale-insert-frees),memscale-test-mutations)" -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALL

// CHECK: remark: swap-operand: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: stale-operand: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: free-early: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: drop-free: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: free-twice: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: drop-replay: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: replay-another-slot: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: drop-save: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: swap-draws: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: repeat-effect: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: drop-effect: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: change-constant: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: swap-gradients: [[N:[1-9][0-9]*]] of [[N]] caught
// CHECK: remark: change-number: [[N:[1-9][0-9]*]] of [[N]] caught
// ALL: remark: swap-operand: [[N:[1-9][0-9]*]] of [[N]] caught
// ALL: remark: overwrite-live: [[N:[1-9][0-9]*]] of [[N]] caught
// ALL: remark: change-number: 0 of 0 caught
!t = !memscale.tensor<f32[16x16]>
!s = !memscale.tensor<f32[16x16], strides [1, 16]>
!m = !memscale.tensor<bool[16x16]>
!l = !memscale.tensor<f32[]>
!e = !memscale.tensor<f32[16x16], strides [0, 0]>
!c = !memscale.tensor<f32[16]>
memscale.step @step captured for "cpu"(
    %w0: !t #memscale.argument<role = parameter, name = "h.0.weight", bytes = 1024, storage = 0, requires_grad = true>,
    %w1: !t #memscale.argument<role = parameter, name = "h.1.weight", bytes = 1024, storage = 1, requires_grad = true>,
    %w2: !t #memscale.argument<role = parameter, name = "h.2.weight", bytes = 1024, storage = 2, requires_grad = true>,
    %x: !t #memscale.argument<role = input, name = "x", bytes = 1024, storage = 3>,
    %rm: !c #memscale.argument<role = buffer, name = "bn.running_mean", bytes = 64, storage = 4>,
    %g: !l #memscale.argument<role = tangent, name = "loss", bytes = 4, storage = 5>) {
  %n:2 = memscale.call 0 "aten::native_norm"(%x, %rm) alias [fresh(1024), fresh(64)] mutates [1] : (!t, !c) -> (!t, !c)
  %u1 = memscale.call 1 "aten::rand_like"(%x, 6) alias [fresh(1024)] rng : (!t) -> !t
  %u2 = memscale.call 2 "aten::rand_like"(%x, 6) alias [fresh(1024)] rng : (!t) -> !t
  %wt0 = memscale.call 3 "aten::t"(%w0) alias [operand(0)] : (!t) -> !s loc("h.0"("net.py":2:0))
  %h0 = memscale.call 4 "aten::mm"(%n#0, %wt0) alias [fresh(1024)] : (!t, !s) -> !t loc("h.0"("net.py":3:0))
  %r0 = memscale.call 5 "aten::gelu"(%h0, "none") alias [fresh(1024)] : (!t) -> !t loc("h.0"("net.py":4:0))
  %d0:2 = memscale.call 6 "aten::native_dropout"(%r0, 0.5, true) alias [fresh(1024), fresh(256)] rng : (!t) -> (!t, !m) loc("h.0"("net.py":5:0))
  %wt1 = memscale.call 7 "aten::t"(%w1) alias [operand(0)] : (!t) -> !s loc("h.1"("net.py":6:0))
  %h1 = memscale.call 8 "aten::mm"(%d0#0, %wt1) alias [fresh(1024)] : (!t, !s) -> !t loc("h.1"("net.py":7:0))
  %r1 = memscale.call 9 "aten::gelu"(%h1, "none") alias [fresh(1024)] : (!t) -> !t loc("h.1"("net.py":8:0))
  %d1:2 = memscale.call 10 "aten::native_dropout"(%r1, 0.5, true) alias [fresh(1024), fresh(256)] rng : (!t) -> (!t, !m) loc("h.1"("net.py":9:0))
  %wt2 = memscale.call 11 "aten::t"(%w2) alias [operand(0)] : (!t) -> !s loc("h.2"("net.py":10:0))
  %h2 = memscale.call 12 "aten::mm"(%d1#0, %wt2) alias [fresh(1024)] : (!t, !s) -> !t loc("h.2"("net.py":11:0))
  %r2 = memscale.call 13 "aten::gelu"(%h2, "none") alias [fresh(1024)] : (!t) -> !t loc("h.2"("net.py":12:0))
  %d2:2 = memscale.call 14 "aten::native_dropout"(%r2, 0.5, true) alias [fresh(1024), fresh(256)] rng : (!t) -> (!t, !m) loc("h.2"("net.py":13:0))
  %loss = memscale.call 15 "aten::sum"(%d2#0, none) alias [fresh(4)] : (!t) -> !l
  memscale.border outputs(%loss : !l) {requires_grad = array<i1: true>, tangents = array<i32: 5>, writeback_arguments = array<i32>}
  %e = memscale.call 16 "aten::expand"(%g, array<i64: 16, 16>, false) alias [operand(0)] backward : (!l) -> !e
  %gd2 = memscale.call 17 "aten::native_dropout_backward"(%e, %d2#1, 2.0) alias [fresh(1024)] backward : (!e, !m) -> !t loc("h.2"("net.py":16:0))
  %gr2 = memscale.call 18 "aten::gelu_backward"(%gd2, %h2, "none") alias [fresh(1024)] backward : (!t, !t) -> !t loc("h.2"("net.py":17:0))
  %gt2 = memscale.call 19 "aten::t"(%gr2) alias [operand(0)] backward : (!t) -> !s loc("h.2"("net.py":18:0))
  %gw2 = memscale.call 20 "aten::mm"(%gt2, %d1#0) alias [fresh(1024)] backward : (!s, !t) -> !t loc("h.2"("net.py":19:0))
  %gx2 = memscale.call 21 "aten::mm"(%gr2, %w2) alias [fresh(1024)] backward : (!t, !t) -> !t loc("h.2"("net.py":20:0))
  %gd1 = memscale.call 22 "aten::native_dropout_backward"(%gx2, %d1#1, 2.0) alias [fresh(1024)] backward : (!t, !m) -> !t loc("h.1"("net.py":21:0))
  %gr1 = memscale.call 23 "aten::gelu_backward"(%gd1, %h1, "none") alias [fresh(1024)] backward : (!t, !t) -> !t loc("h.1"("net.py":22:0))
  %gt1 = memscale.call 24 "aten::t"(%gr1) alias [operand(0)] backward : (!t) -> !s loc("h.1"("net.py":23:0))
  %gw1 = memscale.call 25 "aten::mm"(%gt1, %d0#0) alias [fresh(1024)] backward : (!s, !t) -> !t loc("h.1"("net.py":24:0))
  %gx1 = memscale.call 26 "aten::mm"(%gr1, %w1) alias [fresh(1024)] backward : (!t, !t) -> !t loc("h.1"("net.py":25:0))
  %gd0 = memscale.call 27 "aten::native_dropout_backward"(%gx1, %d0#1, 2.0) alias [fresh(1024)] backward : (!t, !m) -> !t loc("h.0"("net.py":26:0))
  %gr0 = memscale.call 28 "aten::gelu_backward"(%gd0, %h0, "none") alias [fresh(1024)] backward : (!t, !t) -> !t loc("h.0"("net.py":27:0))
  %gt0 = memscale.call 29 "aten::t"(%gr0) alias [operand(0)] backward : (!t) -> !s loc("h.0"("net.py":28:0))
  %gw0 = memscale.call 30 "aten::mm"(%gt0, %n#0) alias [fresh(1024)] backward : (!s, !t) -> !t loc("h.0"("net.py":29:0))
  memscale.return gradients(%gw2, %gw1, %gw0 : !t, !t, !t) {arguments = array<i32: 2, 1, 0>, undefined = array<i32>}
}
