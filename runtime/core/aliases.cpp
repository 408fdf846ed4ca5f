// Lifetimes and aliases of registers, from the plan and the alias annotations of the schemas. Destroys nothing.
#include "runtime/core/aliases.h"

#include <algorithm>
#include <set>

namespace memscale::runtime {
namespace {

template <class Visit>
void for_each_read(const Program& program, const Instruction& instr, Visit visit) {
  for (const ArgSource& arg : instr.args) {
    if (arg.kind == ArgSource::kTensor) visit(arg.index);
    if (arg.kind == ArgSource::kTensorList || arg.kind == ArgSource::kOptionalTensorList)
      for (int32_t reg : program.register_lists[arg.index])
        if (reg != -1) visit(reg);
  }
}

template <class Visit>
void for_each_definition(const Instruction& instr, Visit visit) {
  for (const auto& result : instr.results)
    for (int32_t reg : result.regs)
      if (reg != -1) visit(reg);
}

void collect_sets(const c10::AliasInfo* info, std::set<c10::Symbol>* sets) {
  if (info == nullptr) return;
  sets->insert(info->beforeSets().begin(), info->beforeSets().end());
  for (const auto& contained : info->containedTypes()) collect_sets(&contained, sets);
}

/// For each result of an operator: the argument whose memory it shows, or -1.
std::vector<int> alias_sources(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  std::vector<int> sources(schema.returns().size(), -1);
  // A view of a fresh tensor by contract of its callers, without an annotation; on an argument it still shares memory.
  if (schema.name() == "aten::_unsafe_view") sources[0] = 0;
  for (size_t r = 0; r < sources.size(); ++r) {
    std::set<c10::Symbol> of_result;
    collect_sets(schema.returns()[r].alias_info(), &of_result);
    if (of_result.empty()) continue;
    for (size_t a = 0; a < schema.arguments().size(); ++a) {
      std::set<c10::Symbol> of_argument;
      collect_sets(schema.arguments()[a].alias_info(), &of_argument);
      const bool common =
          std::any_of(of_result.begin(), of_result.end(), [&](c10::Symbol s) { return of_argument.count(s) > 0; });
      if (common) sources[r] = static_cast<int>(a);
    }
  }
  return sources;
}

/// The root of each register: an argument's index, or a number from the argument count on for memory made by a call.
class Roots {
 public:
  Roots(const fb::PlanT& plan, const Program& program)
      : program_(program), root_(plan.register_count, -1), next_(static_cast<int32_t>(plan.arguments.size())) {
    for (size_t i = 0; i < plan.arguments.size(); ++i) root_[plan.arguments[i]->reg] = static_cast<int32_t>(i);
  }
  int32_t of(int32_t reg) const { return root_[reg]; }

  void run(const Instruction& instr) {
    const std::vector<int> sources = alias_sources(instr.op);
    std::vector<std::pair<int32_t, int32_t>> fresh;
    for (size_t r = 0; r < instr.results.size(); ++r)
      for (size_t k = 0; k < instr.results[r].regs.size(); ++k) {
        const int32_t reg = instr.results[r].regs[k];
        if (reg == -1) continue;
        fresh.emplace_back(reg, sources[r] >= 0 ? source_root(instr.args[sources[r]], k) : -1);
      }
    for (const auto& [reg, root] : fresh) root_[reg] = root >= 0 ? root : next_++;
  }

 private:
  int32_t source_root(const ArgSource& arg, size_t element) const {
    if (arg.kind == ArgSource::kTensor) return root_[arg.index];
    if (arg.kind == ArgSource::kTensorList) {
      const auto& list = program_.register_lists[arg.index];
      if (element < list.size() && list[element] != -1) return root_[list[element]];
    }
    return -1;
  }

  const Program& program_;
  std::vector<int32_t> root_;
  int32_t next_;
};

}  // namespace

void analyse_lifetimes(const fb::PlanT& plan, Program& program) {
  std::vector<bool> live(plan.register_count, false);
  for (size_t s = program.segments.size(); s-- > 0;) {
    Segment& segment = program.segments[s];
    for (size_t g = segment.gradients.size(); g-- > 0;) {
      auto& gradient = segment.gradients[g];
      if (gradient.reg == -1) continue;
      gradient.last_use = !live[gradient.reg];
      live[gradient.reg] = true;
    }
    for (size_t i = segment.end; i-- > segment.begin;) {
      for_each_definition(program.backward[i], [&](int32_t reg) { live[reg] = false; });
      for_each_read(program, program.backward[i], [&](int32_t reg) { live[reg] = true; });
    }
  }
  program.tangent_used.assign(plan.outputs.size(), false);
  for (size_t k = 0; k < plan.outputs.size(); ++k)
    if (plan.outputs[k]->tangent != -1) {
      program.tangent_used[k] = live[plan.outputs[k]->tangent];
      live[plan.outputs[k]->tangent] = false;
    }
  for (uint32_t reg = 0; reg < plan.register_count; ++reg)
    if (live[reg]) program.live_into_backward.push_back(static_cast<int32_t>(reg));

  live.assign(plan.register_count, false);
  for (const auto& o : plan.outputs) live[o->reg] = true;
  for (const auto& w : plan.writebacks) live[w->reg] = true;
  for (size_t i = program.forward.size(); i-- > 0;) {
    Instruction& instr = program.forward[i];
    std::set<int32_t> frees(instr.frees.begin(), instr.frees.end());
    const auto last_use = [&](int32_t reg) {
      if (!live[reg]) frees.insert(reg);
    };
    for_each_definition(instr, last_use);
    for_each_definition(instr, [&](int32_t reg) { live[reg] = false; });
    for_each_read(program, instr, last_use);
    for_each_read(program, instr, [&](int32_t reg) { live[reg] = true; });
    instr.forward_only_frees.assign(frees.begin(), frees.end());
  }
}

void analyse_aliases(const fb::PlanT& plan, Program& program) {
  Roots roots(plan, program);
  const auto is_state = [&plan](int32_t root) {
    if (root < 0 || static_cast<size_t>(root) >= plan.arguments.size()) return false;
    const fb::Role role = plan.arguments[root]->role;
    return role == fb::Role::Parameter || role == fb::Role::Buffer || role == fb::Role::Input;
  };
  for (const Instruction& instr : program.forward) roots.run(instr);

  std::set<int32_t> live_roots;
  for (int32_t reg : program.live_into_backward) live_roots.insert(roots.of(reg));
  std::vector<int32_t> output_roots;
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    const int32_t root = roots.of(plan.outputs[k]->reg);
    const auto first = std::find(output_roots.begin(), output_roots.end(), root);
    program.output_alias.push_back(static_cast<int32_t>(first - output_roots.begin()));
    output_roots.push_back(root);
    program.output_argument.push_back(is_state(root) ? root : -1);
    program.output_escapes.push_back(live_roots.count(root) > 0);
  }

  std::set<int32_t> written;
  for (const auto& w : plan.writebacks) {
    program.writeback_reads_written.push_back(written.count(roots.of(w->reg)) > 0);
    written.insert(w->argument);
  }
  for (int32_t reg : program.live_into_backward)
    if (written.count(roots.of(reg)) > 0) program.copy_before_writeback.push_back(reg);

  for (Segment& segment : program.segments) {
    std::set<int32_t> read;
    for (uint32_t i = segment.begin; i < segment.end; ++i) {
      for_each_read(program, program.backward[i], [&](int32_t reg) { read.insert(roots.of(reg)); });
      roots.run(program.backward[i]);
    }
    for (const auto& g : segment.gradients)
      if (g.reg != -1) read.insert(roots.of(g.reg));
    for (int32_t root : read) {
      // A written-back argument was copied before the write-back, so later changes of it do no harm.
      if (is_state(root) && written.count(root) == 0) segment.checks.push_back({VersionCheck::kArgument, root});
      for (size_t k = 0; k < output_roots.size(); ++k)
        if (output_roots[k] == root && program.output_alias[k] == static_cast<int32_t>(k) && program.output_argument[k] < 0)
          segment.checks.push_back({VersionCheck::kOutput, static_cast<int32_t>(k)});
    }
  }
}

}  // namespace memscale::runtime
