#include "base/shell_word.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(ShellWord, IsQuotedOnlyWhereAShellWouldReadItOtherwise) {
  EXPECT_EQ(shell_word("dynamo-mq-table"), "dynamo-mq-table");
  EXPECT_EQ(shell_word("http://127.0.0.1:8000"), "http://127.0.0.1:8000");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("größe"), "größe");
  EXPECT_EQ(shell_word("my file.toml"), "'my file.toml'");
  EXPECT_EQ(shell_word("$(rm)"), "'$(rm)'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
}

}  // namespace
}  // namespace sluice
