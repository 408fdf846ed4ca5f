// The archive reader. Sizes that a record claims are compared with the file before anything is allocated. Destroys nothing.
#include "runtime/torch/archive_reader.h"

#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <bit>
#include <filesystem>
#include <map>

namespace memscale::runtime {
namespace {

constexpr const char* kPlanRecord = "extra/memscale/plan.bin";

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::error_code error;
    file_bytes_ = std::filesystem::file_size(path, error);
    TORCH_CHECK(!error, "memscale: cannot read '", path, "': ", error.message());
    try {
      reader_ = std::make_unique<caffe2::serialize::PyTorchStreamReader>(path);
    } catch (const c10::Error& e) {
      TORCH_CHECK(false, "memscale: '", path, "' is not an archive that torch can read: ", e.what_without_backtrace());
    }
  }

  bool has(const std::string& name) { return reader_->hasRecord(name); }

  std::pair<c10::DataPtr, size_t> read(const std::string& name) {
    TORCH_CHECK(has(name), "memscale: '", path_, "' lacks the record '", name, "' that its plan names. The file is damaged.");
    const size_t claimed = reader_->getRecordSize(name);
    TORCH_CHECK(claimed <= file_bytes_, "memscale: record '", name, "' of '", path_, "' claims ", claimed, " bytes in a file of ",
                file_bytes_, ". The file is damaged or hostile.");
    auto [data, size] = reader_->getRecord(name);
    return {std::move(data), size};
  }

 private:
  std::string path_;
  uintmax_t file_bytes_ = 0;
  std::unique_ptr<caffe2::serialize::PyTorchStreamReader> reader_;
};

class Weights {
 public:
  Weights(Reader& reader, const PlanObject& plan, bool load) : reader_(reader), plan_(plan), load_(load) {}

  at::Tensor tensor(int32_t index) {
    const fb::ArgumentT& a = *plan_.plan().arguments[index];
    const at::ScalarType dtype = plan_.argument_dtypes()[index];
    at::Tensor tensor;
    if (!load_) {
      tensor = at::empty_strided(a.meta->sizes, a.meta->strides, at::TensorOptions().dtype(dtype).device(at::kMeta));
    } else {
      TORCH_CHECK(!a.record.empty(), "memscale: '", a.name,
                  "' has no values in this archive: it holds the structure alone. Load it without weights "
                  "(load_weights=false) and give the values yourself, e.g. with load_state_dict.");
      const c10::Storage& storage = storage_of(a.record);
      fb::TensorMetaT meta = *a.meta;
      meta.offset = a.record_offset;
      const int64_t needed = extent_elements(meta) * static_cast<int64_t>(c10::elementSize(dtype));
      TORCH_CHECK(needed <= static_cast<int64_t>(storage.nbytes()), "memscale: '", a.name, "' needs ", needed,
                  " bytes of record '", a.record, "', which has ", storage.nbytes(), ". The file is damaged.");
      tensor = at::empty({0}, at::TensorOptions().dtype(dtype)).set_(storage, a.record_offset, a.meta->sizes, a.meta->strides);
    }
    return a.role == fb::Role::Parameter ? tensor.requires_grad_(a.requires_grad) : tensor;
  }

 private:
  const c10::Storage& storage_of(const std::string& record) {
    auto it = storages_.find(record);
    if (it == storages_.end()) {
      auto [data, size] = reader_.read(record);
      it = storages_.emplace(record, c10::Storage(c10::Storage::use_byte_size_t(), size, std::move(data), nullptr, false)).first;
    }
    return it->second;
  }

  Reader& reader_;
  const PlanObject& plan_;
  bool load_;
  std::map<std::string, c10::Storage> storages_;
};

}  // namespace

LoadedArchive load_archive(const std::string& path, bool load_weights) {
  Reader reader(path);
  TORCH_CHECK(reader.has(kPlanRecord), "memscale: '", path, "' holds no plan (record ", kPlanRecord,
              " is missing). Expected a file written by memscalec -o model.ms.pt.");
  if (reader.has("byteorder")) {
    const auto [data, size] = reader.read("byteorder");
    const std::string order(static_cast<const char*>(data.get()), size);
    const std::string host = std::endian::native == std::endian::little ? "little" : "big";
    TORCH_CHECK(order == host, "memscale: '", path, "' was written on a ", order, "-endian machine; this one is ", host,
                "-endian.");
  }
  auto [data, size] = reader.read(kPlanRecord);
  const at::Tensor bytes = at::from_blob(data.get(), {static_cast<int64_t>(size)}, at::kByte);
  return at_border([&] {
    LoadedArchive archive;
    archive.plan = c10::make_intrusive<PlanObject>(bytes);
    Weights weights(reader, *archive.plan, load_weights);
    for (int32_t index : archive.plan->parameters()) archive.parameters.push_back(weights.tensor(index));
    for (int32_t index : archive.plan->buffers()) archive.buffers.push_back(weights.tensor(index));
    return archive;
  });
}

}  // namespace memscale::runtime
