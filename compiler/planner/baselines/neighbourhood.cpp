// See neighbourhood.h.
#include "compiler/planner/baselines/neighbourhood.h"

#include <algorithm>

namespace memscale::planner {

Neighbourhood::Neighbourhood(const Tables& tables, Cost kind) : tables_(tables), kind_(kind) {
  const size_t m = tables.problem().storages.size();
  evicted_.assign(m, 0);
  if (kind == Cost::kClasses) node_.assign(m, -1);
  if (kind != Cost::kAncestors && kind != Cost::kExact) return;
  for (auto* known : {&up_known_, &down_known_}) known->assign(m, 0);
  for (auto* us : {&up_us_, &down_us_}) us->assign(m, 0);
  mark_.assign(m, 0);
}

template <class F>
void Neighbourhood::for_parents(int32_t storage, F f) const {
  for (int32_t s : tables_.operands(tables_.producer(storage))) f(s);
}

template <class F>
void Neighbourhood::for_children(int32_t storage, F f) const {
  for (int32_t u : tables_.uses(storage))
    for (int32_t o : tables_.problem().ops[u].outputs) f(o);
}

/// Calls `inside` once for each evicted storage that `edges` leads to over evicted ones, and `border` for the others on the way,
/// perhaps twice.
template <class Edges, class Inside, class Border>
void Neighbourhood::walk(int32_t from, Edges edges, Inside inside, Border border) {
  ++stamp_;
  mark_[from] = stamp_;
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const int32_t s = stack_.back();
    stack_.pop_back();
    ++steps_;
    edges(s, [&](int32_t t) {
      if (mark_[t] == stamp_) return;
      if (!evicted_[t]) return border(t);
      mark_[t] = stamp_;
      inside(t);
      stack_.push_back(t);
    });
  }
}

/// What rests on the region that `storage` joins or leaves is worked out again at need.
void Neighbourhood::invalidate(int32_t storage) {
  const auto nothing = [](int32_t) {};
  up_known_[storage] = down_known_[storage] = 0;
  walk(
      storage, [this](int32_t s, auto f) { for_children(s, f); }, nothing, [this](int32_t t) { up_known_[t] = 0; });
  if (kind_ == Cost::kAncestors) return;
  walk(
      storage, [this](int32_t s, auto f) { for_parents(s, f); }, nothing, [this](int32_t t) { down_known_[t] = 0; });
}

void Neighbourhood::evict(int32_t storage) {
  if (kind_ == Cost::kNone || kind_ == Cost::kLocal) return void(evicted_[storage] = 1);
  if (kind_ != Cost::kClasses) {
    invalidate(storage);
    evicted_[storage] = 1;
    return;
  }
  evicted_[storage] = 1;
  const auto fresh = static_cast<int32_t>(parent_.size());
  node_[storage] = fresh;
  parent_.push_back(fresh);
  class_us_.push_back(own_us(storage));
  auto join = [&](int32_t s) {
    if (!evicted_[s] || s == storage) return;
    const int32_t from = root(node_[s]);
    if (from == fresh) return;
    parent_[from] = fresh;
    class_us_[fresh] += class_us_[from];
  };
  for_parents(storage, join);
  for_children(storage, join);
}

void Neighbourhood::restore(int32_t storage) {
  evicted_[storage] = 0;
  if (kind_ == Cost::kAncestors || kind_ == Cost::kExact) invalidate(storage);
  if (kind_ != Cost::kClasses) return;
  double& sum = class_us_[root(node_[storage])];
  sum = std::max(0.0, sum - own_us(storage));  // roundings must not make it negative
  node_[storage] = -1;
}

int32_t Neighbourhood::root(int32_t node) {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

double Neighbourhood::classes_us(int32_t storage) {
  double sum = 0;
  roots_.clear();
  auto add = [&](int32_t s) {
    if (!evicted_[s]) return;
    const int32_t r = root(node_[s]);
    if (std::find(roots_.begin(), roots_.end(), r) != roots_.end()) return;
    roots_.push_back(r);
    sum += class_us_[r];
  };
  for_parents(storage, add);
  for_children(storage, add);
  return sum;
}

double Neighbourhood::cost_us(int32_t storage) {
  const double own = own_us(storage);
  if (kind_ == Cost::kNone || kind_ == Cost::kLocal) return own;
  if (kind_ == Cost::kClasses) return own + classes_us(storage);
  const auto nothing = [](int32_t) {};
  if (!up_known_[storage]) {
    double us = 0;
    walk(
        storage, [this](int32_t s, auto f) { for_parents(s, f); }, [&](int32_t t) { us += own_us(t); }, nothing);
    up_us_[storage] = us;
    up_known_[storage] = 1;
  }
  if (kind_ == Cost::kAncestors) return own + up_us_[storage];
  if (!down_known_[storage]) {
    double us = 0;
    walk(
        storage, [this](int32_t s, auto f) { for_children(s, f); }, [&](int32_t t) { us += own_us(t); }, nothing);
    down_us_[storage] = us;
    down_known_[storage] = 1;
  }
  return own + up_us_[storage] + down_us_[storage];
}

}  // namespace memscale::planner
