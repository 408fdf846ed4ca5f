// The first number in the module path names the block; backward calls follow their forward location.
// RUN: memscale-opt %s --memscale-assign-blocks | FileCheck %s

!t = !memscale.tensor<f32[4]>
memscale.step @step captured for "cpu"(
    %x: !t #memscale.argument<role = input, name = "x", bytes = 16, storage = 0>,
    %g: !t #memscale.argument<role = tangent, name = "out", bytes = 16, storage = 1>) {
  // CHECK: memscale.call 0 "aten::exp"(%{{.*}}) alias [fresh(16)] :
  %0 = memscale.call 0 "aten::exp"(%x) alias [fresh(16)] : (!t) -> !t loc("embed.norm1"("m.py":1:0))
  // CHECK: memscale.call 1 {{.*}} {block_number = 0 : i32}
  %1 = memscale.call 1 "aten::exp"(%0) alias [fresh(16)] : (!t) -> !t loc("enc.h.0.attn.1"("m.py":2:0))
  // CHECK: memscale.call 2 {{.*}} {block_number = 1 : i32}
  %2 = memscale.call 2 "aten::exp"(%1) alias [fresh(16)] : (!t) -> !t loc("enc.h.1"("m.py":2:0))
  // CHECK: memscale.call 3 {{.*}} {block_number = 2 : i32}
  %3 = memscale.call 3 "aten::exp"(%2) alias [fresh(16)] : (!t) -> !t loc("dec.h.0"("m.py":3:0))
  memscale.border outputs(%3 : !t) {requires_grad = array<i1: true>, tangents = array<i32: 1>, writeback_arguments = array<i32>}
  // CHECK: memscale.call 4 {{.*}} backward {block_number = 2 : i32}
  %4 = memscale.call 4 "aten::mul.Tensor"(%g, %3) alias [fresh(16)] backward : (!t, !t) -> !t loc("dec.h.0"("m.py":3:0))
  // CHECK: memscale.call 5 {{.*}} backward {block_number = 0 : i32}
  %5 = memscale.call 5 "aten::mul.Tensor"(%4, %1) alias [fresh(16)] backward : (!t, !t) -> !t loc("enc.h.0.mlp"("m.py":2:0))
  memscale.return gradients(%5 : !t) {arguments = array<i32: 0>, undefined = array<i32>}
}
