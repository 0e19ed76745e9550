#include "base/timestamp.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

WallTime at(std::int64_t seconds, std::int64_t nanoseconds = 0) {
  return WallTime(std::chrono::seconds(seconds) + Duration(nanoseconds));
}

TEST(Timestamp, WritesNineDigitsAlways) {
  EXPECT_EQ(format_timestamp(at(1701388800)), "2023-12-01T00:00:00.000000000Z");
  EXPECT_EQ(format_timestamp(at(1701388800, 120'000'000)), "2023-12-01T00:00:00.120000000Z");
  EXPECT_EQ(format_timestamp(at(-1, 999'999'999)), "1969-12-31T23:59:59.999999999Z");
}

TEST(Timestamp, ReadsWhatGoWrites) {
  EXPECT_EQ(parse_timestamp("2023-12-01T00:00:00Z"), at(1701388800));
  EXPECT_EQ(parse_timestamp("2023-12-01T00:00:00.1Z"), at(1701388800, 100'000'000));
  EXPECT_EQ(parse_timestamp("2023-12-01T00:00:00.123456789Z"), at(1701388800, 123'456'789));
  EXPECT_EQ(parse_timestamp("2023-12-01T00:00:00.1234567899Z"), at(1701388800, 123'456'789));
  EXPECT_EQ(parse_timestamp("2023-12-01T09:00:00+09:00"), at(1701388800));
  EXPECT_EQ(parse_timestamp("2023-11-30T23:30:00-00:30"), at(1701388800));
}

TEST(Timestamp, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "Z", "2023-12-01", "2023-12-01T00:00:00", "2023-12-01 00:00:00Z", "2023-13-01T00:00:00Z",
        "2023-02-29T00:00:00Z", "2023-12-01T24:00:00Z", "2023-12-01T00:60:00Z", "2023-12-01T00:00:60Z",
        "2023-12-01T00:00:00.Z", "2023-12-01T00:00:00+9:00", "2023-12-01T00:00:00Zx", "0001-01-01T00:00:00Z",
        "9999-01-01T00:00:00Z", "+023-12-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_timestamp(text).has_value()) << text;
  }
}

TEST(Timestamp, RoundTripsAndSortsAsTimesDo) {
  std::string before;
  for (std::int64_t i = 0; i < 5000; ++i) {
    const WallTime time = at(1700000000 + i * 37, (i * 7919) % 1'000'000'000);
    const std::string text = format_timestamp(time);
    EXPECT_EQ(parse_timestamp(text), time);
    EXPECT_LT(before, text);
    before = text;
  }
}

TEST(Timestamp, TheSpanBetweenAnyTwoFitsIntoItsBits) {
  EXPECT_EQ(parse_timestamp("1970-01-01T00:00:01Z"), at(1));
  for (const char* early : {"1678-01-01T00:00:00+23:59", "1700-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z"}) {
    const auto time = parse_timestamp_or_end(early);
    ASSERT_TRUE(time) << early;
    EXPECT_GT(kEndOfTime - *time, Duration::zero()) << early;
  }
}

TEST(Timestamp, AfterTheLastYearIsTheEndOfTime) {
  for (const char* late : {"2262-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2400-02-29T12:00:00+02:00"}) {
    EXPECT_EQ(parse_timestamp(late), std::nullopt) << late;
    EXPECT_EQ(parse_timestamp_or_end(late), kEndOfTime) << late;
  }
  EXPECT_EQ(parse_timestamp_or_end("2026-01-02T03:04:05Z"), parse_timestamp("2026-01-02T03:04:05Z"));
  for (const char* wrong :
       {"", "soon", "9999", "9999-13-01T00:00:00Z", "1500-01-01T00:00:00Z", "9999-12-31", "99999-01-01T00:00:00Z"}) {
    EXPECT_EQ(parse_timestamp_or_end(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace sluice
