#include "base/temporary_folder.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
