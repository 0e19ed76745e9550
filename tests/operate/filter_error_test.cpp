#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/operate/filter.hpp"

namespace sluice::operate {
namespace {

using testing::HasSubstr;

/// Column and message of the error; the test fails where there is none.
std::pair<std::size_t, std::string> error_of(const std::string& text) {
  const auto filter = Filter::parse(text);
  EXPECT_TRUE(filter.has_error()) << text;
  return filter.has_error() ? std::pair(filter.error().column, filter.error().message)
                            : std::pair(std::size_t{0}, std::string());
}

TEST(FilterErrors, PointAtTheColumnAndSayWhatIsMeant) {
  struct Case {
    const char* text;
    std::size_t column;
    const char* message;
  };
  for (const Case& one : {
           Case{"", 1, "expected a condition"},
           Case{"   ", 4, "expected a condition"},
           Case{"receive_count > ", 17, "expected a value after \">\""},
           Case{"receive_count > and", 17, "expected a value after \">\""},
           Case{"recieve_count > 3", 1, "unknown field \"recieve_count\"; did you mean receive_count?"},
           Case{"zzz = 1", 1, "a text stands in quotes"},
           Case{"data.type = invoice", 13, "is no field; a text stands in quotes: \"invoice\""},
           Case{"id = 'x' or", 12, "expected a condition after \"or\""},
           Case{"id = 'x' id = 'y'", 10, "expected and, or, or the end, not \"id\""},
           Case{"(id = 'x'", 10, "expected \")\" to close the parenthesis"},
           Case{"id = 'x')", 9, "expected and, or, or the end"},
           Case{"id 'x'", 4, "expected a comparison such as = or >, not a text"},
           Case{"id not 'x'", 8, "expected like or in"},
           Case{"id", 3, "expected a comparison such as = or >, not the end"},
           Case{"id = 'x", 6, "the text has no end; close it with '"},
           Case{"id = 'a\\qb'", 8, "after \\ in a text"},
           Case{"id = #", 6, "\"#\" has no meaning here"},
           Case{"age > 10", 7, "age is a duration; write one such as 10m"},
           Case{"age > 10x", 7, "\"10x\" is neither a number nor a duration"},
           Case{"receive_count = '3'", 17, "receive_count is a number; write one such as 3"},
           Case{"'3' = receive_count", 1, "receive_count is a number"},
           Case{"receive_count in (1, '2')", 22, "receive_count is a number"},
           Case{"receive_count = 01", 17, "neither a number"},
           Case{"id = 5", 6, "id is text; write it in quotes"},
           Case{"sent_at > 'yesterday'", 11, "sent_at is a time; write one such as"},
           Case{"sent_at > 2026-13-01", 11, "2026-13-01 is no time"},
           Case{"state = 'in-flight'", 9, "did you mean \"in_flight\"?"},
           Case{"state = 'done'", 9, "state is one of \"ready\", \"in_flight\", \"delayed\""},
           Case{"queue_type = 'dlq'", 14, "queue_type is one of"},
           Case{"priority = 'hihg'", 12,
                "priority is one of \"critical\", \"high\", \"normal\", \"low\"; did you mean \"high\"?"},
           Case{"failure = 'x'", 11, "cannot be compared"},
           Case{"failure.eror = 'x'", 8, "did you mean error?"},
           Case{"id.x = 'y'", 3, "nothing lies below this field"},
           Case{"attributes = 'x'", 12, "attributes needs a name"},
           Case{"attributes.a.b = 'x'", 13, "nothing lies below this field"},
           Case{"attributes[0] = 'x'", 11, "nothing lies below this field"},
           Case{"data.0 = 1", 6, "expected a name after \".\""},
           Case{"data[x] = 1", 6, "expected an index"},
           Case{"data[-1] = 1", 6, "expected an index"},
           Case{"data[1 = 1", 8, "expected \"]\""},
           Case{"exists data", 8, "expected \"(\" after exists"},
           Case{"exists(1)", 8, "expected a field"},
           Case{"exists(data = 1", 13, "expected \")\" after the field"},
           Case{"id like x", 9, "expected a text in quotes after like"},
           Case{"id in 'x'", 7, "expected \"(\" after in"},
           Case{"id in ()", 8, "expected a value after \"(\""},
           Case{"id in ('x' 'y')", 12, "or \",\" after the value"},
           Case{"data.ü = 'ä' and ö = 1", 18, "unknown field \"ö\""},
       }) {
    const auto [column, message] = error_of(one.text);
    EXPECT_EQ(column, one.column) << one.text << "\n" << message;
    EXPECT_THAT(message, HasSubstr(one.message)) << one.text;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(FilterErrors, DepthAndLengthHaveBounds) {
  EXPECT_THAT(error_of(std::string(100'000, '(')).second, HasSubstr("longer than 64 KiB"));
  const auto deep = error_of(std::string(60'000, '('));
  EXPECT_EQ(deep.first, 65U);
  EXPECT_THAT(deep.second, HasSubstr("nested deeper than 64 levels"));
  std::string negations;
  for (int level = 0; level < 1000; ++level) {
    negations += "not ";
  }
  EXPECT_THAT(error_of(negations + "id = 'x'").second, HasSubstr("nested deeper"));
  std::string path = "data";
  for (int level = 0; level < 100; ++level) {
    path += ".a";
  }
  EXPECT_THAT(error_of(path + " = 1").second, HasSubstr("too long"));
  std::string wide = "id = 'x'";
  for (int term = 0; term < 3000; ++term) {
    wide += " or id = 'x'";
  }
  EXPECT_FALSE(Filter::parse(wide).has_error()) << "long is not deep";
}

}  // namespace
}  // namespace sluice::operate
