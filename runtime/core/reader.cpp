// Parses plans and checks them: ranges first, then the flow of registers through forward and backward.
// Needs the bytes alone. Destroys nothing: throws PlanError, or returns a plan that the executor can run without checks.
#include "runtime/core/reader.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

namespace memscale::runtime {
namespace {

using fb::ArgKind;
using fb::Role;

constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxInstructions = size_t{1} << 24;
constexpr uint32_t kMaxSlots = 1u << 20;
constexpr int64_t kMaxExtent = int64_t{1} << 48;

[[noreturn]] void broken(const std::string& what) {
  throw PlanError(Fault::kBroken, "memscale: broken plan: " + what + ". Compile the model again with memscalec.");
}

void require(bool ok, const std::string& what) {
  if (!ok) broken(what);
}

void check_meta(const fb::TensorMetaT* meta, const std::string& where) {
  if (meta == nullptr) broken(where + " has no tensor description");
  if (dtype_bytes(meta->dtype) == 0) broken(where + " has the unknown dtype '" + meta->dtype + "'");
  if (meta->sizes.size() != meta->strides.size() || meta->sizes.size() > kMaxDimensions)
    broken(where + " has " + std::to_string(meta->sizes.size()) + " sizes and " + std::to_string(meta->strides.size()) +
           " strides");
  try {
    extent_elements(*meta);
  } catch (const PlanError& e) {
    broken(where + ": " + e.what());
  }
}

/// The registers that hold a value at one point of the step, and the slots that hold a generator state.
class Flow {
 public:
  Flow(uint32_t registers, uint32_t slots) : defined_(registers, false), saved_(slots, false) {}

  void define(int64_t reg, const std::string& where) {
    range(reg, where);
    if (defined_[reg]) broken(where + " assigns register " + std::to_string(reg) + ", which still holds a value");
    defined_[reg] = true;
  }
  void read(int64_t reg, const std::string& where) const {
    range(reg, where);
    if (!defined_[reg]) broken(where + " reads register " + std::to_string(reg) + ", which holds no value there");
  }
  void drop(int64_t reg, const std::string& where) {
    read(reg, where + " (frees)");
    defined_[reg] = false;
  }
  void save(int32_t slot, const std::string& where) {
    slot_range(slot, where);
    saved_[slot] = true;
  }
  void replay(int32_t slot, const std::string& where) const {
    slot_range(slot, where);
    if (!saved_[slot]) broken(where + " replays rng slot " + std::to_string(slot) + ", which was not saved before");
  }

 private:
  void range(int64_t reg, const std::string& where) const {
    if (reg < 0 || static_cast<uint64_t>(reg) >= defined_.size())
      broken(where + " names register " + std::to_string(reg) + " of " + std::to_string(defined_.size()));
  }
  void slot_range(int32_t slot, const std::string& where) const {
    if (slot < 0 || static_cast<size_t>(slot) >= saved_.size())
      broken(where + " names rng slot " + std::to_string(slot) + " of " + std::to_string(saved_.size()));
  }

  std::vector<bool> defined_;
  std::vector<bool> saved_;
};

class Checker {
 public:
  explicit Checker(const fb::PlanT& plan) : plan_(plan), flow_(0, 0) {}

  void run() {
    header();
    arguments();
    for (size_t i = 0; i < plan_.forward.size(); ++i) instruction(plan_.forward[i].get(), "forward", i);
    for (const auto& w : plan_.writebacks) writeback(w.get());
    outputs();
    for (int32_t reg : plan_.forward_frees) flow_.drop(reg, "forward_frees");
    for (const auto& a : plan_.arguments)
      if (a->role == Role::Tangent) flow_.define(a->reg, "tangent '" + a->name + "'");
    segments();
    state_names();
    guards();
  }

 private:
  void header() {
    if (plan_.version != kPlanVersion)
      throw PlanError(Fault::kVersion, "memscale: the plan has format version " + std::to_string(plan_.version) +
                                           ", this runtime reads version " + std::to_string(kPlanVersion) +
                                           ". Use the runtime that belongs to the compiler ('" + plan_.producer +
                                           "'), or compile the model again.");
    require(plan_.target == "cpu" || plan_.target == "cuda", "unknown target '" + plan_.target + "'");
    require(plan_.forward.size() <= kMaxInstructions && plan_.backward.size() <= kMaxInstructions, "too many instructions");
    require(plan_.rng_slot_count <= kMaxSlots, "too many rng slots");
    require(plan_.predicted_peak_bytes >= 0 && plan_.predicted_eager_peak_bytes >= 0, "negative predicted peak");
    // A register that nothing defines is useless, so this bounds what the executor allocates.
    size_t definitions = plan_.arguments.size();
    for (const auto* list : {&plan_.forward, &plan_.backward})
      for (const auto& instr : *list) {
        require(instr != nullptr, "an instruction is missing");
        for (const auto& r : instr->results) {
          require(r != nullptr, "a result is missing");
          definitions += r->regs.size();
        }
      }
    require(plan_.register_count <= definitions,
            "more registers (" + std::to_string(plan_.register_count) + ") than values (" + std::to_string(definitions) + ")");
    flow_ = Flow(plan_.register_count, plan_.rng_slot_count);
    for (const auto& op : plan_.ops) require(op != nullptr && !op->name.empty(), "an operator has no name");
  }

  void arguments() {
    std::set<int32_t> tangents;
    for (const auto& a : plan_.arguments) {
      require(a != nullptr, "an argument is missing");
      const std::string where = "argument '" + a->name + "'";
      require(a->role <= Role::MAX && a->place <= fb::Place::MAX, where + " has an unknown role or place");
      check_meta(a->meta.get(), where);
      require(a->record_offset >= 0, where + " has a negative record offset");
      if (a->role == Role::Constant) {
        int64_t elements = 1;
        for (int64_t s : a->meta->sizes) elements *= s;
        require(static_cast<uint64_t>(elements * dtype_bytes(a->meta->dtype)) == a->data.size(),
                where + " holds " + std::to_string(a->data.size()) + " bytes, its shape says " +
                    std::to_string(elements * dtype_bytes(a->meta->dtype)));
      } else {
        require(a->data.empty(), where + " is no constant but carries data");
      }
      if (a->role == Role::Tangent) {
        require(a->reg >= 0 && static_cast<uint32_t>(a->reg) < plan_.register_count && tangents.insert(a->reg).second,
                where + " has a bad register");
      } else {
        flow_.define(a->reg, where);
      }
    }
  }

  void instruction(const fb::InstrT* instr, const char* list, size_t index) {
    const std::string where = std::string(list) + " instruction " + std::to_string(index);
    require(instr->op < plan_.ops.size(),
            where + " names operator " + std::to_string(instr->op) + " of " + std::to_string(plan_.ops.size()));
    require(instr->location < plan_.locations.size() || (instr->location == 0 && plan_.locations.empty()),
            where + " has a bad location");
    for (const auto& a : instr->args) {
      if (a == nullptr) broken(where + " lacks an argument");
      switch (a->kind) {
        case ArgKind::Reg:
          flow_.read(a->i, where);
          break;
        case ArgKind::RegList:
          for (int32_t reg : a->regs)
            if (reg != -1) flow_.read(reg, where);
          break;
        case ArgKind::Bool:
          require(a->i == 0 || a->i == 1, where + " has a bool that is neither 0 nor 1");
          break;
        case ArgKind::Device:
          require(a->i >= 0 && a->i <= static_cast<int64_t>(fb::Place::MAX), where + " has an unknown place");
          break;
        case ArgKind::Bools:
          for (int64_t v : a->ints) require(v == 0 || v == 1, where + " has a bool that is neither 0 nor 1");
          break;
        default:
          require(a->kind <= ArgKind::MAX, where + " has an argument of an unknown kind");
      }
    }
    if (instr->rng_replay != -1) {
      require(instr->rng_save == -1, where + " both saves and replays the generator");
      flow_.replay(instr->rng_replay, where);
    }
    if (instr->rng_save != -1) flow_.save(instr->rng_save, where);
    size_t defined = 0;
    for (const auto& r : instr->results) {
      require(r->kind <= fb::ResultKind::MAX, where + " has a result of an unknown kind");
      require(r->kind != fb::ResultKind::Tensor || r->regs.size() == 1, where + " has a tensor result without one register");
      require(r->kind != fb::ResultKind::Other || r->regs.empty(), where + " puts a result that is no tensor in a register");
      for (int32_t reg : r->regs)
        if (reg != -1) {
          flow_.define(reg, where);
          ++defined;
        }
    }
    require(
        instr->first_layout.empty() || instr->first_layout.size() == defined,
        where + " has " + std::to_string(instr->first_layout.size()) + " layouts for " + std::to_string(defined) + " results");
    for (const auto& meta : instr->first_layout) check_meta(meta.get(), where);
    for (int32_t reg : instr->frees) flow_.drop(reg, where);
  }

  const fb::ArgumentT& argument(int32_t index, const std::string& where) const {
    require(index >= 0 && static_cast<size_t>(index) < plan_.arguments.size(),
            where + " names argument " + std::to_string(index) + " of " + std::to_string(plan_.arguments.size()));
    return *plan_.arguments[index];
  }

  void writeback(const fb::WritebackT* w) {
    require(w != nullptr, "a write-back is missing");
    const fb::ArgumentT& a = argument(w->argument, "a write-back");
    require(a.role == Role::Buffer || a.role == Role::Input,
            "a write-back goes to '" + a.name + "', which is no buffer or input");
    flow_.read(w->reg, "the write-back of '" + a.name + "'");
  }

  void outputs() {
    std::set<int32_t> free_tangents;
    for (const auto& a : plan_.arguments)
      if (a->role == Role::Tangent) free_tangents.insert(a->reg);
    for (const auto& o : plan_.outputs) {
      require(o != nullptr, "an output is missing");
      flow_.read(o->reg, "an output");
      if (o->meta) check_meta(o->meta.get(), "an output");
      if (o->tangent == -1) continue;
      require(o->requires_grad, "an output has a tangent but requires no gradient");
      require(free_tangents.erase(o->tangent) == 1, "an output's tangent is no tangent argument, or is used twice");
    }
    require(free_tangents.empty(), "a tangent belongs to no output");
  }

  void segments() {
    uint32_t at = 0;
    std::map<int32_t, bool> defined;  // argument → has a gradient
    for (const auto& s : plan_.segments) {
      require(s != nullptr, "a segment is missing");
      const std::string where = "segment '" + s->name + "'";
      require(s->begin == at && s->end >= s->begin && s->end <= plan_.backward.size(),
              where + " covers [" + std::to_string(s->begin) + ", " + std::to_string(s->end) + "), expected it to begin at " +
                  std::to_string(at) + " and to end within " + std::to_string(plan_.backward.size()));
      for (; at < s->end; ++at) instruction(plan_.backward[at].get(), "backward", at);
      for (const auto& g : s->gradients) {
        require(g != nullptr, where + " lacks a gradient");
        const fb::ArgumentT& a = argument(g->argument, where);
        require(a.role == Role::Parameter || a.role == Role::Input, where + " gives a gradient to '" + a.name + "'");
        require(a.requires_grad, where + " gives a gradient to '" + a.name + "', which requires none");
        const auto [earlier, fresh] = defined.try_emplace(g->argument, g->reg != -1);
        require(fresh || (earlier->second && g->reg != -1), where + " gives '" + a.name + "' both a gradient and none");
        if (g->reg != -1) flow_.read(g->reg, where);
      }
      for (int32_t reg : s->frees) flow_.drop(reg, where);
    }
    require(at == plan_.backward.size(), "the segments cover " + std::to_string(at) + " of " +
                                             std::to_string(plan_.backward.size()) + " backward instructions");
  }

  void state_names() {
    if (plan_.state_names.empty()) return;
    std::set<std::string> missing;
    for (const auto& a : plan_.arguments) {
      if (a->role != Role::Parameter && a->role != Role::Buffer) continue;
      missing.insert(a->name);
      missing.insert(a->aliases.begin(), a->aliases.end());
    }
    for (const std::string& name : plan_.state_names)
      require(missing.erase(name) == 1, "the state name '" + name + "' is unknown or stands twice");
    require(missing.empty(), "the state names lack " + std::to_string(missing.size()) + " names");
  }

  void guards() {
    std::set<std::string> names;
    for (const auto& g : plan_.guards)
      require(g != nullptr && names.insert(g->name).second, "a guard is missing or stands twice");
  }

  const fb::PlanT& plan_;
  Flow flow_;
};

/// The bytes that vectors and strings take once unpacked. FlatBuffers lets many tables point at one vector, so a small file
/// could unpack to any size; a writer that shares nothing stays below the size of the file.
class Unpacked {
 public:
  explicit Unpacked(const fb::Plan& plan) {
    instructions(plan.forward());
    instructions(plan.backward());
    if (const auto* list = plan.arguments())
      for (const auto* a : *list) {
        add(a->name());
        add(a->record());
        add(a->data());
        meta(a->meta());
        if (const auto* aliases = a->aliases())
          for (const auto* s : *aliases) add(s);
      }
    if (const auto* list = plan.outputs())
      for (const auto* o : *list) meta(o->meta());
    if (const auto* list = plan.segments())
      for (const auto* s : *list) {
        add(s->name());
        add(s->frees());
      }
    if (const auto* list = plan.ops())
      for (const auto* o : *list) {
        add(o->name());
        add(o->overload());
      }
    if (const auto* list = plan.guards())
      for (const auto* g : *list) {
        add(g->name());
        add(g->value());
      }
    if (const auto* list = plan.locations())
      for (const auto* s : *list) add(s);
  }
  size_t bytes() const { return bytes_; }
  bool aligned() const { return aligned_; }

 private:
  template <class T>
  void add(const flatbuffers::Vector<T>* v) {
    if (v == nullptr) return;
    bytes_ += v->size() * sizeof(T);
    // The verifier checks where a vector's length stands, not its elements.
    if (reinterpret_cast<uintptr_t>(v->Data()) % alignof(T) != 0) aligned_ = false;
  }
  void add(const flatbuffers::String* s) {
    if (s != nullptr) bytes_ += s->size();
  }
  void meta(const fb::TensorMeta* m) {
    if (m == nullptr) return;
    add(m->dtype());
    add(m->sizes());
    add(m->strides());
  }
  void instructions(const flatbuffers::Vector<flatbuffers::Offset<fb::Instr>>* list) {
    if (list == nullptr) return;
    for (const auto* instr : *list) {
      add(instr->frees());
      if (instr->args() != nullptr)
        for (const auto* a : *instr->args()) {
          add(a->s());
          add(a->ints());
          add(a->floats());
          add(a->regs());
        }
      if (instr->results() != nullptr)
        for (const auto* r : *instr->results()) add(r->regs());
      if (instr->first_layout() != nullptr)
        for (const auto* m : *instr->first_layout()) meta(m);
    }
  }
  size_t bytes_ = 0;
  bool aligned_ = true;
};

}  // namespace

int64_t dtype_bytes(const std::string& dtype) {
  static const std::pair<const char*, int64_t> kSizes[] = {
      {"f32", 4},  {"f64", 8}, {"f16", 2},   {"bf16", 2},     {"i64", 8},    {"i32", 4}, {"i16", 2}, {"i8", 1},  {"u8", 1},
      {"bool", 1}, {"c64", 8}, {"c128", 16}, {"f8e4m3fn", 1}, {"f8e5m2", 1}, {"c32", 4}, {"u16", 2}, {"u32", 4}, {"u64", 8}};
  for (const auto& [name, bytes] : kSizes)
    if (dtype == name) return bytes;
  return 0;
}

int64_t extent_elements(const fb::TensorMetaT& meta) {
  // The product of the sizes is bounded too: an expanded tensor (stride 0) must not overflow numel.
  int64_t numel = 1;
  int64_t last = meta.offset;
  if (meta.offset < 0 || meta.offset > kMaxExtent) throw PlanError(Fault::kBroken, "bad storage offset");
  bool empty = false;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    const int64_t size = meta.sizes[d], stride = meta.strides[d];
    if (size < 0 || stride < 0 || size > kMaxExtent || stride > kMaxExtent) throw PlanError(Fault::kBroken, "bad size or stride");
    if (size == 0) {
      empty = true;
      continue;
    }
    if (numel > kMaxExtent / size) throw PlanError(Fault::kBroken, "more elements than any device holds");
    numel *= size;
    if (size > 1 && stride > (kMaxExtent - last) / (size - 1)) throw PlanError(Fault::kBroken, "strides reach past any storage");
    last += (size - 1) * stride;
  }
  return empty ? 0 : last + 1;
}

void check_plan(const fb::PlanT& plan) { Checker(plan).run(); }

fb::PlanT read_plan(const uint8_t* data, size_t size) {
  if (data == nullptr || size < 8 || !fb::PlanBufferHasIdentifier(data))
    throw PlanError(Fault::kBroken, "memscale: these bytes are no plan: expected a FlatBuffer with the identifier 'MSPL'.");
  if (reinterpret_cast<uintptr_t>(data) % alignof(std::max_align_t) != 0) {
    const std::vector<uint8_t> copy(data, data + size);
    return read_plan(copy.data(), size);
  }
  // Every table takes at least four bytes, and so does every reference: more visits than that means shared tables.
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(std::min<size_t>(size / 4 + 16, 1u << 30));
  flatbuffers::Verifier verifier(data, size, /*max_depth=*/16, max_tables);
  const auto whole = [&] {
    if (!fb::VerifyPlanBuffer(verifier)) return false;
    const Unpacked unpacked(*fb::GetPlan(data));
    return unpacked.aligned() && unpacked.bytes() <= 2 * size;
  };
  if (!whole())
    throw PlanError(Fault::kBroken, "memscale: the plan is damaged: its tables do not lie within its " + std::to_string(size) +
                                        " bytes. Compile the model again, or copy the file again.");
  fb::PlanT plan;
  fb::GetPlan(data)->UnPackTo(&plan);
  check_plan(plan);
  return plan;
}

std::vector<uint8_t> write_plan(const fb::PlanT& plan) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fb::FinishPlanBuffer(builder, fb::Plan::Pack(builder, &plan));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace memscale::runtime
