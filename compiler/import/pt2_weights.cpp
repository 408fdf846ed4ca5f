// Payload configuration → tensors. One storage per payload record, so that tied and overlapping tensors stay so.
// Needs the checks of the zip reader; destroys nothing.
#include "compiler/import/pt2_weights.h"

#include <cstring>
#include <tuple>

namespace memscale::import {
namespace {

constexpr uint64_t kConfigBytes = uint64_t{256} << 20;
constexpr uintptr_t kAlignment = 64;

/// A byte storage over a stored record; a copy where the record is packed or badly aligned.
at::Storage storage_over(const Archive& archive, const ZipEntry& entry) {
  if (!entry.deflated && !archive.zip.checksum_matches(entry)) {
    broken("record '" + entry.name + "' has another checksum than stated: its bytes were changed");
  }
  char* bytes = entry.deflated ? nullptr : archive.zip.stored(entry);
  if (bytes != nullptr && reinterpret_cast<uintptr_t>(bytes) % kAlignment == 0) {
    auto* keep = new std::shared_ptr<MappedFile>(archive.zip.file());
    at::DataPtr data(
        bytes, keep, [](void* p) { delete static_cast<std::shared_ptr<MappedFile>*>(p); }, at::Device(at::kCPU));
    return at::Storage(at::Storage::use_byte_size_t(), entry.bytes, std::move(data), nullptr, /*resizable=*/false);
  }
  at::Tensor copy = at::empty({static_cast<int64_t>(entry.bytes)}, at::kByte);
  if (bytes != nullptr) {
    std::memcpy(copy.data_ptr(), bytes, entry.bytes);
  } else {
    Expected<std::string> unpacked = archive.zip.read(entry, entry.bytes);
    if (!unpacked) throw Failure(unpacked.error());
    std::memcpy(copy.data_ptr(), unpacked->data(), entry.bytes);
  }
  return copy.storage();
}

class Reader {
 public:
  Reader(const Archive& archive, bool read_weights) : archive_(archive), read_weights_(read_weights) {}

  void read(const std::string& folder, const std::string& config_name) {
    const ZipEntry* entry = archive_.zip.find(archive_.root + folder + config_name);
    if (entry == nullptr) broken("record '" + folder + config_name + "' is missing");
    Expected<std::string> text = archive_.zip.read(*entry, kConfigBytes);
    if (!text) throw Failure(text.error());
    std::vector<std::string> names;
    Json config = parse_json(*text, config_name, &names);
    const Json& payloads = object_of(member(config, "config"), "config");
    reserve_meta_storages(folder, payloads);
    for (const std::string& name : names) {
      auto found = payloads.find(name);
      if (found != payloads.end()) add(folder, name, *found);
    }
  }

  Payloads take() { return std::move(payloads_); }

 private:
  struct Record {
    const ZipEntry* entry = nullptr;
    int64_t meta_bytes = 0;  // the most that a tensor over it needs, for meta storages
    at::Storage storage;
    bool has_bytes = true;
  };

  Record& record(const std::string& folder, const Json& payload, const std::string& name) {
    const std::string path = folder + text_of(member(payload, "path_name"), "path_name");
    auto [it, fresh] = records_.try_emplace(path);
    if (fresh) {
      it->second.entry = archive_.zip.find(archive_.root + path);
      if (it->second.entry == nullptr) broken("the payload '" + path + "' of '" + name + "' is missing");
    }
    return it->second;
  }

  void reserve_meta_storages(const std::string& folder, const Json& payloads) {
    for (const auto& [name, payload] : payloads.items()) {
      if (boolean_of(member(payload, "use_pickle"), "use_pickle")) {
        fail(Exit::kUnsupported,
             "'" + name + "' is stored as a pickle (a tensor subclass or custom object), and pickles are not executed",
             "convert it to a plain tensor before exporting");
      }
      TensorMeta meta = tensor_meta_of(member(payload, "tensor_meta"), name);
      Record& r = record(folder, payload, name);
      r.meta_bytes = std::max(r.meta_bytes, meta.storage_bytes);
    }
  }

  void add(const std::string& folder, const std::string& name, const Json& payload) {
    TensorMeta meta = tensor_meta_of(member(payload, "tensor_meta"), name);
    if (meta.dynamic) broken("'" + name + "' has a symbolic size");
    bool parameter = boolean_of(member(payload, "is_param"), "is_param");
    Record& r = record(folder, payload, name);
    bool empty_record = r.entry->bytes == 0 && meta.storage_bytes > 0;
    if (empty_record && !meta.on_meta) broken("the payload of '" + name + "' is empty");
    if (!empty_record && static_cast<uint64_t>(meta.storage_bytes) > r.entry->bytes) {
      broken("'" + name + "' needs " + std::to_string(meta.storage_bytes) + " bytes of storage, its payload holds " +
             std::to_string(r.entry->bytes));
    }
    if (empty_record) payloads_.structure_only = true;
    bool grad = parameter && meta.requires_grad;
    if (grad && !c10::isFloatingType(meta.dtype) && !c10::isComplexType(meta.dtype))
      broken("'" + name + "' is integral and requires a gradient");

    // An empty record is shared by every tensor of a structure-only archive and says nothing about tying.
    auto key = std::make_tuple(r.entry, meta.dtype, meta.sizes, meta.strides, meta.offset, grad);
    at::Tensor tensor;
    if (auto known = empty_record ? made_.end() : made_.find(key); known != made_.end()) {
      tensor = known->second;
    } else {
      tensor = make(r, meta, empty_record);
      if (grad) tensor.set_requires_grad(true);
      if (!empty_record) made_.emplace(key, tensor);
    }
    if (!payloads_.index.emplace(name, payloads_.list.size()).second) broken("'" + name + "' is both a weight and a constant");
    payloads_.list.push_back({name, tensor, parameter});
  }

  at::Tensor make(Record& r, const TensorMeta& meta, bool empty_record) {
    if (empty_record) return at::empty_strided(meta.sizes, meta.strides, at::TensorOptions(at::kMeta).dtype(meta.dtype));
    if (!r.storage) {
      r.storage = read_weights_ ? storage_over(archive_, *r.entry)
                                : at::empty({r.meta_bytes}, at::TensorOptions(at::kMeta).dtype(at::kByte)).storage();
    }
    at::Tensor tensor = at::empty({0}, at::TensorOptions(read_weights_ ? at::kCPU : at::kMeta).dtype(meta.dtype));
    return tensor.set_(r.storage, meta.offset, meta.sizes, meta.strides);
  }

  const Archive& archive_;
  bool read_weights_;
  Payloads payloads_;
  std::map<std::string, Record> records_;
  std::map<std::tuple<const ZipEntry*, at::ScalarType, std::vector<int64_t>, std::vector<int64_t>, int64_t, bool>, at::Tensor>
      made_;
};

}  // namespace

Payloads read_payloads(const Archive& archive, const std::string& model, bool read_weights) {
  if (archive.zip.find(archive.root + "data/weights/" + model + ".pt") != nullptr) {
    fail(Exit::kUnsupported,
         "the archive holds its weights as a pickle (torch.export.save of an older PyTorch), and pickles are not executed",
         "save it again with PyTorch 2.11: torch.export.save(torch.export.load(path), new_path)");
  }
  Reader reader(archive, read_weights);
  reader.read("data/weights/", model + "_weights_config.json");
  reader.read("data/constants/", model + "_constants_config.json");
  return reader.take();
}

}  // namespace memscale::import
