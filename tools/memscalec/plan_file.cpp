// Reading of planned archives: the zip is checked by the reader of imports, the plan by the reader of the runtime.
#include "tools/memscalec/plan_file.h"

#include "compiler/import/zip_reader.h"
#include "runtime/core/reader.h"

namespace memscale::cli {
namespace {

constexpr const char* kRecord = "/extra/memscale/plan.bin";
constexpr uint64_t kLargestPlan = uint64_t{2} << 30;

Error in_file(const std::string& path, const Error& error) {
  return {error.code, "'" + path + "': " + error.message, error.help};
}

}  // namespace

Expected<PlanFile> read_plan_file(const std::string& path) {
  Expected<std::shared_ptr<import::MappedFile>> file = import::MappedFile::open(path);
  if (!file) return file.error();
  Expected<import::ZipReader> zip = import::ZipReader::open(*file);
  if (!zip) return in_file(path, zip.error());
  const import::ZipEntry* record = nullptr;
  for (const import::ZipEntry& entry : zip->entries()) {
    if (entry.name.ends_with(kRecord) && entry.name.find('/') == entry.name.size() - std::string(kRecord).size()) record = &entry;
  }
  if (record == nullptr) {
    return Error{Exit::kUnsupported, "'" + path + "' holds no plan: the record extra/memscale/plan.bin is missing",
                 "expected an archive that memscalec wrote: memscalec " + path + " -o NAME.ms.pt"};
  }
  Expected<std::string> bytes = zip->read(*record, kLargestPlan);
  if (!bytes) return in_file(path, bytes.error());
  PlanFile result;
  result.plan_bytes = bytes->size();
  result.file_bytes = (*file)->size();
  try {
    result.plan = runtime::read_plan(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
  } catch (const runtime::PlanError& e) {
    const bool version = e.fault() == runtime::Fault::kVersion;
    return Error{version ? Exit::kUnsupported : Exit::kUnsafe, "'" + path + "': " + e.what(),
                 version ? "compile the original again with this memscalec" : "the file is damaged; compile the original again"};
  }
  for (const auto& argument : result.plan.arguments) {
    const bool state = argument->role == fb::Role::Parameter || argument->role == fb::Role::Buffer;
    if (!state) continue;
    if (argument->record.empty()) {
      result.has_weights = false;
    } else if (zip->find(record->name.substr(0, record->name.find('/') + 1) + argument->record) == nullptr) {
      return Error{Exit::kUnsafe,
                   "'" + path + "': the plan names the record '" + argument->record + "' for '" + argument->name +
                       "', which the archive does not have",
                   "the file is damaged; compile the original again"};
    }
  }
  return result;
}

}  // namespace memscale::cli
