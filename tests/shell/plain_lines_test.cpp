#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "host/cli/shell/shell.hpp"

namespace sluice::test {
namespace {

using cli::TypedLine;

/// A pipe with a text in it and nothing behind.
class Typed {
 public:
  explicit Typed(const std::string& text) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends_[1]);
  }
  ~Typed() { ::close(ends_[0]); }
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;

  TypedLine next() { return cli::read_plain_line(ends_[0]); }
  int descriptor() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_{};
};

TEST(PlainLines, GivesLinesWithoutTheirBreaks) {
  Typed typed("ls\n\r\nstats\r\nlast");
  EXPECT_EQ(typed.next().text, "ls");
  const TypedLine empty = typed.next();
  EXPECT_EQ(empty.kind, TypedLine::Kind::text);
  EXPECT_EQ(empty.text, "");
  EXPECT_EQ(typed.next().text, "stats");
  EXPECT_EQ(typed.next().text, "last");
  EXPECT_EQ(typed.next().kind, TypedLine::Kind::end);
}

TEST(PlainLines, LeavesWhatFollowsToTheCommand) {
  Typed typed("send -\n{\"a\": 1}\n");
  EXPECT_EQ(typed.next().text, "send -");
  std::array<char, 64> rest{};
  const auto count = ::read(typed.descriptor(), rest.data(), rest.size());
  EXPECT_EQ(std::string(rest.data(), static_cast<std::size_t>(count)), "{\"a\": 1}\n");
}

TEST(PlainLines, ReadsNoLongerThanItsLimit) {
  std::string name = (std::string(::testing::TempDir()) + "sluice-lines-XXXXXX");
  const int file = ::mkstemp(name.data());
  ::unlink(name.c_str());
  const std::string text = std::string(1024 * 1024 + 1, 'x') + "\nls\n";
  ASSERT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::lseek(file, 0, SEEK_SET);
  EXPECT_EQ(cli::read_plain_line(file).kind, TypedLine::Kind::too_long);
  EXPECT_EQ(cli::read_plain_line(file).text, "ls");
  EXPECT_EQ(cli::read_plain_line(file).kind, TypedLine::Kind::end);
  ::close(file);
}

}  // namespace
}  // namespace sluice::test
