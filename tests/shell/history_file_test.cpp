#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "host/cli/shell/shell.hpp"

namespace sluice::test {
namespace {

using cli::HistoryFile;
using testing::ElementsAre;
using testing::IsEmpty;

class HistoryFileTest : public ::testing::Test {
 protected:
  HistoryFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-history-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~HistoryFileTest() override { std::filesystem::remove_all(folder_); }

  HistoryFile file() const { return HistoryFile(folder_ / "state" / "sluice" / "history"); }

  std::filesystem::path folder_;
};

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0U;
}

TEST_F(HistoryFileTest, GivesBackWhatWasAdded) {
  EXPECT_THAT(file().load(), IsEmpty());
  file().append("ls --dlq");
  file().append("");
  file().append("two\nlines");
  file().append("get --id größe");
  EXPECT_THAT(file().load(), ElementsAre("ls --dlq", "get --id größe"));
}

TEST_F(HistoryFileTest, BelongsToItsOwnerAlone) {
  const mode_t before = ::umask(0);
  file().append("ls");
  ::umask(before);
  EXPECT_EQ(mode_of(file().path()), 0600U);
  EXPECT_EQ(mode_of(folder_ / "state" / "sluice"), 0700U);
}

TEST_F(HistoryFileTest, TakesAwayWhatOthersMayReadAlready) {
  file().append("ls");
  ::chmod(file().path().c_str(), 0644);
  file().append("stats");
  EXPECT_EQ(mode_of(file().path()), 0600U);
}

TEST_F(HistoryFileTest, FollowsNoLink) {
  std::filesystem::create_directories(folder_ / "state" / "sluice");
  std::ofstream(folder_ / "precious") << "keep\n";
  std::filesystem::create_symlink(folder_ / "precious", file().path());
  file().append("ls");
  std::ifstream precious(folder_ / "precious");
  std::string content((std::istreambuf_iterator<char>(precious)), {});
  EXPECT_EQ(content, "keep\n");
}

TEST_F(HistoryFileTest, KeepsTheNewestThousand) {
  for (int line = 0; line < 2500; ++line) {
    file().append("get --id " + std::to_string(line));
  }
  const auto lines = file().load();
  ASSERT_EQ(lines.size(), 1000U);
  EXPECT_EQ(lines.front(), "get --id 1500");
  EXPECT_EQ(lines.back(), "get --id 2499");
  std::ifstream cut(file().path());
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(cut), {}, '\n'), 1000);
  EXPECT_EQ(mode_of(file().path()), 0600U);
  EXPECT_EQ(file().load(), lines);
}

TEST_F(HistoryFileTest, IsSilentWhereItCannotBe) {
  std::ofstream(folder_ / "state") << "a file where a folder should be";
  file().append("ls");
  EXPECT_THAT(file().load(), IsEmpty());
}

TEST_F(HistoryFileTest, LiesWhereTheEnvironmentSays) {
  const auto at = [](const char* state, const char* home) {
    const std::string old_home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
    ::setenv("XDG_STATE_HOME", state, 1);
    ::setenv("HOME", home, 1);
    const auto found = HistoryFile::at_usual_place("history");
    ::unsetenv("XDG_STATE_HOME");
    ::setenv("HOME", old_home.c_str(), 1);
    return found ? found->path() : std::string("nowhere");
  };
  EXPECT_EQ(at("/state", "/home/ada"), "/state/sluice/history");
  EXPECT_EQ(at("", "/home/ada"), "/home/ada/.local/state/sluice/history");
  EXPECT_EQ(at("relative", "/home/ada"), "/home/ada/.local/state/sluice/history");
  EXPECT_EQ(at("", ""), "nowhere");
}

}  // namespace
}  // namespace sluice::test
