// Writes plans by hand: arguments, calls, segments; frees are put at each register's last use, as the compiler would.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/reader.h"

namespace memscale::test {

inline fb::ArgT R(int reg) {
  fb::ArgT a;
  a.kind = fb::ArgKind::Reg;
  a.i = reg;
  return a;
}
inline fb::ArgT N() { return fb::ArgT(); }
inline fb::ArgT I(int64_t v) {
  fb::ArgT a;
  a.kind = fb::ArgKind::Int;
  a.i = v;
  return a;
}
inline fb::ArgT F(double v) {
  fb::ArgT a;
  a.kind = fb::ArgKind::Float;
  a.f = v;
  return a;
}
inline fb::ArgT B(bool v) {
  fb::ArgT a;
  a.kind = fb::ArgKind::Bool;
  a.i = v;
  return a;
}
inline fb::ArgT L(std::vector<int64_t> v) {
  fb::ArgT a;
  a.kind = fb::ArgKind::Ints;
  a.ints = std::move(v);
  return a;
}
inline fb::ArgT RL(std::vector<int32_t> v) {
  fb::ArgT a;
  a.kind = fb::ArgKind::RegList;
  a.regs = std::move(v);
  return a;
}

class PlanMaker {
 public:
  explicit PlanMaker(const std::string& target = "cpu") {
    plan.target = target;
    plan.producer = "test";
    plan.torch_version = "2.11.0";
    plan.locations.push_back("model.py:1");
  }

  static std::unique_ptr<fb::TensorMetaT> meta(std::vector<int64_t> sizes, const std::string& dtype = "f32") {
    auto m = std::make_unique<fb::TensorMetaT>();
    m->dtype = dtype;
    m->sizes = sizes;
    int64_t stride = 1;
    m->strides.resize(sizes.size());
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) m->strides[d] = stride;
    return m;
  }

  /// Adds an argument; returns its register. Its index is arguments() - 1.
  int argument(fb::Role role, const std::string& name, std::vector<int64_t> sizes, bool requires_grad = false,
               const std::string& dtype = "f32") {
    auto a = std::make_unique<fb::ArgumentT>();
    a->role = role;
    a->name = name;
    a->reg = plan.register_count++;
    a->meta = meta(std::move(sizes), dtype);
    a->requires_grad = requires_grad;
    index_[a->reg] = static_cast<int>(plan.arguments.size());
    plan.arguments.push_back(std::move(a));
    return plan.arguments.back()->reg;
  }
  int parameter(const std::string& name, std::vector<int64_t> sizes, bool requires_grad = true) {
    return argument(fb::Role::Parameter, name, std::move(sizes), requires_grad);
  }
  int input(const std::string& name, std::vector<int64_t> sizes, bool requires_grad = false) {
    return argument(fb::Role::Input, name, std::move(sizes), requires_grad);
  }
  int index_of(int reg) const { return index_.at(reg); }

  /// A call with one tensor result; returns its register. Goes to backward once the first segment was opened.
  int call(const std::string& op, std::vector<fb::ArgT> args) { return call_n(op, std::move(args), 1)[0]; }
  std::vector<int> call_n(const std::string& op, std::vector<fb::ArgT> args, int tensors) {
    auto instr = std::make_unique<fb::InstrT>();
    instr->op = op_index(op);
    for (auto& a : args) instr->args.push_back(std::make_unique<fb::ArgT>(std::move(a)));
    std::vector<int> regs;
    for (int i = 0; i < tensors; ++i) {
      auto r = std::make_unique<fb::ResultT>();
      r->kind = fb::ResultKind::Tensor;
      r->regs.push_back(regs.emplace_back(plan.register_count++));
      instr->results.push_back(std::move(r));
    }
    instr->recompute = recompute;
    auto& list = plan.segments.empty() ? plan.forward : plan.backward;
    list.push_back(std::move(instr));
    if (!plan.segments.empty()) plan.segments.back()->end = plan.backward.size();
    return regs;
  }
  fb::InstrT& last() { return *(plan.segments.empty() ? plan.forward : plan.backward).back(); }

  /// Declares an output; with `tangent` returns the tangent's register, otherwise -1.
  int output(int reg, std::vector<int64_t> sizes, bool requires_grad, bool tangent) {
    auto o = std::make_unique<fb::OutputT>();
    o->reg = reg;
    o->requires_grad = requires_grad;
    if (tangent) o->tangent = argument(fb::Role::Tangent, "t" + std::to_string(plan.outputs.size()), std::move(sizes));
    const int result = o->tangent;
    plan.outputs.push_back(std::move(o));
    return result;
  }
  void writeback(int argument_reg, int reg) {
    auto w = std::make_unique<fb::WritebackT>();
    w->argument = index_of(argument_reg);
    w->reg = reg;
    plan.writebacks.push_back(std::move(w));
  }
  void segment(const std::string& name) {
    auto s = std::make_unique<fb::SegmentT>();
    s->name = name;
    s->begin = s->end = plan.backward.size();
    plan.segments.push_back(std::move(s));
  }
  void gradient(int argument_reg, int reg) {
    auto g = std::make_unique<fb::GradientT>();
    g->argument = index_of(argument_reg);
    g->reg = reg;
    plan.segments.back()->gradients.push_back(std::move(g));
  }

  /// Puts the frees in place. Call once, at the end.
  fb::PlanT& finish() {
    const size_t forward = plan.forward.size(), end_of_forward = forward;
    // Positions: forward instructions, the end of forward, then per segment its instructions and its end.
    std::map<int, std::pair<size_t, std::vector<int32_t>*>> last_use;
    size_t position = 0;
    const auto use = [&](int reg, std::vector<int32_t>* frees) { last_use[reg] = {position, frees}; };
    const auto visit = [&](fb::InstrT& instr) {
      for (auto& r : instr.results)
        for (int reg : r->regs)
          if (reg != -1) use(reg, &instr.frees);
      for (auto& a : instr.args) {
        if (a->kind == fb::ArgKind::Reg) use(static_cast<int>(a->i), &instr.frees);
        for (int reg : a->regs)
          if (reg != -1) use(reg, &instr.frees);
      }
      ++position;
    };
    for (auto& instr : plan.forward) visit(*instr);
    for (auto& w : plan.writebacks) use(w->reg, &plan.forward_frees);
    for (auto& o : plan.outputs) use(o->reg, &plan.forward_frees);
    position = end_of_forward + 1;
    for (auto& s : plan.segments) {
      for (size_t i = s->begin; i < s->end; ++i) visit(*plan.backward[i]);
      for (auto& g : s->gradients)
        if (g->reg != -1) use(g->reg, &s->frees);
      ++position;
    }
    for (auto& [reg, place] : last_use) place.second->push_back(reg);
    return plan;
  }

  bool recompute = false;
  fb::PlanT plan;

 private:
  uint32_t op_index(const std::string& op) {
    const size_t dot = op.find('.');
    const std::string name = op.substr(0, dot), overload = dot == std::string::npos ? "" : op.substr(dot + 1);
    for (size_t i = 0; i < plan.ops.size(); ++i)
      if (plan.ops[i]->name == name && plan.ops[i]->overload == overload) return i;
    auto o = std::make_unique<fb::OpNameT>();
    o->name = name;
    o->overload = overload;
    plan.ops.push_back(std::move(o));
    return plan.ops.size() - 1;
  }

  std::map<int, int> index_;
};

/// loss = mean(y * y), y = dropout(relu(x W1' + b1)) W2' + b2 with batch 4, 5 → 8 → 3. Backward has the segments "fc2", "fc1";
/// with `recompute`, relu, mask and product are dropped after forward and made again in "fc2" from the saved generator state.
struct Mlp {
  explicit Mlp(bool recompute, bool frozen_first = false) {
    const bool first = !frozen_first;
    w1 = m.parameter("fc1.weight", {8, 5}, first);
    b1 = m.parameter("fc1.bias", {8}, first);
    w2 = m.parameter("fc2.weight", {3, 8});
    b2 = m.parameter("fc2.bias", {3});
    x = m.input("x", {4, 5});
    const int w1t = m.call("aten::t", {R(w1)});
    const int h = m.call("aten::addmm", {R(b1), R(x), R(w1t), I(1), I(1)});
    Hidden hidden = activation(h, /*save=*/recompute, false);
    const int w2t = m.call("aten::t", {R(w2)});
    const int y = m.call("aten::addmm", {R(b2), R(hidden.d), R(w2t), I(1), I(1)});
    const int sq = m.call("aten::mul.Tensor", {R(y), R(y)});
    const int loss = m.call("aten::mean", {R(sq), N()});
    const int t = m.output(loss, {}, true, true);
    m.plan.rng_slot_count = 1;
    m.segment("fc2");
    if (recompute) {
      m.recompute = true;
      hidden = activation(h, false, true);
      m.recompute = false;
    }
    const int e = m.call("aten::expand", {R(t), L({4, 3}), B(false)});
    const int g = m.call("aten::div.Scalar", {R(e), I(12)});
    const int gy1 = m.call("aten::mul.Tensor", {R(g), R(y)});
    const int gy2 = m.call("aten::mul.Tensor", {R(g), R(y)});
    const int gy = m.call("aten::add.Tensor", {R(gy1), R(gy2), I(1)});
    m.gradient(b2, bias_gradient(gy, 3));
    m.gradient(w2, weight_gradient(gy, hidden.d));
    if (first) {
      const int back = m.call("aten::t", {R(w2t)});
      const int gd = m.call("aten::mm", {R(gy), R(back)});
      m.segment("fc1");
      const int ga = m.call("aten::mul.Tensor", {R(gd), R(hidden.noise)});
      const int gh = m.call("aten::threshold_backward", {R(ga), R(hidden.a), I(0)});
      m.gradient(b1, bias_gradient(gh, 8));
      m.gradient(w1, weight_gradient(gh, x));
    }
    m.finish();
  }

  PlanMaker m;
  int w1, b1, w2, b2, x;

 private:
  struct Hidden {
    int a, noise, d;
  };
  Hidden activation(int h, bool save, bool replay) {
    const int a = m.call("aten::relu", {R(h)});
    const int blank = m.call("aten::empty_like", {R(a), N(), N(), N(), N(), N()});
    const int mask = m.call("aten::bernoulli.p", {R(blank), F(0.5), N()});
    if (save) m.last().rng_save = 0;
    if (replay) m.last().rng_replay = 0;
    const int noise = m.call("aten::div.Scalar", {R(mask), F(0.5)});
    return {a, noise, m.call("aten::mul.Tensor", {R(a), R(noise)})};
  }
  int bias_gradient(int g, int64_t n) {
    const int s = m.call("aten::sum.dim_IntList", {R(g), L({0}), B(true), N()});
    return m.call("aten::view", {R(s), L({n})});
  }
  int weight_gradient(int g, int in) {
    const int gt = m.call("aten::t", {R(g)});
    const int p = m.call("aten::mm", {R(gt), R(in)});
    const int pt = m.call("aten::t", {R(p)});
    return m.call("aten::t", {R(pt)});
  }
};

}  // namespace memscale::test
