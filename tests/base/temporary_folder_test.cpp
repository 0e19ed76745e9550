#include "base/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

TEST(TemporaryFolder, IsThereWithWhatIsInItUntilItsObjectGoes) {
  std::string path;
  {
    const auto folder = TemporaryFolder::make("sluice-test");
    ASSERT_TRUE(folder.has_value()) << folder.error().message();
    path = (*folder)->path();
    EXPECT_TRUE(std::filesystem::path(path).filename().string().starts_with("sluice-test-"));
    std::ofstream(path + "/file") << "text";
    EXPECT_TRUE(std::filesystem::exists(path + "/file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, SaysWhereNoneCanBeMade) {
  const auto folder = TemporaryFolder::make("no/such/folder/sluice-test");
  ASSERT_TRUE(folder.has_error());
  EXPECT_NE(folder.error().message().find("no/such/folder/sluice-test-"), std::string::npos);
  EXPECT_NE(folder.error().message().find("No such file or directory; name one that can be written with TMPDIR"),
            std::string::npos);
}

TEST(TemporaryFolder, SaysThatTmpdirIsNoFolder) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/dev/null", 1);
  errno = 0;
  const auto folder = TemporaryFolder::make("sluice-test");
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", kept.c_str(), 1);
  ASSERT_TRUE(folder.has_error());
  EXPECT_NE(folder.error().message().find("Not a directory; name one"), std::string::npos) << folder.error().message();
}

}  // namespace
}  // namespace sluice
