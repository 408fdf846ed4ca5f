// Output files: checks before the work, whole files or none.
#include "compiler/driver/files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace memscale::driver {
namespace fs = std::filesystem;
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("memscale-files-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }
  static std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  fs::path folder_;
};

TEST_F(Files, CheckLeavesNothing) {
  EXPECT_TRUE(bool(check_writable("--report", (folder_ / "r.json").string())));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Files, CheckKeepsAnExistingFile) {
  std::ofstream(folder_ / "r.json") << "old";
  EXPECT_TRUE(bool(check_writable("--report", (folder_ / "r.json").string())));
  EXPECT_EQ(content(folder_ / "r.json"), "old");
}

TEST_F(Files, RefusesAMissingFolderAndAFolder) {
  const Expected<Success> missing = check_writable("--output", (folder_ / "no" / "m.ms.pt").string());
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(missing.error().code, Exit::kUsage);
  EXPECT_NE(missing.error().message.find("there is no folder"), std::string::npos);
  const Expected<Success> itself = check_writable("--output", folder_.string());
  ASSERT_FALSE(bool(itself));
  EXPECT_NE(itself.error().message.find("it is a folder"), std::string::npos);
}

TEST_F(Files, ADeviceIsNeverReplaced) {
  EXPECT_FALSE(bool(check_writable("--output", "/dev/null")));
  EXPECT_TRUE(bool(check_writable("--report", "/dev/null")));
  EXPECT_TRUE(bool(write_file("/dev/null", "text")));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, WritesWhole) {
  std::ofstream(folder_ / "r.txt") << "old and longer";
  ASSERT_TRUE(bool(write_file((folder_ / "r.txt").string(), "new")));
  EXPECT_EQ(content(folder_ / "r.txt"), "new");
  EXPECT_EQ(entries(), 1u);
  EXPECT_FALSE(bool(write_file((folder_ / "no" / "r.txt").string(), "new")));
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace memscale::driver
