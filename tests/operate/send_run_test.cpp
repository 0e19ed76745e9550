#include "host/operate/send_run.hpp"

#include <gtest/gtest.h>

namespace sluice::operate {
namespace {

TEST(LineRanges, AreWrittenAndReadAsPeopleDo) {
  LineRanges lines;
  EXPECT_TRUE(lines.empty());
  for (const std::uint64_t line : {3, 51, 52, 53, 60}) {
    lines.add(line);
  }
  lines.add_from(101);
  EXPECT_EQ(lines.text(), "3,51-53,60,101-");
  const auto read = LineRanges::parse(lines.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), lines.text());
  for (const std::uint64_t line : {3, 51, 53, 60, 101, 1'000'000}) {
    EXPECT_TRUE(read->contains(line)) << line;
  }
  for (const std::uint64_t line : {1, 2, 4, 50, 54, 100}) {
    EXPECT_FALSE(read->contains(line)) << line;
  }
  EXPECT_EQ(lines.at_most(2).text(), "3,51-");
}

TEST(LineRanges, RefuseWhatIsNone) {
  for (const char* text : {"", ",", "0", "a", "3-2", "5,4", "3,3", "1-,5", "-4", "1-2-3", "1,"}) {
    EXPECT_FALSE(LineRanges::parse(text)) << text;
  }
}

TEST(SendRun, ALineHasItsIdInEveryRepetition) {
  SeededRandom random(1);
  const SendRun run = SendRun::begin(random);
  EXPECT_TRUE(run.wants(1) && run.wants(1'000'000));
  LineRanges missing;
  missing.add(57);
  const auto again = SendRun::resume(run.token(missing, {}));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(57), run.id(57));
  EXPECT_EQ(run.id(57).substr(23), "-000000000039");
  EXPECT_NE(run.id(57), run.id(58));
  EXPECT_TRUE(again->wants(57));
  EXPECT_FALSE(again->wants(58));
  EXPECT_FALSE(SendRun::resume("x:1"));
  EXPECT_FALSE(SendRun::resume(run.token(missing, {}).substr(0, 23)));
}

TEST(SendRun, KnowsInEveryRepetitionWhatMayHaveBeenStoredAndWhen) {
  SeededRandom random(1);
  const SendRun run = SendRun::begin(random);
  EXPECT_FALSE(run.repeats());
  LineRanges missing;
  missing.add(3);
  missing.add(51);
  missing.add_from(101);
  UnsureLines unsure;
  unsure.add("01JD8A", 3);
  unsure.add("01JD8C", 51);
  const std::string token = run.token(missing, unsure);
  EXPECT_EQ(token.substr(23), ":3,51,101-@01JD8A:3@01JD8C:51");
  const auto again = SendRun::resume(token);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeats());
  EXPECT_EQ(again->unsure().moment_of(3), "01JD8A");
  EXPECT_EQ(again->unsure().moment_of(51), "01JD8C");
  EXPECT_EQ(again->unsure().moment_of(101), "");
  EXPECT_EQ(again->unsure().count(), 2U);
  EXPECT_EQ(again->token(again->rest(50), again->unsure().behind(50)).substr(23), ":51,101-@01JD8C:51");
  for (const char* wrong : {"@", "@01JD8A", "@01JD8A:", "@:3", "@01 JD:3", "@01JD8A:3@", "@01JD8A:x", "@01JD8A:3,2"}) {
    EXPECT_FALSE(SendRun::resume(run.name() + ":3" + wrong)) << wrong;
  }
}

TEST(LineRanges, CanBeCutAndPutTogether) {
  const auto lines = LineRanges::parse("3,51-53,101-");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->count(), 3U);
  EXPECT_EQ(lines->behind(51).text(), "52-53,101-");
  EXPECT_EQ(lines->behind(53).text(), "101-");
  EXPECT_EQ(lines->behind(0).text(), lines->text());
  LineRanges whole = *LineRanges::parse("1,50");
  whole.add(lines->behind(3));
  EXPECT_EQ(whole.text(), "1,50-53,101-");
}

}  // namespace
}  // namespace sluice::operate
