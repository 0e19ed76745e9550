#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "host/operate/record_json.hpp"

namespace sluice::operate {
namespace {

using queue::Half;
using queue::StoredMessage;
using testing::HasSubstr;
using testing::Not;

WallTime at(long long nanoseconds) { return WallTime(std::chrono::nanoseconds(nanoseconds)); }

StoredMessage record(std::string body, std::string_view content_type) {
  StoredMessage record;
  record.message.id = "A-1";
  record.message.body = std::move(body);
  record.message.content_type = content_type;
  record.message.sent_at = at(1'767'323'045'000'000'001);
  record.created_at = at(1'767'323'045'000'000'002);
  record.updated_at = at(1'767'323'045'123'456'789);
  record.version = 7;
  return record;
}

void expect_equal(const StoredMessage& left, const StoredMessage& right) {
  EXPECT_EQ(left.message.id, right.message.id);
  EXPECT_EQ(left.message.body, right.message.body);
  EXPECT_EQ(left.message.content_type, right.message.content_type);
  EXPECT_EQ(left.message.attributes, right.message.attributes);
  EXPECT_EQ(left.message.group, right.message.group);
  EXPECT_EQ(left.message.attempt, right.message.attempt);
  EXPECT_EQ(left.message.sent_at, right.message.sent_at);
  EXPECT_EQ(left.half, right.half);
  EXPECT_EQ(left.version, right.version);
  EXPECT_EQ(left.created_at, right.created_at);
  EXPECT_EQ(left.updated_at, right.updated_at);
  EXPECT_EQ(left.received_at, right.received_at);
  EXPECT_EQ(left.invisible_until, right.invisible_until);
  EXPECT_EQ(left.failure.error, right.failure.error);
  EXPECT_EQ(left.failure.handler, right.failure.handler);
  EXPECT_EQ(left.failure.host, right.failure.host);
  EXPECT_EQ(left.failure.attempts, right.failure.attempts);
  EXPECT_EQ(left.failure.failed_at, right.failure.failed_at);
  EXPECT_EQ(left.native, right.native);
  EXPECT_EQ(left.message.checkpoint, right.message.checkpoint);
}

std::string line_of(const StoredMessage& record) {
  std::string line;
  append_record_line(line, record);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one record is one line";
  return line;
}

StoredMessage there_and_back(const StoredMessage& record) {
  const std::string line = line_of(record);
  auto back = parse_record_line(line.substr(0, line.size() - 1));
  EXPECT_TRUE(back) << line << back.error().message();
  if (!back) {
    return {};
  }
  expect_equal(record, *back);
  return std::move(*back);
}

TEST(RecordLine, HasDynamoMqsKeysFirstAndInItsOrder) {
  EXPECT_EQ(line_of(record(R"({"n":1})", "application/json")),
            R"({"id":"A-1","data":{"n":1},"receive_count":0,"queue_type":"STANDARD","version":7,)"
            R"("created_at":"2026-01-02T03:04:05.000000002Z","updated_at":"2026-01-02T03:04:05.123456789Z",)"
            R"("sent_at":"2026-01-02T03:04:05.000000001Z","received_at":"","invisible_until_at":"",)"
            R"("content_type":"application/json","attributes":{},"group":""})"
            "\n");
}

TEST(RecordLine, KeepsBodiesOfEveryKind) {
  const std::vector<std::pair<std::string, std::string>> bodies{
      {"", "text/plain"},
      {"plain \"quoted\" \\ \n\r\t\x01 \xF0\x9F\x90\x98", "text/plain"},
      {std::string("\0\xff\xfe", 3), "text/plain"},
      {std::string("\0\xff\xfe", 3), "application/octet-stream"},
      {"readable bytes", "application/octet-stream"},
      {"<a/>", "application/xml"},
      {"", "application/json"},
      {"{\"n\": 12345678901234567890123456789012345678.10, \"x\":1E-130}", "application/json"},
      {"{\"a\":1,\"a\":2}", "application/json"},
      {"1e999999999999999999", "application/json"},
      {"[1,\t2 , {}]", "application/json"},
      {" 1 ", "application/json"},
      {"{\n  \"a\": 1\n}", "application/json"},
      {"\"\\ud800 lone\"", "application/json"},
      {"not json", "application/json"},
      {"{\"base64\":\"AA==\"}", "application/json"},
      {std::string("\"\xff\"", 3), "application/json"},
      {std::string(100, '[') + std::string(100, ']'), "application/json"},
      {std::string(255, '[') + std::string(255, ']'), "application/json"},
      {std::string(256, '[') + std::string(256, ']'), "application/json"},
      {std::string(5000, '[') + std::string(5000, ']'), "application/json"},
      {"1", "application/json; charset=utf-8"}};
  for (const auto& [body, content_type] : bodies) {
    SCOPED_TRACE(body.substr(0, 60));
    there_and_back(record(body, content_type));
  }
}

TEST(RecordLine, ShowsJsonAsJsonWhereItCan) {
  EXPECT_THAT(line_of(record("[1,\t2 ]", "application/json")), HasSubstr("\"data\":[1,\t2 ],\"rec"));
  EXPECT_THAT(line_of(record("[1,\n2]", "application/json")), HasSubstr(R"("data":"[1,\n2]","data_encoding":"text")"));
}

TEST(RecordLine, KeepsEveryOtherField) {
  StoredMessage full = record("x", "text/plain");
  full.message.id = "id \"with\" everything \xC3\xA9 \x7f";
  full.message.attributes = {{"", "empty name"}, {"a", ""}, {"tenant", "a\nb"}};
  full.message.group = "g/1";
  full.message.attempt = 4'294'967'295;
  full.half = Half::dlq;
  full.version = std::numeric_limits<std::int64_t>::max();
  full.received_at = at(0);
  full.invisible_until = at(1'999'999'999'999'999'999);
  full.failure = {"it broke: \x1b[31m", "greeter", "host-1", 3, at(5)};
  full.native = R"({"id":{"S":"x"},"tags":{"SS":["a","b"]}})";
  there_and_back(full);
}

TEST(RecordLine, KeepsWhatIsNotUtf8) {
  StoredMessage odd = record("x", "text/plain");
  odd.message.id = "\xff\x01";
  odd.message.content_type = "te\xffxt";
  odd.message.attributes = {{"good", "\x80"}, {"\xfe", "bad name"}, {"", ""}};
  odd.message.group = "\xc3";
  odd.failure.error = "cut in the middle of a character \xe2\x82";
  there_and_back(odd);
}

TEST(RecordLine, RandomRecordsComeBack) {
  SeededRandom random(20260102);
  const auto bytes = [&](std::size_t most) {
    std::string text;
    for (std::size_t left = random.below(most); left > 0; --left) {
      text += static_cast<char>(random.below(random.below(3) == 0 ? 256 : 128));
    }
    return text;
  };
  for (int run = 0; run < 2000; ++run) {
    StoredMessage made = record(bytes(40), random.below(2) == 0 ? "application/json" : "text/plain");
    made.message.id = "x" + bytes(5);
    made.message.group = bytes(4);
    made.message.attributes = {{bytes(4), bytes(6)}, {bytes(4), bytes(6)}};
    made.failure.error = bytes(9);
    made.version = static_cast<std::int64_t>(random.next());
    made.message.sent_at = at(static_cast<long long>(random.below(9'000'000'000'000'000'000)));
    there_and_back(made);
  }
}

TEST(RecordLine, CutAnywhereIsRefusedAndNeverRead) {
  StoredMessage full = record(R"({"a":[1,2]})", "application/json");
  full.message.attributes = {{"k", "\xff"}};
  full.failure = {"e", "h", "o", 1, at(5)};
  full.native = R"({"id":{"S":"x"}})";
  const std::string line = line_of(full);
  for (std::size_t length = 0; length + 1 < line.size() - 1; ++length) {
    EXPECT_FALSE(parse_record_line(line.substr(0, length))) << length;
  }
}

TEST(RecordLine, SaysWhatIsWrongAndWhere) {
  const std::string good = line_of(record("x", "text/plain"));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "column 1: "},
      {"{\"order\": 7}", "column 10: \"order\" is no key"},
      {"[1]", "column 1: an object is expected"},
      {good + "{}", "there is more text after the value"},
      {with("\"version\":7", "\"version\":7.5"), "a whole number up to 9223372036854775807"},
      {with("\"version\":7", "\"version\":9223372036854775808"), "a whole number"},
      {with("\"receive_count\":0", "\"receive_count\":-1"), "a whole number up to 4294967295"},
      {with("STANDARD", "standard"), "\"STANDARD\" or \"DLQ\""},
      {with("\"version\":7,", ""), "it has no \"version\", so it is no record of `sluice export`"},
      {with("\"version\":7,", "\"version\":7,\"version\":7,"), "\"version\" is given twice"},
      {with("\"id\":\"A-1\"", "\"id\":\"\""), "its \"id\" is empty"},
      {with("\"id\":\"A-1\"", "\"id\":{\"base64\":\"A\"}"), "no base64"},
      {with("\"id\":\"A-1\"", "\"id\":{}"), "a string is expected"},
      {with("\"id\":\"A-1\"", "\"id\":\"\xff\""), "column"},
      {with("\"data\":\"x\"", "\"data\":1"), "\"data\" is no string"},
      {with("\"data\":\"x\"", "\"data\":\"x\",\"data_encoding\":\"base64\""), "\"data\" is no base64"},
      {with("\"data\":\"x\"", "\"data\":\"x\",\"data_encoding\":\"gzip\""), "\"text\" or \"base64\""},
      {with("2026-01-02T03:04:05.000000001Z", "yesterday"), "a time such as"},
      {with("2026-01-02T03:04:05.000000001Z", ""), "this time may not be empty"},
      {with("\"attributes\":{}", "\"attributes\":{\"a\":1}"), "column"},
      {with("\"attributes\":{}", "\"attributes\":[[\"a\"]]"), "a name and a value"},
      {with("\"attributes\":{}", "\"attributes\":[[\"a\",\"b\",\"c\"]]"), "a name and a value"},
      {with("\"attributes\":{}", "\"attributes\":{\"a\":\"1\",\"a\":\"2\"}"), "given twice"},
      {with("\"group\":\"\"", "\"group\":\"\",\"item\":[]"), "\"item\" is an object"},
      {with("\"group\":\"\"", "\"group\":\"\",\"failure\":{\"reason\":\"\"}"), "no key of a failure"},
      {with("\"data\":\"x\"", "\"data\":" + std::string(1000, '[') + std::string(1000, ']')), "too deep"}};
  for (const auto& [line, expected] : cases) {
    const auto read = parse_record_line(line);
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code(), ErrorCode::invalid);
    EXPECT_THAT(read.error().message(), HasSubstr(expected)) << line;
    EXPECT_THAT(read.error().message(), Not(HasSubstr("line 1"))) << "the caller knows the line";
    EXPECT_EQ(read.error().message().find('\n'), std::string::npos);
  }
}

TEST(RecordLine, NothingInItSteersATerminal) {
  StoredMessage hostile = record(
      "{\"\x7f\":\"\xc2\x9b"
      "2J\"}",
      "application/json");
  hostile.native = "{\"a\":{\"S\":\"\xc2\x9b\x7f\"}}";
  const std::string line = line_of(hostile);
  EXPECT_EQ(line.find('\x7f'), std::string::npos);
  EXPECT_EQ(line.find('\xc2'), std::string::npos);
  EXPECT_THAT(line, testing::HasSubstr(R"("item":{"a":{"S":"\u009b\u007f"}})"));
  const auto back = parse_record_line(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message.body, hostile.message.body);
}

TEST(CopyRecord, ACheckpointIsCarriedAndPeopleSeeItsSize) {
  StoredMessage stored = record("body", queue::kTextPlain);
  EXPECT_THAT(line_of(stored), Not(HasSubstr("checkpoint")));
  for (const std::string& bytes : {std::string("12/100"), std::string("\0\xff", 2)}) {
    stored.message.checkpoint = bytes;
    expect_equal(there_and_back(stored), stored);
    JsonWriter json;
    json.begin_object();
    write_members(json, stored, {});
    json.end_object();
    EXPECT_THAT(json.take_line(), HasSubstr("\"checkpoint_bytes\":" + std::to_string(bytes.size())));
  }
  stored.message.checkpoint = std::string(queue::kMostCheckpointBytes + 1, 'x');
  const auto refused = parse_record_line(line_of(stored));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("at most 65536 bytes, this one has 65537"));
}

}  // namespace
}  // namespace sluice::operate
