#include "config/document.hpp"

#include <cstdlib>

#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

Expansion expanded(const std::string& text) {
  return expand(text, environment_of({{"A", "apple"}, {"EMPTY", ""}, {"ODD", "${A}}"}, {"_x1", "y"}, {"BAD", "\xff"}}));
}

TEST(Expansion, LeavesOtherTextAlone) {
  for (const char* text : {"", "plain", "$", "$A", "a$", "}", "{A}", "$ {A}", "100%"}) {
    EXPECT_EQ(expanded(text).text, text);
    EXPECT_EQ(expanded(text).error, "");
    EXPECT_FALSE(expanded(text).from_environment);
  }
}

TEST(Expansion, PutsValuesIn) {
  EXPECT_EQ(expanded("${A}").text, "apple");
  EXPECT_TRUE(expanded("${A}").from_environment);
  EXPECT_EQ(expanded("<${A}${_x1}>").text, "<appley>");
  EXPECT_EQ(expanded("${EMPTY}").text, "");
  EXPECT_EQ(expanded("${EMPTY}").error, "");
}

TEST(Expansion, NeverExpandsAValue) { EXPECT_EQ(expanded("${ODD}").text, "${A}}"); }

TEST(Expansion, TakesTheDefaultWhenUnsetOrEmpty) {
  EXPECT_EQ(expanded("${A:-b}").text, "apple");
  EXPECT_EQ(expanded("${NO:-b c}").text, "b c");
  EXPECT_EQ(expanded("${EMPTY:-b}").text, "b");
  EXPECT_EQ(expanded("${NO:-}").text, "");
  EXPECT_EQ(expanded("${NO:-${A}}").text, "apple");
  EXPECT_EQ(expanded("${NO:-<${NEITHER:-${EMPTY:-z}}>}!").text, "<z>!");
}

TEST(Expansion, EscapesWithADoubledDollar) {
  EXPECT_EQ(expanded("$${A}").text, "${A}");
  EXPECT_FALSE(expanded("$${A}").from_environment);
  EXPECT_EQ(expanded("$$$${A}").text, "$$${A}");
  EXPECT_EQ(expanded("$$A").text, "$$A");
}

TEST(Expansion, SaysWhatIsWrong) {
  EXPECT_EQ(expanded("${NO}").error, "environment variable 'NO' is not set; set it, or give a default as ${NO:-...}");
  EXPECT_EQ(expanded("${NO:?see the manual}").error, "environment variable 'NO' is not set: see the manual");
  EXPECT_EQ(expanded("${EMPTY:?}").error, "environment variable 'EMPTY' is empty");
  EXPECT_NE(expanded("${A").error, "");
  EXPECT_NE(expanded("${").error, "");
  for (const char* text : {"${}", "${ A}", "${A }", "${1}", "${A-b}", "${A:b}", "${A:=b}", "${A:}", "${ä}", "${:-b}"}) {
    EXPECT_NE(expanded(text).error.find("is not ${VAR}"), std::string::npos) << text << expanded(text).error;
  }
  EXPECT_EQ(expanded("${BAD}").error, "the value of environment variable 'BAD' is not UTF-8");
}

TEST(Expansion, StaysOnOneLine) { EXPECT_EQ(expanded("${NO:?a\nb\x1b}").error.find('\n'), std::string::npos); }

TEST(Expansion, EndsOnHostileText) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) {
    deep += "${N:-";
  }
  EXPECT_NE(expanded(deep).error, "");
  EXPECT_NE(expanded(deep + std::string(10'000, '}')).error, "");
  std::string many;
  const Environment big = environment_of({{"B", std::string(100'000, 'b')}});
  for (int i = 0; i < 1000; ++i) {
    many += "${B}";
  }
  EXPECT_NE(expand(many, big).error.find("longer than"), std::string::npos);
}

TEST(Expansion, ReadsTheProcessEnvironment) {
  ASSERT_EQ(::setenv("SLUICE_CONFIG_TEST", "here", 1), 0);
  EXPECT_EQ(process_environment()("SLUICE_CONFIG_TEST"), "here");
  ASSERT_EQ(::unsetenv("SLUICE_CONFIG_TEST"), 0);
  EXPECT_EQ(process_environment()("SLUICE_CONFIG_TEST"), std::nullopt);
}

}  // namespace
}  // namespace sluice::config
