// Files that are broken, hostile or of another kind: each is an error with the right exit code, never a crash.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "archives.h"
#include "compiler/import/model_torch.h"
#include "compiler/import/zip_reader.h"
#include "zip_writer.h"

namespace {

using Json = nlohmann::json;
using memscale::Exit;
using memscale::import::MappedFile;
using memscale::import::ZipEntry;
using memscale::import::ZipReader;

std::string scratch() {
  return (std::filesystem::temp_directory_path() / ("memscale_hostile_" + std::to_string(::getpid()))).string();
}

class Scratch : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(scratch()); }
};
using Hostile = Scratch;
using Fuzz = Scratch;

memscale::Expected<std::shared_ptr<memscale::import::Model>> open_bytes(const std::string& bytes) {
  write_file(scratch(), bytes);
  return memscale::import::open(scratch());
}

void expect_error(const std::string& bytes, Exit code, const std::string& part) {
  auto model = open_bytes(bytes);
  ASSERT_FALSE(bool(model)) << "expected an error about: " << part;
  EXPECT_EQ(model.error().code, code) << model.error().message;
  EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  EXPECT_FALSE(model.error().message.empty());
}

void expect_file_error(const std::string& path, Exit code, const std::string& part, bool with_help = true) {
  auto model = memscale::import::open(path);
  ASSERT_FALSE(bool(model)) << path;
  EXPECT_EQ(model.error().code, code) << model.error().message;
  EXPECT_NE(model.error().message.find(part), std::string::npos) << model.error().message;
  EXPECT_EQ(model.error().help.empty(), !with_help) << path;
}

/// The entries of a real archive, as items that can be changed and written again. Checksums are not restated.
std::vector<ZipItem> items_of(const std::string& name) {
  auto zip = ZipReader::open(*MappedFile::open(archive(name)));
  EXPECT_TRUE(bool(zip));
  std::vector<ZipItem> items;
  for (const ZipEntry& e : zip->entries()) {
    auto bytes = zip->read(e, uint64_t{1} << 30);
    EXPECT_TRUE(bool(bytes));
    ZipItem item;
    item.name = e.name;
    item.bytes = *bytes;
    items.push_back(std::move(item));
  }
  return items;
}

ZipItem& item_named(std::vector<ZipItem>& items, const std::string& ending) {
  for (ZipItem& item : items) {
    if (item.name.size() >= ending.size() && item.name.compare(item.name.size() - ending.size(), ending.size(), ending) == 0)
      return item;
  }
  throw std::runtime_error("no entry " + ending);
}

/// tied.pt2 with its program or one of its configurations edited.
std::string edited(const std::function<void(Json&)>& edit, const std::string& record = "models/model.json") {
  std::vector<ZipItem> items = items_of("tied.pt2");
  ZipItem& item = item_named(items, record);
  Json program = Json::parse(item.bytes);
  edit(program);
  item.bytes = program.dump();
  return write_zip(items);
}

TEST_F(Hostile, KindsOfFiles) {
  expect_file_error(archive("no_such_file.pt2"), Exit::kUsage, "No such file");
  expect_file_error(std::filesystem::temp_directory_path().string(), Exit::kUsage, "is a folder");
  expect_file_error("/dev/null", Exit::kUsage, "no regular file");
  expect_file_error(archive("state_dict.pt"), Exit::kUnsupported, "eager checkpoint");
  expect_file_error(archive("module.pt"), Exit::kUnsupported, "eager checkpoint");
  expect_file_error(archive("legacy.pt"), Exit::kUnsupported, "bare pickle");
  expect_file_error(archive("pickle.pt"), Exit::kUnsupported, "bare pickle");
  expect_file_error(archive("compiled.ms.pt"), Exit::kUnsupported, "already compiled by memscale");
  expect_file_error(archive("cond.pt2"), Exit::kUnsupported, "higher_order.cond");
  expect_file_error(archive("cond.pt2"), Exit::kUnsupported, "make_archives.py:");
  expect_file_error(archive("aliases.pt2"), Exit::kUnsupported, "'w' and 'part' share memory");
  expect_file_error(archive("structure_only_autocast.pt2"), Exit::kUnsupported, "autocast does not act on the meta device");
  expect_error("", Exit::kUnsafe, "is empty");
  expect_error("hello, world", Exit::kUnsupported, "no zip archive");
  expect_error(std::string("\x7f") + "ELF\x02", Exit::kUnsupported, "compiled library");
  expect_error("GGUF\x03", Exit::kUnsupported, "GGUF");
  expect_error(write_zip({{"a.txt", "text"}}), Exit::kUnsupported, "share no folder");
  expect_error(write_zip({{"m/a.txt", "text"}}), Exit::kUnsupported, "without the records");
  expect_error(write_zip({{"m/archive_format", "pt3"}}), Exit::kUnsupported, "'pt3'");
  expect_error(write_zip({{"m/archive_format", "pt2"}, {"m/data/aotinductor/model/a.so", ""}}), Exit::kUnsupported,
               "AOTInductor");
  expect_error(write_zip({{"serialized_exported_program.json", "{}"}, {"version", "1"}}), Exit::kUnsupported, "2.7 or older");
  expect_error(write_zip({{"m/bytecode.pkl", ""}}), Exit::kUnsupported, "mobile");
  expect_error(write_zip({}), Exit::kUnsupported, "share no folder");
}

TEST_F(Hostile, ZipDirectories) {
  const ZipItem sound{"m/archive_format", "pt2"};
  auto with = [&](ZipItem item) { return write_zip({sound, std::move(item)}); };
  expect_error(with({"m/../../etc/passwd", "x"}), Exit::kUnsafe, "leaves the archive");
  expect_error(with({"/etc/passwd", "x"}), Exit::kUnsafe, "absolute");
  expect_error(with({"m\\a", "x"}), Exit::kUnsafe, "backslash");
  expect_error(with({std::string("m/a\0b", 5), "x"}), Exit::kUnsafe, "control character");
  expect_error(with({"m/" + std::string(5000, 'a'), "x"}), Exit::kUnsafe, "5002 bytes");
  expect_error(with({"", "x"}), Exit::kUnsafe, "without a name");
  expect_error(write_zip({sound, sound}), Exit::kUnsafe, "occurs twice");
  ZipItem overlapping{"m/other", "pt2"};
  overlapping.stated_offset = 0;
  overlapping.local_name = "m/other";
  expect_error(write_zip({sound, overlapping}), Exit::kUnsafe, "another name");
  ZipItem inner{"m/a", "x"};
  std::string hidden = write_zip({inner});
  ZipItem outer{"m/outer", hidden};
  ZipItem nested{"m/a", "x"};
  nested.stated_offset = 30 + 7;  // the local header inside the data of the first entry
  expect_error(write_zip({outer, nested}), Exit::kUnsafe, "overlap");
  ZipItem huge{"m/a", "x"};
  huge.stated_bytes = 0x7fffffff;
  expect_error(with(huge), Exit::kUnsafe, "beyond the file");
  ZipItem far{"m/a", "x"};
  far.stated_offset = 0x7fffffff;
  expect_error(with(far), Exit::kUnsafe, "no local header");
  ZipItem encrypted{"m/a", "x"};
  encrypted.flags = 1;
  expect_error(with(encrypted), Exit::kUnsupported, "encrypted");
  ZipItem packed{"m/a", "x"};
  packed.method = 12;
  expect_error(with(packed), Exit::kUnsupported, "method 12");
  ZipItem bomb{"m/a", std::string(64 << 20, '\0')};
  bomb.deflate = true;
  expect_error(with(bomb), Exit::kUnsafe, "more than is allowed");
  ZipItem many{"m/a", "x"};
  std::string file = with(many);
  std::string claimed = file;
  claimed.replace(claimed.size() - 14, 4, little(0xfffe, 2) + little(0xfffe, 2));
  expect_error(claimed, Exit::kUnsafe, "too small for");
  expect_error(file + "trailing", Exit::kUnsafe, "no end record");
  expect_error(file.substr(0, file.size() - 5), Exit::kUnsafe, "no end record");
}

TEST_F(Hostile, Checksums) {
  std::string bytes = read_file(archive("tied.pt2"));
  size_t at = bytes.find("\"schema_version\"");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] ^= 1;
  expect_error(bytes, Exit::kUnsafe, "another checksum");
  // One bit of a weight: the first payload is emb.weight, 352 bytes, named first in the archive.
  bytes = read_file(archive("tied.pt2"));
  auto zip = ZipReader::open(*MappedFile::open(archive("tied.pt2")));
  bytes[zip->find("tied/data/weights/weight_0")->offset + 5] ^= 1;
  expect_error(bytes, Exit::kUnsafe, "another checksum");
}

TEST_F(Hostile, Zip64IsRead) {
  std::vector<ZipItem> items = items_of("tied.pt2");
  auto model = open_bytes(write_zip(items, /*zip64=*/true));
  EXPECT_TRUE(bool(model)) << model.error().message;
  for (ZipItem& item : items) item.deflate = true;
  model = open_bytes(write_zip(items));
  EXPECT_TRUE(bool(model)) << model.error().message;
}

TEST_F(Hostile, Programs) {
  auto node = [](Json& p, size_t i) -> Json& { return p["graph_module"]["graph"]["nodes"][i]; };
  expect_error(edited([](Json& p) { p["schema_version"]["major"] = 9; }), Exit::kUnsupported, "schema version 9");
  expect_error(edited([](Json& p) { p["opset_version"]["aten"] = 99; }), Exit::kUnsupported, "opset version 99");
  expect_error(edited([](Json& p) { p.erase("graph_module"); }), Exit::kUnsafe, "'graph_module' is missing");
  expect_error(edited([](Json& p) { p = Json::array(); }), Exit::kUnsafe, "expected an object");
  expect_error(edited([&](Json& p) { node(p, 1)["target"] = "torch.ops.aten.no_such_op.default"; }), Exit::kUnsupported,
               "no such op");
  expect_error(edited([&](Json& p) { node(p, 1)["target"] = "os.system"; }), Exit::kUnsupported, "no form in TorchScript");
  expect_error(edited([&](Json& p) {
                 node(p, 1)["inputs"][0]["arg"] = {{"as_tensor", {{"name", "nowhere"}}}};
               }),
               Exit::kUnsafe, "'nowhere' is used but not defined");
  expect_error(edited([&](Json& p) {
                 node(p, 1)["inputs"][0]["arg"] = {{"as_tensor", node(p, 1)["outputs"][0]["as_tensor"]}};
               }),
               Exit::kUnsafe,
               "used but not defined");  // a node that reads itself
  expect_error(edited([&](Json& p) { node(p, 2)["outputs"] = node(p, 1)["outputs"]; }), Exit::kUnsafe, "defined twice");
  expect_error(edited([&](Json& p) {
                 node(p, 1)["inputs"][0]["arg"] = {{"as_new_kind", 1}};
               }),
               Exit::kUnsupported, "as_new_kind");
  expect_error(edited([&](Json& p) { node(p, 1)["inputs"][0]["name"] = "novel"; }), Exit::kUnsupported, "does not have");
  expect_error(edited([&](Json& p) { node(p, 1)["inputs"].erase(0); }), Exit::kUnsafe, "lacks its argument");
  expect_error(edited([](Json& p) { p["graph_module"]["signature"]["input_specs"].erase(0); }), Exit::kUnsafe,
               "inputs, the graph");
  expect_error(edited([](Json& p) {
                 p["graph_module"]["signature"]["input_specs"][0] = {{"custom_obj", {{"arg", {{"name", "a"}}}}}};
               }),
               Exit::kUnsupported, "custom_obj");
  expect_error(edited([](Json& p) { p["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = "other"; }),
               Exit::kUnsafe, "no payload");
  expect_error(edited([](Json& p) { p["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = "[2, {}]"; }),
               Exit::kUnsupported, "unknown version");
  expect_error(edited([](Json& p) {
                 p["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] =
                     std::string(5000, '[') + std::string(5000, ']');
               }),
               Exit::kUnsafe, "512 deep");

  std::vector<ZipItem> deep = items_of("tied.pt2");
  item_named(deep, "models/model.json").bytes = std::string(1000000, '[') + std::string(1000000, ']');
  expect_error(write_zip(deep), Exit::kUnsafe, "512 deep");
  item_named(deep, "models/model.json").bytes = "{\"a\":";
  expect_error(write_zip(deep), Exit::kUnsafe, "is no JSON");
  std::vector<ZipItem> several = items_of("tied.pt2");
  several.push_back({"tied/models/other.json", "{}"});
  expect_error(write_zip(several), Exit::kUnsupported, "several programs (model, other)");
}

TEST_F(Hostile, Weights) {
  const std::string config = "model_weights_config.json";
  auto meta = [](Json& c) -> Json& { return c["config"]["emb.weight"]["tensor_meta"]; };
  expect_error(edited([&](Json& c) { meta(c)["sizes"][0]["as_int"] = -1; }, config), Exit::kUnsafe, "negative");
  expect_error(edited([&](Json& c) { meta(c)["sizes"][0]["as_int"] = 1000; }, config), Exit::kUnsafe, "its payload holds 352");
  expect_error(edited([&](Json& c) { meta(c)["sizes"][0]["as_int"] = int64_t{1} << 62; }, config), Exit::kUnsafe,
               "larger than 64 bits");
  expect_error(edited([&](Json& c) { meta(c)["strides"][0]["as_int"] = int64_t{1} << 60; }, config), Exit::kUnsafe, "64 bits");
  expect_error(edited([&](Json& c) { meta(c)["storage_offset"]["as_int"] = 1; }, config), Exit::kUnsafe, "its payload holds");
  expect_error(edited([&](Json& c) { meta(c)["strides"].erase(0); }, config), Exit::kUnsafe, "2 sizes but 1 strides");
  expect_error(edited([&](Json& c) { meta(c)["dtype"] = 99; }, config), Exit::kUnsupported, "scalar type code 99");
  expect_error(edited([&](Json& c) { meta(c)["dtype"] = 5; }, config), Exit::kUnsafe, "");
  expect_error(edited([&](Json& c) { meta(c)["layout"] = 1; }, config), Exit::kUnsupported, "no strided tensor");
  expect_error(edited([&](Json& c) { c["config"]["emb.weight"]["use_pickle"] = true; }, config), Exit::kUnsupported,
               "pickles are not executed");
  expect_error(edited([&](Json& c) { c["config"]["emb.weight"]["path_name"] = "../../../secret"; }, config), Exit::kUnsafe,
               "is missing");
  expect_error(edited([&](Json& c) { c["config"]["a..b"] = c["config"]["emb.weight"]; }, config), Exit::kUnsafe, "empty part");
  expect_error(edited([&](Json& c) { c["config"]["emb"] = c["config"]["emb.weight"]; }, config), Exit::kUnsafe, "");
  expect_error(edited([&](Json& c) { c["config"]["a'b"] = c["config"]["emb.weight"]; }, config), Exit::kUnsafe, "quotes");
  expect_error(edited([&](Json& c) { c["config"]["k" + std::string(400, '.') + "x"] = c["config"]["emb.weight"]; }, config),
               Exit::kUnsafe, "200 deep");
}

TEST_F(Fuzz, Truncation) {
  for (const char* name : {"tied.pt2", "traced.pt"}) {
    std::string bytes = read_file(archive(name));
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 300) {
      auto model = open_bytes(bytes.substr(0, length));
      ASSERT_FALSE(bool(model)) << name << " cut at " << length;
      if (length > 4) {
        EXPECT_EQ(model.error().code, Exit::kUnsafe) << model.error().message;
      }
    }
  }
}

TEST_F(Fuzz, FlippedBits) {
  std::mt19937 random(1);
  for (const char* name : {"tied.pt2", "traced.pt", "scripted.pt"}) {
    const std::string bytes = read_file(archive(name));
    for (int round = 0; round < 300; ++round) {
      std::string changed = bytes;
      for (int k = 0; k < 1 + round % 4; ++k) changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
      auto model = open_bytes(changed);
      if (!model) {
        EXPECT_FALSE(model.error().message.empty());
      }
    }
  }
}

/// Without stated checksums the changed bytes reach the parsers.
TEST_F(Fuzz, FlippedBitsBehindTheChecksums) {
  std::mt19937 random(2);
  for (const char* name : {"tied.pt2", "containers.pt2"}) {
    const std::vector<ZipItem> items = items_of(name);
    for (int round = 0; round < 300; ++round) {
      std::vector<ZipItem> changed = items;
      ZipItem& item = changed[random() % changed.size()];
      if (item.bytes.empty()) continue;
      for (int k = 0; k < 1 + round % 3; ++k) item.bytes[random() % item.bytes.size()] ^= static_cast<char>(1 << random() % 8);
      auto model = open_bytes(write_zip(changed));
      if (!model) {
        EXPECT_FALSE(model.error().message.empty());
      }
    }
  }
}

/// Replaces, removes or duplicates random values of the program's JSON.
TEST_F(Fuzz, ChangedPrograms) {
  std::mt19937 random(3);
  for (const char* name : {"tied.pt2", "autocast.pt2", "dynamic.pt2", "containers.pt2"}) {
    const std::vector<ZipItem> items = items_of(name);
    for (const char* record : {"models/model.json", "model_weights_config.json", "model_constants_config.json"}) {
      std::vector<ZipItem> changed = items;
      ZipItem& item = item_named(changed, record);
      const Json original = Json::parse(item.bytes);
      size_t refused = 0;
      const int rounds = std::string(record) == "models/model.json" ? 400 : 100;
      for (int round = 0; round < rounds; ++round) {
        Json program = original;
        Json* at = &program;
        while (at->is_structured() && !at->empty() && random() % 12 != 0) {
          auto it = at->begin();
          std::advance(it, random() % at->size());
          at = &*it;
        }
        switch (random() % 8) {
          case 0:
            *at = nullptr;
            break;
          case 1:
            *at = Json::array();
            break;
          case 2:
            *at = Json::object();
            break;
          case 3:
            *at = -int64_t(random());
            break;
          case 4:
            *at = std::numeric_limits<int64_t>::max();
            break;
          case 5:
            *at = "x";
            break;
          case 6:
            *at = random() % 2 == 0;
            break;
          default: {
            // Another value of the same program.
            Json copy = original;
            Json* from = &copy;
            while (from->is_structured() && !from->empty() && random() % 12 != 0) {
              auto it = from->begin();
              std::advance(it, random() % from->size());
              from = &*it;
            }
            *at = *from;
          }
        }
        item.bytes = program.dump();
        auto model = open_bytes(write_zip(changed));
        if (!model) {
          ++refused;
          EXPECT_FALSE(model.error().message.empty());
          EXPECT_NE(model.error().code, Exit::kInternal) << model.error().message;
        }
      }
      EXPECT_GT(refused, 0u) << name << " " << record;
    }
  }
}

TEST_F(Hostile, TorchScript) {
  std::vector<ZipItem> items = items_of("traced.pt");
  for (ZipItem& item : items) {
    if (item.name.find("/code/") != std::string::npos && item.name.find(".py") == item.name.size() - 3)
      item.bytes = "x = " + std::string(100000, '(');
  }
  expect_error(write_zip(items), Exit::kUnsafe, "500 deep");
  items = items_of("traced.pt");
  item_named(items, "/version").bytes = "99";
  expect_error(write_zip(items), Exit::kUnsupported, "");
  items = items_of("traced.pt");
  item_named(items, "/data.pkl").bytes = "\x80\x02N.";
  expect_error(write_zip(items), Exit::kUnsafe, "LibTorch cannot read");
  items = items_of("traced.pt");
  item_named(items, "/data/0").bytes.resize(4);
  expect_error(write_zip(items), Exit::kUnsafe, "its record holds 4");
  items = items_of("traced.pt");
  // The strides of the first weight, (32, 1) for 64 rows: BININT1 32 becomes 33.
  std::string& pickle = item_named(items, "/data.pkl").bytes;
  size_t rows = pickle.find("(K@K t");
  ASSERT_NE(rows, std::string::npos);
  size_t strides = pickle.find("(K K\x01t", rows);
  ASSERT_NE(strides, std::string::npos);
  pickle[strides + 2] = 33;
  expect_error(write_zip(items), Exit::kUnsafe, "reaches beyond its storage");
}

/// Bits of pickles and code behind the checksums: LibTorch's readers throw, and what they throw becomes an error.
TEST_F(Fuzz, TorchScriptRecords) {
  std::mt19937 random(4);
  for (const char* name : {"traced.pt", "scripted.pt"}) {
    const std::vector<ZipItem> items = items_of(name);
    size_t refused = 0;
    for (int round = 0; round < 600; ++round) {
      std::vector<ZipItem> changed = items;
      ZipItem& item = changed[random() % changed.size()];
      if (item.bytes.empty()) continue;
      for (int k = 0; k < 1 + round % 3; ++k) item.bytes[random() % item.bytes.size()] ^= static_cast<char>(1 << random() % 8);
      auto model = open_bytes(write_zip(changed));
      if (model) continue;
      ++refused;
      EXPECT_FALSE(model.error().message.empty());
    }
    EXPECT_GT(refused, 50u) << name;
  }
}

}  // namespace
