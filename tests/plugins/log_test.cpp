#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

std::string line_for(const TestMessage& message, const OptionMap& options = {}) {
  HandlerTest log(handler_of("log"), options);
  EXPECT_TRUE(log.created()) << log.errors().front();
  EXPECT_EQ(log.handle(message).status, SLUICE_DONE);
  EXPECT_EQ(log.log().size(), 1U);
  return log.log().at(0).text;
}

TEST(LogPlugin, PrintsTheBody) { EXPECT_EQ(line_for({.body = "hello, wörld"}), "hello, wörld"); }

TEST(LogPlugin, PrintsNothingForAnEmptyBody) { EXPECT_EQ(line_for({.body = ""}), ""); }

TEST(LogPlugin, PrintsAtTheLevel) {
  const std::vector<std::string> words{"trace", "debug", "info", "warn", "error"};
  for (std::size_t level = 0; level < words.size(); ++level) {
    HandlerTest log(handler_of("log"), {{"level", words[level]}});
    EXPECT_EQ(log.handle({.body = "x"}).status, SLUICE_DONE);
    EXPECT_EQ(log.log().at(0).level, static_cast<sluice_log_level>(level));
  }
}

TEST(LogPlugin, PrintsTheFieldsInOrder) {
  const TestMessage message{
      .body = "b",
      .id = "A-1",
      .queue = "orders",
      .content_type = "text/x",
      .attributes = {{"tenant", "a b"}, {"z", ""}},
      .group = "g",
      .attempt = 3,
      .sent_at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::milliseconds(1500))};
  EXPECT_EQ(line_for(message, {{"fields", List{"size", "id", "queue", "attempt", "sent_at", "content_type", "group"}}}),
            "size=1 id=A-1 queue=orders attempt=3 sent_at=1970-01-01T00:00:01.500Z content_type=text/x group=g");
  EXPECT_EQ(line_for(message, {{"fields", List{"id", "body"}}, {"attributes", true}}), "id=A-1 tenant=a b z= body=b");
  EXPECT_EQ(line_for(message, {{"attributes", true}}), "tenant=a b z= body=b");
  EXPECT_EQ(line_for(message, {{"fields", List{}}, {"attributes", true}}), "tenant=a b z=");
}

TEST(LogPlugin, StaysOnOneLineWhateverTheBody) {
  EXPECT_EQ(line_for({.body = "a\nb\r\tc\x1b[31m"}), "a\\nb\\r\\tc\\x1b[31m");
  EXPECT_EQ(line_for({.body = std::string("\0\xff\xc3", 3)}), "\\x00\\xff\\xc3");
  EXPECT_EQ(line_for({.body = "\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80 \xe0\x80\x80"}),
            "\\xed\\xa0\\x80 \\xc0\\xaf \\xf4\\x90\\x80\\x80 \\xe0\\x80\\x80");
  EXPECT_EQ(line_for({.body = "", .attributes = {{"a\nb", "c\nd"}}}, {{"attributes", true}}), "a\\nb=c\\nd body=");
}

TEST(LogPlugin, CutsALongBodyBetweenCharacters) {
  EXPECT_EQ(line_for({.body = "0123456789"}, {{"body_limit", 10}}), "0123456789");
  EXPECT_EQ(line_for({.body = "01234567890"}, {{"body_limit", 10}}), "0123456789... (11 bytes)");
  EXPECT_EQ(line_for({.body = "aéé"}, {{"body_limit", 2}}), "a... (5 bytes)");
  EXPECT_EQ(line_for({.body = "abc"}, {{"body_limit", 0}}), "... (3 bytes)");
  EXPECT_LT(line_for({.body = std::string(400'000, 'x')}).size(), 1100U);
}

TEST(LogPlugin, RefusesOptionsItDoesNotKnow) {
  EXPECT_NE(creation_error("log", {{"level", "loud"}}).find("must be one of \"trace\", \"debug\""), std::string::npos);
  EXPECT_NE(creation_error("log", {{"fields", List{"boddy"}}}).find("it has \"boddy\""), std::string::npos);
  EXPECT_NE(creation_error("log", {{"body_limit", -1}}).find("from 0 to 65536"), std::string::npos);
  EXPECT_NE(creation_error("log", {{"body_limit", 65537}}), "");
  EXPECT_NE(creation_error("log", {{"colour", "red"}}), "");
}

}  // namespace
}  // namespace sluice::shipped
