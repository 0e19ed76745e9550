#include "host/cli/words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/shell_word.hpp"

namespace sluice::test {
namespace {

using cli::parse_input;
using cli::split_words;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words(std::string_view line) {
  const auto split = split_words(line);
  EXPECT_TRUE(split.has_value()) << line;
  return split.has_value() ? *split : std::vector<std::string>();
}

TEST(SplitWords, TakesWordsApartAtSpace) {
  EXPECT_THAT(words(""), IsEmpty());
  EXPECT_THAT(words(" \t "), IsEmpty());
  EXPECT_THAT(words("ls"), ElementsAre("ls"));
  EXPECT_THAT(words("  ls \t --limit   3 \r"), ElementsAre("ls", "--limit", "3"));
}

TEST(SplitWords, QuotesAsAShellDoes) {
  EXPECT_THAT(words(R"(ls --where 'data.type = "invoice"')"), ElementsAre("ls", "--where", R"(data.type = "invoice")"));
  EXPECT_THAT(words(R"("a \"b\" \\ \n" 'c\' d\ e)"), ElementsAre(R"(a "b" \ \n)", R"(c\)", "d e"));
  EXPECT_THAT(words(R"(a'b c'"d e"f)"), ElementsAre("ab cd ef"));
  EXPECT_THAT(words(R"('' "" x)"), ElementsAre("", "", "x"));
  EXPECT_THAT(words(R"(\'  \")"), ElementsAre("'", "\""));
  EXPECT_THAT(words("$HOME `ls` * ~"), ElementsAre("$HOME", "`ls`", "*", "~"));
}

TEST(SplitWords, EndsAtAComment) {
  EXPECT_THAT(words("# all of it"), IsEmpty());
  EXPECT_THAT(words("ls # here"), ElementsAre("ls"));
  EXPECT_THAT(words("get --id a#1"), ElementsAre("get", "--id", "a#1"));
  EXPECT_THAT(words("get --id '#1'"), ElementsAre("get", "--id", "#1"));
}

TEST(SplitWords, PointsAtWhatIsNotClosed) {
  const auto message = [](std::string_view line) {
    const auto split = split_words(line);
    EXPECT_TRUE(split.has_error()) << line;
    return split.has_error() ? split.error().message() : std::string();
  };
  EXPECT_THAT(message("ls 'abc"), HasSubstr("column 4: the quote ' is never closed"));
  EXPECT_THAT(message("ls \"abc\\\""), HasSubstr("column 4: the quote \" is never closed"));
  EXPECT_THAT(message("ls \\"), HasSubstr("column 4: the line ends with a backslash"));
}

TEST(SplitWords, ReadsWhatShellWordWrote) {
  for (const std::string word : {"A-101", "a b", "it's", "", "#1", "\"", "back\\slash", "$x", "größe", "a\tb", "*"}) {
    EXPECT_THAT(words(shell_word(word)), ElementsAre(word)) << shell_word(word);
  }
}

// DynamoMQ's table for its ParseInput.
TEST(ParseInput, Conformance62) {
  EXPECT_EQ(parse_input("").name, "");
  EXPECT_THAT(parse_input("").parameters, IsEmpty());
  EXPECT_EQ(parse_input("Command").name, "command");
  EXPECT_THAT(parse_input("Command").parameters, IsEmpty());
  EXPECT_EQ(parse_input("Command param1 param2").name, "command");
  EXPECT_THAT(parse_input("Command param1 param2").parameters, ElementsAre("param1", "param2"));
  EXPECT_EQ(parse_input("  Command  param1  param2  ").name, "command");
  EXPECT_THAT(parse_input("  Command  param1  param2  ").parameters, ElementsAre("param1", "param2"));
  // Only the first word is made small, and nothing is unquoted.
  EXPECT_THAT(parse_input("ID 'A-101'").parameters, ElementsAre("'A-101'"));
  EXPECT_THAT(parse_input("\tID\tAbC\r").parameters, ElementsAre("AbC"));
}

}  // namespace
}  // namespace sluice::test
