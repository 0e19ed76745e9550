#include <gtest/gtest.h>

#include "host/cli/command.hpp"
#include "host/cli/options.hpp"

namespace sluice::cli {
namespace {

using std::string_literals::operator""s;

OrExit<operate::MessageTemplate> made(std::vector<std::string> words) {
  words.insert(words.begin(), {"--queue", "q"});
  return read_template(*Arguments::parse(*find_command("send"), words));
}

TEST(MessageTemplate, TakesJsonAsItIsAndStringsByTheirCharacters) {
  auto messages = *made({});
  const auto object = *messages.from_json("  {\"n\": 1.50} \r");
  EXPECT_EQ(object.body, "{\"n\": 1.50}");
  EXPECT_EQ(object.content_type, "application/json");
  const auto text = *messages.from_json(R"("line\nä")");
  EXPECT_EQ(text.body, "line\nä");
  EXPECT_EQ(text.content_type, "text/plain");
  EXPECT_EQ(messages.from_json("17")->content_type, "application/json");
  EXPECT_TRUE(messages.from_json("{broken").has_error());
  EXPECT_TRUE(messages.from_json("").has_error());
  EXPECT_TRUE(messages.from_json("  ").has_error());
}

TEST(MessageTemplate, TellsWhatAFileHolds) {
  auto messages = *made({});
  EXPECT_EQ(messages.from_file("a.json", "{\"a\": 1}\n")->content_type, "application/json");
  EXPECT_EQ(messages.from_file("a.json", "{\"a\": 1}\n")->body, "{\"a\": 1}");
  EXPECT_EQ(messages.from_file("a.json", "not json")->content_type, "text/plain");
  EXPECT_EQ(messages.from_file("a.txt", "{\"a\": 1}\n")->content_type, "text/plain");
  EXPECT_EQ(messages.from_file("a.txt", "{\"a\": 1}\n")->body, "{\"a\": 1}\n");
  EXPECT_EQ(messages.from_file("a.png", "\x89PNG\0"s)->content_type, "application/octet-stream");
  EXPECT_EQ(messages.from_file("empty", "")->content_type, "text/plain");
}

TEST(MessageTemplate, EveryMessageHasTheSharedOptions) {
  auto messages =
      *made({"--delay", "90s", "--attr", "a=1", "--attr", "b=x=y", "--attr", "c=", "--content-type", "x/y"});
  for (const auto& message : {*messages.from_json("1"), *messages.from_text("t"), *messages.from_file("f", "t")}) {
    EXPECT_EQ(message.delay, std::chrono::seconds(90));
    EXPECT_EQ(message.attributes, (queue::Attributes{{"a", "1"}, {"b", "x=y"}, {"c", ""}}));
    EXPECT_EQ(message.content_type, "x/y");
    EXPECT_TRUE(message.id.empty());
  }
}

TEST(MessageTemplate, KeysComeOutOfAMemberOfTheBodyOrFromWhereAPointerShows) {
  const auto id_of = [](const std::string& given, const std::string& line) {
    auto messages = *made({"-", "--dedup-id", given});
    const auto message = messages.from_json(line);
    return message.has_error() ? "error: " + message.error().message() : message->dedup_id;
  };
  EXPECT_EQ(id_of("body:order_id", R"({"order_id": "A-7"})"), "A-7");
  EXPECT_EQ(id_of("body:order_id", R"({"order_id": 7})"), "7");
  EXPECT_EQ(id_of("body:/order/id", R"({"order": {"id": "A-7"}})"), "A-7");
  EXPECT_EQ(id_of("body:order_id", R"({"order_id": 12345678901234567890123})"), "12345678901234567890123")
      << "every digit of it, or two orders are taken for one";
  EXPECT_EQ(id_of("body:price", R"({"price": 1.10})"), "1.10") << "as it is written";
  EXPECT_EQ(id_of("body:a/b~c", R"({"a/b~c": "A-7"})"), "A-7") << "a name is not a pointer";
  EXPECT_NE(id_of("body:order_id", R"({"other": 1})").find("error: the body has no text or number at"),
            std::string::npos);
  EXPECT_NE(made({"-", "--dedup-id", "body:"}).error().lines().front().find("body:order_id or body:/order/id"),
            std::string::npos);
  EXPECT_NE(made({"-", "--dedup-id", "A-7"}).error().lines().front().find("all lines but one duplicates"),
            std::string::npos);
  auto both = *made({"-", "--unique-key", "body:n", "--dedup-id", "body:id"});
  EXPECT_EQ(both.from_json(R"({"n": 1, "id": "x"})")->unique_key, "1");
}

TEST(MessageTemplate, RefusesWrongOptions) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--delay", "10"},
                                                                 {"--delay", "-1s"},
                                                                 {"--delay", "soon"},
                                                                 {"--attr", "novalue"},
                                                                 {"--attr", "=x"},
                                                                 {"--attr", "a=1", "--attr", "a=2"}}) {
    const auto wrong = made(words);
    ASSERT_TRUE(wrong.has_error()) << words[1];
    EXPECT_EQ(wrong.error().code(), kExitUsage);
    EXPECT_NE(wrong.error().lines().front().find(words[0]), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::cli
