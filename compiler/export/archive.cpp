// Writes model.ms.pt: state records named in the plan, the archive in a temporary file, read back, renamed.
// Needs an opened model and its plan; destroys an existing file of that name once the new one is whole.
#include "compiler/export/archive.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <ostream>
#include <streambuf>
#include <utility>

#include "compiler/export/planned_module.h"
#include "compiler/export/wrapper_source.h"
#include "compiler/import/model_torch.h"
#include "runtime/core/reader.h"

namespace memscale::exporter {
namespace {

constexpr const char* kPlanExtra = "memscale/plan.bin";

struct Inconsistent : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The numbers that torch's serializer will give to storages: it writes each as data/N in the order in which its pickler meets
/// them, so the same pickler tells them beforehand.
std::map<const void*, size_t> number_storages(const torch::jit::Module& module) {
  torch::jit::Pickler pickler([](const char*, size_t) {});
  pickler.protocol();
  pickler.pushIValue(module._ivalue());
  pickler.stop();
  std::map<const void*, size_t> numbers;
  for (size_t i = 0; i < pickler.tensorData().size(); ++i)
    numbers.emplace(pickler.tensorData()[i].storage().unsafeGetStorageImpl(), i);
  return numbers;
}

std::vector<std::pair<fb::ArgumentT*, at::Tensor>> state_arguments(const import::Model& model, fb::PlanT& plan) {
  std::map<std::string, const import::StateTensor*> by_name;
  for (const auto& s : model.state) by_name[s.name] = &s;
  std::vector<std::pair<fb::ArgumentT*, at::Tensor>> result;
  for (auto& a : plan.arguments) {
    if (a->role != fb::Role::Parameter && a->role != fb::Role::Buffer) continue;
    const auto it = by_name.find(a->name);
    if (it == by_name.end())
      throw Inconsistent("the plan names the state tensor '" + a->name + "', which the model does not have");
    result.emplace_back(a.get(), it->second->tensor);
  }
  return result;
}

void name_records(const import::Model& model, fb::PlanT& plan, const torch::jit::Module& module) {
  const auto numbers = number_storages(module);
  for (auto& [argument, tensor] : state_arguments(model, plan)) {
    argument->record.clear();
    argument->record_offset = 0;
    if (tensor.is_meta()) continue;
    const auto it = numbers.find(tensor.storage().unsafeGetStorageImpl());
    if (it == numbers.end()) throw Inconsistent("'" + argument->name + "' is not part of the module that is written");
    argument->record = "data/" + std::to_string(it->second);
    argument->record_offset = tensor.storage_offset();
  }
}

/// Every record that the plan names holds the bytes of the storage that it stands for.
void read_back(const std::string& path, const import::Model& model, fb::PlanT& plan, const std::vector<uint8_t>& bytes) {
  caffe2::serialize::PyTorchStreamReader reader(path);
  const auto same = [&reader](const std::string& name, const void* data, size_t size) {
    if (!reader.hasRecord(name)) throw Inconsistent("record " + name + " is missing");
    const auto [record, record_size] = reader.getRecord(name);
    if (record_size != size || std::memcmp(record.get(), data, size) != 0)
      throw Inconsistent("record " + name + " holds " + std::to_string(record_size) + " bytes that are not the expected " +
                         std::to_string(size));
  };
  same(std::string("extra/") + kPlanExtra, bytes.data(), bytes.size());
  std::map<std::string, const void*> checked;
  for (auto& [argument, tensor] : state_arguments(model, plan)) {
    if (argument->record.empty() || !checked.emplace(argument->record, nullptr).second) continue;
    same(argument->record, tensor.storage().data(), tensor.storage().nbytes());
  }
}

/// The temporary file; removed unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path), temporary_(path + "." + std::to_string(::getpid()) + ".tmp") {}
  ~TemporaryFile() {
    if (!renamed_) std::remove(temporary_.c_str());
  }
  const std::string& name() const { return temporary_; }
  std::error_code rename() {
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    renamed_ = !error;
    return error;
  }

 private:
  std::string path_, temporary_;
  bool renamed_ = false;
};

/// A file that takes everything and remembers whether that went well: torch's writer aborts the process if a stream refuses
/// bytes.
class File : public std::streambuf {
 public:
  explicit File(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {}
  ~File() override { close(); }
  bool is_open() const { return file_ != nullptr; }
  /// The first errno of a write, or of closing; 0 if all went well.
  int close() {
    if (file_ && std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
    return error_;
  }

 protected:
  std::streamsize xsputn(const char* data, std::streamsize count) override {
    if (error_ == 0 && std::fwrite(data, 1, static_cast<size_t>(count), file_) != static_cast<size_t>(count)) error_ = errno;
    return count;
  }
  int_type overflow(int_type c) override {
    const char byte = traits_type::to_char_type(c);
    xsputn(&byte, 1);
    return traits_type::not_eof(c);
  }

 private:
  std::FILE* file_;
  int error_ = 0;
};

Error cannot_write(const std::string& path, const std::string& why) {
  return {Exit::kUsage, "cannot write '" + path + "': " + why, "give -o a path in a folder that exists and can be written"};
}

}  // namespace

Expected<Success> write_archive(const import::Model& model, fb::PlanT& plan, const std::string& path,
                                const std::function<Expected<Success>(const std::string&)>& check) {
  try {
    TemporaryFile file(path);
    File buffer(file.name());
    if (!buffer.is_open()) return cannot_write(path, std::strerror(errno));
    std::ostream stream(&buffer);
    torch::jit::Module module = make_planned_module(model, plan);
    // The plan's own bytes are a tensor of the archive too: it must stand in its place before storages are numbered.
    set_plan(module, runtime::write_plan(plan));
    name_records(model, plan, module);
    plan.state_names = model.state_names;
    const std::vector<uint8_t> bytes = runtime::write_plan(plan);
    set_plan(module, bytes);
    // Written through a stream: torch would put the temporary file's name into the archive.
    module.save(stream, {{kPlanExtra, std::string(bytes.begin(), bytes.end())}});
    if (const int error = buffer.close()) return cannot_write(path, std::strerror(error));
    read_back(file.name(), model, plan, bytes);
    if (check)
      if (Expected<Success> checked = check(file.name()); !checked) return checked;
    if (const std::error_code error = file.rename()) return cannot_write(path, error.message());
    return Success{};
  } catch (const WrapperError& e) {
    return Error{Exit::kUnsupported, e.what(), "export the model with torch.export, or simplify forward's signature"};
  } catch (const Inconsistent& e) {
    return Error{Exit::kInternal, std::string("the written archive is not as planned: ") + e.what(), "report this as a bug"};
  } catch (const runtime::PlanError& e) {
    return Error{Exit::kInternal, std::string("the plan is not one that the runtime takes: ") + e.what(), "report this as a bug"};
  } catch (const c10::Error& e) {
    return Error{Exit::kInternal, std::string("writing '") + path + "' failed in torch: " + e.what_without_backtrace(), ""};
  } catch (const std::exception& e) {
    return Error{Exit::kInternal, std::string("writing '") + path + "' failed: " + e.what(), ""};
  }
}

}  // namespace memscale::exporter
