#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("40ns"), 40ns);
  EXPECT_EQ(parse_duration("250us"), 250us);
  EXPECT_EQ(parse_duration("1500ms"), 1500ms);
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("15m"), 15min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("1d"), 24h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("007s"), 7s);
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", "s", "5", "5 s", " 5s", "5s ", "5S", "5sec", "1.5s", "+5s", "-5s", "1h30m", "0x5s",
                           "5\ts", "५s", "1e3s", "5mss", "ms5"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(parse_duration(std::string("5s\0", 3)), std::nullopt);
}

TEST(Duration, RefusesWhatOverflows) {
  EXPECT_EQ(parse_duration("9223372036854775807ns"), Duration::max());
  EXPECT_EQ(parse_duration("9223372036854775808ns"), std::nullopt);
  EXPECT_TRUE(parse_duration("106751d"));
  EXPECT_EQ(parse_duration("106752d"), std::nullopt);
  EXPECT_EQ(parse_duration("99999999999999999999s"), std::nullopt);
}

TEST(Duration, FormatsShortest) {
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(90s), "90s");
  EXPECT_EQ(format_duration(15min), "15m");
  EXPECT_EQ(format_duration(48h), "2d");
  EXPECT_EQ(format_duration(1ns), "1ns");
  EXPECT_EQ(format_duration(-5s), "-5s");
}

TEST(Duration, FormatIsReadBack) {
  for (const Duration duration :
       std::vector<Duration>{0ns, 1ns, 1001ns, 1us, 999us, 1ms, 59s, 60s, 61s, 3600s, 86400s}) {
    EXPECT_EQ(parse_duration(format_duration(duration)), duration);
  }
  EXPECT_EQ(parse_duration(format_duration(Duration::max())), Duration::max());
}

}  // namespace
}  // namespace sluice::config
