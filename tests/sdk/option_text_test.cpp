#include "sluice/detail/option_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// What these say is known when the program is compiled: that is how a wrong default does not compile.
static_assert(parse_integer("42") == 42);
static_assert(!parse_integer("4x"));
static_assert(is_number("1e3") && !is_number("1e"));
static_assert(TextReader(R"(["a"])").list<Discard>([](Discard) {}));
static_assert(!TextReader(R"(["a)").list<Discard>([](Discard) {}));

TEST(ParseInteger, ReadsWholeNumbersToTheLimits) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("+7"), 7);
  EXPECT_EQ(parse_integer("1_000_000"), 1'000'000);
  EXPECT_EQ(parse_integer("9223372036854775807"), kMost);
  EXPECT_EQ(parse_integer("-9223372036854775808"), kLeast);
}

TEST(ParseInteger, RefusesEverythingElse) {
  for (const char* text : {"", "-", "+", "_1", "1_", "1__0", " 1", "1 ", "1.0", "0x10", "--1", "9223372036854775808",
                           "-9223372036854775809", "99999999999999999999999"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, ReadsNumbersAndNothingElse) {
  EXPECT_THAT(parse_number("0.25"), Optional(0.25));
  EXPECT_THAT(parse_number("-5"), Optional(-5.0));
  EXPECT_THAT(parse_number("1.5e-3"), Optional(0.0015));
  for (const char* text : {"", ".5", "5.", "1e", "e5", "nan", "inf", "1,5", "0x1p3", "1 ", "1e999"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(ParseDuration, KnowsItsUnitsAndItsLimits) {
  EXPECT_EQ(parse_duration_text("7ns"), 7);
  EXPECT_EQ(parse_duration_text("250us"), 250'000);
  EXPECT_EQ(parse_duration_text("1500ms"), 1'500'000'000);
  EXPECT_EQ(parse_duration_text("30s"), 30'000'000'000);
  EXPECT_EQ(parse_duration_text("15m"), 900'000'000'000);
  EXPECT_EQ(parse_duration_text("2h"), 7'200'000'000'000);
  EXPECT_EQ(parse_duration_text("1d"), 86'400'000'000'000);
  EXPECT_EQ(parse_duration_text("106752d"), std::nullopt);
  for (const char* text : {"", "5", "s", "-1s", "1.5s", "1 s", "1S", "1sec", "1s2"}) {
    EXPECT_EQ(parse_duration_text(text), std::nullopt) << text;
  }
}

TEST(ParseList, ReadsStringsWithEscapes) {
  EXPECT_THAT(parse_list("[]"), Optional(ElementsAre()));
  EXPECT_THAT(parse_list(R"( [ "a" , 'b' , ] )"), Optional(ElementsAre("a", "b")));
  EXPECT_THAT(parse_list(R"(["a, b", "q\"q", "\\", "\n\t", ""])"),
              Optional(ElementsAre("a, b", "q\"q", "\\", "\n\t", "")));
  EXPECT_THAT(parse_list(R"(['\n'])"), Optional(ElementsAre("\\n"))) << "a literal string has no escapes";
}

TEST(ParseList, RefusesWhatIsNoList) {
  for (const char* text : {"", "[", "]", "[a]", R"(["a)", R"(["a" "b"])", R"(["a",,"b"])", R"([,])", R"(["a"]x)",
                           R"("a")", R"(["\x"])", R"(["\)", "[1]"}) {
    EXPECT_EQ(parse_list(text), std::nullopt) << text;
  }
}

TEST(ParseMap, ReadsBareAndQuotedNames) {
  EXPECT_THAT(parse_map("{}"), Optional(ElementsAre()));
  EXPECT_THAT(parse_map(R"({a = "1", "b c"='2',})"), Optional(ElementsAre("a", "1", "b c", "2")));
}

TEST(ParseMap, RefusesWhatIsNoMap) {
  for (const char* text :
       {"", "{", "{a}", "{a=}", R"({="1"})", R"({a "1"})", R"({a = 1})", R"({a = "1" b = "2"})", "[]"}) {
    EXPECT_EQ(parse_map(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice::detail
