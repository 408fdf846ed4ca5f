// Target profiles are found by name and by path; what is not found is answered with what there is.
#include "compiler/driver/target.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace memscale::driver {
namespace fs = std::filesystem;
namespace {

TEST(Target, ByName) {
  const Expected<Target> cpu = find_target("cpu");
  ASSERT_TRUE(bool(cpu)) << cpu.error().message;
  EXPECT_EQ(cpu->profile.device, "cpu");
  const Expected<Target> h200 = find_target("h200");
  ASSERT_TRUE(bool(h200)) << h200.error().message;
  EXPECT_EQ(h200->profile.compute_capability, 90);
  EXPECT_TRUE(fs::is_regular_file(h200->path));
}

TEST(Target, UnknownNamesListTheKnown) {
  const Expected<Target> wrong = find_target("h20");
  ASSERT_FALSE(bool(wrong));
  EXPECT_EQ(wrong.error().code, Exit::kUsage);
  EXPECT_NE(wrong.error().help.find("'h200'"), std::string::npos);
  EXPECT_NE(wrong.error().help.find("cpu"), std::string::npos);
  EXPECT_EQ(wrong.error().help.find("workspaces"), std::string::npos);  // tables are no profiles
  EXPECT_FALSE(bool(find_target("cpu.workspaces")));
  EXPECT_FALSE(bool(find_target("/no/such/profile.yaml")));
}

TEST(Target, ByPathAndFolder) {
  const fs::path folder = fs::temp_directory_path() / ("memscale-targets-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::stringstream text;
  text << std::ifstream(find_target("h200")->path).rdbuf();
  std::string profile = text.str();
  std::ofstream(folder / "mine.yaml") << profile;
  EXPECT_TRUE(bool(find_target((folder / "mine.yaml").string())));
  ::setenv("MEMSCALE_TARGETS_DIR", folder.c_str(), 1);
  EXPECT_TRUE(bool(find_target("mine")));
  EXPECT_FALSE(bool(find_target("cpu")));  // the folder that is named is the only one
  ::unsetenv("MEMSCALE_TARGETS_DIR");

  const size_t at = profile.find("compute_capability");
  profile.erase(at, profile.find('\n', at) - at + 1);
  std::ofstream(folder / "mine.yaml") << profile;
  const Expected<Target> without = find_target((folder / "mine.yaml").string());
  ASSERT_FALSE(bool(without));
  EXPECT_NE(without.error().message.find("compute_capability"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace memscale::driver
