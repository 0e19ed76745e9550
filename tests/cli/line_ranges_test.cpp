#include "host/cli/line_ranges.hpp"

#include <gtest/gtest.h>

#include "host/cli/send_run.hpp"

namespace sluice::cli {
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
  const auto again = SendRun::resume(run.token(missing));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id(57), run.id(57));
  EXPECT_EQ(run.id(57).substr(23), "-000000000039");
  EXPECT_NE(run.id(57), run.id(58));
  EXPECT_TRUE(again->wants(57));
  EXPECT_FALSE(again->wants(58));
  EXPECT_FALSE(SendRun::resume("x:1"));
  EXPECT_FALSE(SendRun::resume(run.token(missing).substr(0, 23)));
}

}  // namespace
}  // namespace sluice::cli
