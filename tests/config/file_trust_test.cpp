#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/files.hpp"

namespace sluice::config {
namespace {

using testing::HasSubstr;

class FileTrustTest : public testing::Test {
 protected:
  FileTrustTest() {
    std::string name = testing::TempDir() + "sluice-trust-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string file(const std::string& name, mode_t mode) const {
    std::ofstream(path(name)) << "x";
    ::chmod(path(name).c_str(), mode);
    return path(name);
  }
  void folder(const std::string& name, mode_t mode) const {
    std::filesystem::create_directories(path(name));
    ::chmod(path(name).c_str(), mode);
  }
  std::string folder_;
};

TEST_F(FileTrustTest, TrustsWhatOnlyThisUserMayWrite) {
  EXPECT_EQ(distrust(file("a", 0644)), std::nullopt);
  EXPECT_EQ(distrust(file("b", 0755)), std::nullopt);
  EXPECT_EQ(distrust(file("c", 0400)), std::nullopt);
  EXPECT_EQ(distrust(path("absent")), std::nullopt) << "whoever opens it says so better";
}

TEST_F(FileTrustTest, NamesTheModeOfWhatEverybodyMayWriteAndTheMend) {
  const auto why = distrust(file("a", 0646));
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("may be written by everybody (mode 0646)"));
  EXPECT_THAT(*why, HasSubstr("chmod go-w"));
  EXPECT_THAT(*why, HasSubstr("--allow-insecure-files"));
}

TEST_F(FileTrustTest, AGroupIsOthersUnlessItIsTheOwnersOwn) {
  file("a", 0664);
  ASSERT_EQ(::chown(path("a").c_str(), static_cast<uid_t>(-1), ::getgid()), 0);
  if (::getuid() == ::getgid()) {
    EXPECT_EQ(distrust(path("a")), std::nullopt);
  }
  if (::chown(path("a").c_str(), static_cast<uid_t>(-1), ::getuid() + 54321) != 0) {
    GTEST_SKIP() << "needs to be root";
  }
  ::chmod(path("a").c_str(), 0664);
  EXPECT_THAT(distrust(path("a")).value_or(""), HasSubstr("(mode 0664): chmod g-w"));
}

// A volume that a kubelet makes for a pod with fsGroup: the root's, of the group that is the pod's user.
TEST_F(FileTrustTest, TheGroupOfThisUserIsNobodyElse) {
  constexpr uid_t kUser = 54321;
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs to be root";
  }
  folder("volume", 02775);
  ASSERT_EQ(::chown(path("volume").c_str(), 0, kUser), 0);
  ::chmod(path("volume").c_str(), 02775);
  ::chmod(folder_.c_str(), 0755);
  EXPECT_THAT(distrust(path("volume")).value_or(""), HasSubstr("may be written by group 54321"));
  ASSERT_EQ(::seteuid(kUser), 0);
  EXPECT_EQ(distrust(path("volume")), std::nullopt);
  ASSERT_EQ(::seteuid(0), 0);
}

TEST_F(FileTrustTest, AFolderThatIsMeantItselfIsCalledIt) {
  folder("state", 0777);
  EXPECT_EQ(distrust(path("state")).value_or("").find("is not used, because it may be written by everybody"), 0U);
}

TEST_F(FileTrustTest, AFolderInWhichAnotherFileCouldBePutInItsPlaceIsNamed) {
  folder("open", 0777);
  const auto why = distrust(file("open/a", 0644));
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("the folder " + path("open") + " may be written by everybody (mode 0777)"));
  folder("open", 01777);
  EXPECT_EQ(distrust(path("open/a")), std::nullopt) << "sticky: nobody can replace another's file";
}

TEST_F(FileTrustTest, FollowsLinksAsConfigMapsHaveThem) {
  folder("map/..2026", 0755);
  file("map/..2026/job.toml", 0644);
  std::filesystem::create_symlink("..2026", path("map/..data"));
  std::filesystem::create_symlink("..data/job.toml", path("map/job.toml"));
  EXPECT_EQ(distrust(path("map/job.toml")), std::nullopt);
  folder("map/..2026", 0777);
  EXPECT_THAT(distrust(path("map/job.toml")).value_or(""), HasSubstr("..2026 may be written by everybody"));
}

TEST_F(FileTrustTest, FollowsAbsoluteLinksFromTheRoot) {
  folder("open", 0777);
  file("open/a", 0644);
  std::filesystem::create_symlink(path("open/a"), path("link"));
  EXPECT_THAT(distrust(path("link")).value_or(""), HasSubstr("the folder " + path("open")));
}

TEST_F(FileTrustTest, ALinkInACircleIsLeftToWhoeverOpensIt) {
  std::filesystem::create_symlink(path("b"), path("a"));
  std::filesystem::create_symlink(path("a"), path("b"));
  EXPECT_EQ(distrust(path("a")), std::nullopt);
}

TEST_F(FileTrustTest, AnotherUsersFileIsRefusedWhateverItsMode) {
  file("a", 0600);
  if (::chown(path("a").c_str(), ::geteuid() + 4321, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "needs to be root";
  }
  const auto why = distrust(path("a"));
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(*why, HasSubstr("belongs to user " + std::to_string(::geteuid() + 4321)));
  EXPECT_THAT(*why, HasSubstr("run as that user, chown it, mount it read-only"));
}

}  // namespace
}  // namespace sluice::config
