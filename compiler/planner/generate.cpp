// See generate.h.
#include "compiler/planner/generate.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace memscale::planner {
namespace {

class Builder {
 public:
  int32_t storage(std::string name, int64_t bytes, Role role, bool resident = false, bool keep = false) {
    p.storages.push_back({std::move(name), bytes, role, resident, keep});
    return static_cast<int32_t>(p.storages.size()) - 1;
  }
  Op& op(std::string name, double time_us, std::vector<int32_t> inputs, std::vector<int32_t> outputs) {
    Op o;
    o.name = std::move(name);
    o.time_us = time_us;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    std::sort(outputs.begin(), outputs.end());
    o.inputs = std::move(inputs);
    o.outputs = std::move(outputs);
    o.backward = backward;
    o.block = block;
    p.ops.push_back(std::move(o));
    return p.ops.back();
  }
  int64_t bytes(int32_t s) const { return p.storages[s].bytes; }

  Problem p;
  bool backward = false;
  int32_t block = -1;
};

}  // namespace

Problem generate(const GenerateOptions& options) {
  std::mt19937_64 random(options.seed * 0x9e3779b97f4a7c15ull + 1);
  auto chance = [&](double p) { return static_cast<double>(random() >> 11) * 0x1p-53 < p; };
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Builder b;
  b.p.name = "random-" + std::to_string(options.seed);
  b.p.static_bytes = below(1000);
  const int32_t input = b.storage("input", 1 + below(options.max_bytes), Role::kInput, true);
  struct Twin {
    std::vector<int32_t> inputs, outputs;
    int32_t parameter;
    double time;
  };
  std::vector<Twin> forward;
  std::vector<int32_t> values{input};
  for (int32_t i = 0; i < options.forward_ops; ++i) {
    b.block = options.block_length > 0 ? i / options.block_length : -1;
    const std::string tag = std::to_string(i);
    Twin t;
    const int32_t main_input = values.back();
    t.inputs.push_back(main_input);
    if (chance(options.skip)) t.inputs.push_back(values[below(static_cast<int64_t>(values.size()))]);
    t.parameter = chance(0.4) ? b.storage("w" + tag, 1 + below(options.max_bytes / 4 + 1), Role::kParameter, true) : -1;
    t.time = 1 + static_cast<double>(below(100));
    const bool same_size = chance(options.inplace) && main_input != input;
    t.outputs.push_back(b.storage("x" + tag, same_size ? b.bytes(main_input) : 1 + below(options.max_bytes), Role::kActivation));
    if (chance(options.two_outputs))
      t.outputs.push_back(b.storage("s" + tag, 1 + below(options.max_bytes / 16 + 1), Role::kActivation));
    auto inputs = t.inputs;
    if (t.parameter >= 0) inputs.push_back(t.parameter);
    Op& op = b.op("f" + tag, t.time, inputs, t.outputs);
    if (same_size) op.inplace.push_back({main_input, t.outputs[0]});
    op.workspace_bytes = chance(0.1) ? below(options.max_bytes) : 0;
    op.rng = chance(options.rng);
    if (chance(options.fixed)) {
      if (chance(0.5)) {
        op.recomputable = false;
      } else {
        const int32_t buffer = b.storage("b" + tag, 16, Role::kBuffer, true);
        b.p.ops.back().mutates.push_back(buffer);
        b.p.ops.back().inputs.push_back(buffer);
        std::sort(b.p.ops.back().inputs.begin(), b.p.ops.back().inputs.end());
      }
    }
    values.push_back(t.outputs[0]);
    forward.push_back(std::move(t));
  }
  b.block = -1;
  const int32_t loss = b.storage("loss", 4, Role::kOutput, false, true);
  b.op("loss", 1, {values.back()}, {loss});
  const int32_t tangent = b.storage("tangent", 4, Role::kTangent, true);
  b.p.border = static_cast<int32_t>(b.p.ops.size());
  b.backward = true;
  // One gradient per forward value; a second contribution is added by an op of its own.
  std::vector<int32_t> gradient(b.p.storages.size(), -1);
  auto contribute = [&](int32_t value, int32_t g) {
    if (value == input) return;
    if (gradient[value] < 0) {
      gradient[value] = g;
      return;
    }
    const int32_t sum = b.storage("a" + std::to_string(b.p.ops.size()), b.bytes(value), Role::kActivation);
    Op& op = b.op("add", 1, {gradient[value], g}, {sum});
    op.inplace.push_back({gradient[value], sum});
    gradient[value] = sum;
  };
  const int32_t g0 = b.storage("gloss", b.bytes(values.back()), Role::kActivation);
  b.op("loss_backward", 1, {tangent, values.back()}, {g0});
  contribute(values.back(), g0);
  for (int32_t i = options.forward_ops; i-- > 0;) {
    const Twin& t = forward[i];
    const std::string tag = std::to_string(i);
    if (gradient[t.outputs[0]] < 0) continue;  // no later op reads it
    std::vector<int32_t> inputs{gradient[t.outputs[0]]};
    for (int32_t s : t.inputs)
      if (chance(0.6)) inputs.push_back(s);
    for (int32_t s : t.outputs)
      if (chance(0.5)) inputs.push_back(s);
    std::vector<int32_t> outputs, targets;
    for (int32_t s : t.inputs) {
      if (s == input || std::find(targets.begin(), targets.end(), s) != targets.end()) continue;
      targets.push_back(s);
      outputs.push_back(b.storage("g" + tag + "_" + std::to_string(s), b.bytes(s), Role::kActivation));
    }
    auto all = outputs;
    if (t.parameter >= 0) all.push_back(b.storage("gw" + tag, b.bytes(t.parameter), Role::kGradient, false, true));
    if (all.empty()) continue;
    b.op("b" + tag, 2 * t.time, inputs, all);
    gradient.resize(b.p.storages.size(), -1);
    for (size_t k = 0; k < targets.size(); ++k) contribute(targets[k], outputs[k]);
    gradient.resize(b.p.storages.size(), -1);
  }
  return std::move(b.p);
}

Problem generate_transformer(int32_t layers, int64_t hidden) {
  Builder b;
  b.p.name = "transformer-" + std::to_string(layers);
  auto act = [&](int64_t bytes) { return b.storage("t" + std::to_string(b.p.storages.size()), bytes, Role::kActivation); };
  auto weight = [&](int64_t bytes) {
    return b.storage("w" + std::to_string(b.p.storages.size()), bytes, Role::kParameter, true);
  };
  auto grad = [&](int32_t w) { return b.storage("g" + b.p.storages[w].name, b.bytes(w), Role::kGradient, false, true); };
  const int64_t small = std::max<int64_t>(hidden / 512, 1);
  struct Layer {
    int32_t x, n1, m1, r1, q, k, v, o, lse, p, h, n2, m2, r2, u, act[7], d, mask;
    int32_t wq, wk, wv, wp, wu, wd;
  };
  std::vector<Layer> all;
  int32_t x = b.storage("embedded", hidden, Role::kInput, true);
  const double t = static_cast<double>(hidden) / 1e6;  // of one pass over a hidden-sized tensor
  for (int32_t i = 0; i < layers; ++i) {
    b.block = i;
    Layer l{};
    l.x = x;
    l.n1 = act(hidden), l.m1 = act(small), l.r1 = act(small);
    b.op("native_layer_norm", 2 * t, {x}, {l.n1, l.m1, l.r1});
    l.wq = weight(hidden / 4), l.wk = weight(hidden / 4), l.wv = weight(hidden / 4), l.wp = weight(hidden / 4);
    l.wu = weight(hidden), l.wd = weight(hidden);
    l.q = act(hidden), l.k = act(hidden), l.v = act(hidden);
    b.op("addmm", 8 * t, {l.n1, l.wq}, {l.q});
    b.op("addmm", 8 * t, {l.n1, l.wk}, {l.k});
    b.op("addmm", 8 * t, {l.n1, l.wv}, {l.v});
    l.o = act(hidden), l.lse = act(small);
    b.op("attention", 10 * t, {l.q, l.k, l.v}, {l.o, l.lse}).rng = true;
    l.p = act(hidden);
    b.op("addmm", 8 * t, {l.o, l.wp}, {l.p});
    l.mask = act(hidden / 2);
    const int32_t dropped = act(hidden);
    Op& dropout = b.op("native_dropout", 2 * t, {l.p}, {dropped, l.mask});
    dropout.rng = true;
    l.h = act(hidden);
    b.op("add", t, {x, dropped}, {l.h}).inplace.push_back({dropped, l.h});
    l.n2 = act(hidden), l.m2 = act(small), l.r2 = act(small);
    b.op("native_layer_norm", 2 * t, {l.h}, {l.n2, l.m2, l.r2});
    l.u = act(4 * hidden);
    b.op("addmm", 32 * t, {l.n2, l.wu}, {l.u});
    int32_t chain = l.u;
    for (int k = 0; k < 7; ++k) {  // the tanh GELU, written out
      l.act[k] = act(4 * hidden);
      std::vector<int32_t> in{chain};
      if (k == 2 || k == 6) in.push_back(l.u);
      b.op("pointwise", 8 * t, in, {l.act[k]}).inplace.push_back({chain, l.act[k]});
      chain = l.act[k];
    }
    l.d = act(hidden);
    b.op("addmm", 32 * t, {chain, l.wd}, {l.d});
    x = act(hidden);
    b.op("add", t, {l.h, l.d}, {x}).inplace.push_back({l.d, x});
    all.push_back(l);
  }
  b.block = -1;
  const int32_t loss = b.storage("loss", 4, Role::kOutput, false, true);
  b.op("loss", t, {x}, {loss});
  b.p.border = static_cast<int32_t>(b.p.ops.size());
  b.backward = true;
  int32_t g = act(hidden);
  b.op("loss_backward", t, {x}, {g});
  for (int32_t i = layers; i-- > 0;) {
    const Layer& l = all[i];
    b.block = layers + (layers - 1 - i);
    int32_t ga = act(4 * hidden);
    b.op("mm", 32 * t, {g, l.wd}, {ga});
    b.op("mm", 32 * t, {g, l.act[6]}, {grad(l.wd)});
    for (int k = 7; k-- > 0;) {
      const int32_t next = act(4 * hidden);
      b.op("pointwise_backward", 12 * t, {ga, k > 0 ? l.act[k - 1] : l.u}, {next}).inplace.push_back({ga, next});
      ga = next;
    }
    const int32_t gn2 = act(hidden);
    b.op("mm", 32 * t, {ga, l.wu}, {gn2});
    b.op("mm", 32 * t, {ga, l.n2}, {grad(l.wu)});
    const int32_t gh = act(hidden), gsum = act(hidden);
    b.op("native_layer_norm_backward", 3 * t, {gn2, l.h, l.m2, l.r2}, {gh});
    b.op("add", t, {gh, g}, {gsum}).inplace.push_back({gh, gsum});
    const int32_t gp = act(hidden), go = act(hidden);
    b.op("native_dropout_backward", t, {gsum, l.mask}, {gp});
    b.op("mm", 8 * t, {gp, l.wp}, {go});
    b.op("mm", 8 * t, {gp, l.o}, {grad(l.wp)});
    const int32_t gq = act(hidden), gk = act(hidden), gv = act(hidden);
    b.op("attention_backward", 25 * t, {go, l.q, l.k, l.v, l.o, l.lse}, {gq, gk, gv}).workspace_bytes = hidden;
    int32_t gn = -1;
    for (auto [gx, w] : {std::pair{gq, l.wq}, std::pair{gk, l.wk}, std::pair{gv, l.wv}}) {
      const int32_t part = act(hidden);
      b.op("mm", 8 * t, {gx, w}, {part});
      b.op("mm", 8 * t, {gx, l.n1}, {grad(w)});
      if (gn < 0) {
        gn = part;
        continue;
      }
      const int32_t sum = act(hidden);
      b.op("add", t, {gn, part}, {sum}).inplace.push_back({gn, sum});
      gn = sum;
    }
    const int32_t gx = act(hidden);
    g = act(hidden);
    b.op("native_layer_norm_backward", 3 * t, {gn, l.x, l.m1, l.r1}, {gx});
    b.op("add", t, {gx, gsum}, {g}).inplace.push_back({gx, g});
  }
  return std::move(b.p);
}

}  // namespace memscale::planner
