// The text form holds everything: printed and parsed again it prints the same.
// RUN: memscale-opt %s | memscale-opt | FileCheck %s

!t = !memscale.tensor<f32[4x4]>

// CHECK-LABEL: memscale.step @step captured for "cuda"(
// CHECK-NEXT: %[[W:.*]]: !memscale.tensor<bf16[4x4]> #memscale.argument<role = parameter, name = "fc.weight", bytes = 32, storage = 0, requires_grad = true, aliases = ["tied.weight"]>,
// CHECK-NEXT: %[[B:.*]]: !memscale.tensor<f32[4x4], strides [1, 4]> #memscale.argument<role = buffer, name = "mask", bytes = 128, storage = 1, persistent = false>,
// CHECK-NEXT: %[[V:.*]]: !memscale.tensor<f32[4x4], offset 16> #memscale.argument<role = input, name = "view", bytes = 128, storage = 1>,
// CHECK-NEXT: %[[C:.*]]: !memscale.tensor<i64[], host> #memscale.argument<role = constant, name = "c", bytes = 8, storage = 3, wrapped_number = true, data = "\01\00\00\00\00\00\00\00">)
// CHECK-SAME: attributes {guards = {threads = "2"}, input_structure = "[]"}
memscale.step @step captured for "cuda"(
    %w: !memscale.tensor<bf16[4x4]> #memscale.argument<role = parameter, name = "fc.weight", bytes = 32, storage = 0, requires_grad = true, aliases = ["tied.weight"]>,
    %b: !memscale.tensor<f32[4x4], strides [1, 4]> #memscale.argument<role = buffer, name = "mask", bytes = 128, storage = 1, persistent = false>,
    %v: !memscale.tensor<f32[4x4], offset 16> #memscale.argument<role = input, name = "view", bytes = 128, storage = 1>,
    %c: !memscale.tensor<i64[], host> #memscale.argument<role = constant, name = "c", bytes = 8, storage = 3, wrapped_number = true, data = "\01\00\00\00\00\00\00\00">)
    attributes {input_structure = "[]", guards = {threads = "2"}} {
  // Every kind of schema argument.
  // CHECK: memscale.call 0 "aten::f.x"(%[[B]], none, [%[[V]], none], [], 3, -5.000000e-01, 0x7FF0000000000000 : f64, true, "none", #memscale.complex<1.000000e+00 : f64, 2.000000e+00 : f64>, #memscale.device<host>, array<i64: 1, 2>, array<f64>, array<i1: true, false>) alias [fresh(64)] :
  %0 = memscale.call 0 "aten::f.x"(%b, none, [%v, none], [], 3, -0.5, 0x7FF0000000000000 : f64, true, "none", #memscale.complex<1.0 : f64, 2.0 : f64>, #memscale.device<host>, array<i64: 1, 2>, array<f64>, array<i1: true, false>) alias [fresh(64)] : (!memscale.tensor<f32[4x4], strides [1, 4]>, !memscale.tensor<f32[4x4], offset 16>) -> !t
  // Lists, undefined and dropped results, sharing.
  // CHECK: memscale.call 1 "aten::g"(%{{.*}}) returns [#memscale.result<list, [0, -1, 1]>, #memscale.result<tensor, [-1]>, #memscale.result<other>] alias [fresh(64), result(0)] mutates [0] rng :
  %1:2 = memscale.call 1 "aten::g"(%0) returns [#memscale.result<list, [0, -1, 1]>, #memscale.result<tensor, [-1]>, #memscale.result<other>] alias [fresh(64), result(0)] mutates [0] rng : (!t) -> (!t, !memscale.tensor<f32[0x4]>)
  // CHECK: memscale.border outputs(%{{.*}} : !memscale.tensor<f32[4x4]>) writebacks(%{{.*}} : !memscale.tensor<f32[4x4]>)
  memscale.border outputs(%1#0 : !t) writebacks(%1#0 : !t) {requires_grad = array<i1: false>, tangents = array<i32: -1>, writeback_arguments = array<i32: 1>}
  // CHECK: memscale.return {arguments = array<i32>, undefined = array<i32: 0>}
  memscale.return {arguments = array<i32>, undefined = array<i32: 0>}
}

// CHECK-LABEL: memscale.step @later scheduled
memscale.step @later scheduled for "cpu"(%x: !t #memscale.argument<role = input, name = "x", bytes = 64, storage = 0>) {
  // CHECK: memscale.call 0 "aten::rand_like"(%{{.*}}) alias [fresh(64)] rng(2) {block_number = 1 : i32, workspace_bytes = 8 : i64} :
  %0 = memscale.call 0 "aten::rand_like"(%x) alias [fresh(64)] rng(2) {block_number = 1 : i32, workspace_bytes = 8 : i64} : (!t) -> !t
  memscale.border {requires_grad = array<i1>, tangents = array<i32>, writeback_arguments = array<i32>}
  // CHECK: memscale.recompute 0 "aten::rand_like"(%{{.*}}) alias [fresh(64)] rng(2) {decision = #memscale.decision<recompute, "why">} :
  %1 = memscale.recompute 0 "aten::rand_like"(%x) alias [fresh(64)] rng(2) {decision = #memscale.decision<recompute, "why">} : (!t) -> !t
  // CHECK: memscale.free %{{.*}}, %{{.*}} : !memscale.tensor<f32[4x4]>, !memscale.tensor<f32[4x4]>
  memscale.free %0, %1 : !t, !t
  memscale.return {arguments = array<i32>, undefined = array<i32>}
}
