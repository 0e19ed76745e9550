#include "host/operate/json_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::operate {
namespace {

using testing::HasSubstr;

std::string again(const std::string& text) {
  const auto value = parse_json(text);
  return value ? to_json(*value) : value.error().message();
}

TEST(JsonValue, KeepsDigitsOrderAndCharacters) {
  for (const std::string text :
       {R"({"z":9007199254740993,"a":1.50,"m":-0.0,"e":1E+2,"big":123456789012345678901234567890.000})",
        R"([null,true,false,"",{},[],[[]]])", R"("\"\\\n\u0001 ü 🙂")", "12.340", R"({"":{"":1}})"}) {
    EXPECT_EQ(again(text), text);
  }
  EXPECT_EQ(again(R"(  [ 1 , "\u0041" ]  )"), R"([1,"A"])");
}

TEST(JsonValue, SaysWhereTextIsNoJson) {
  EXPECT_THAT(again("{\n  \"a\": 1,\n  b\n}"), HasSubstr("at line 3, column 3"));
  EXPECT_THAT(again("[1] 2"), HasSubstr("at line 1, column 5"));
  EXPECT_THAT(again("[1,"), HasSubstr("it ends too early"));
  EXPECT_THAT(again(""), HasSubstr("it ends too early"));
  EXPECT_THAT(again("\"\xff\""), HasSubstr("no JSON"));
  EXPECT_THAT(again(std::string(1000, '[')), HasSubstr("no JSON"));
}

TEST(JsonValue, FindsWhatAPathLeadsTo) {
  const auto value = *parse_json(R"({"a":[{"b":1},{"b":2}],"k":1,"k":2})");
  const auto at = [&value](std::vector<queue::PathStep> path) {
    const JsonValue* found = value.at(path);
    return found == nullptr ? std::string("nothing") : to_json(*found);
  };
  EXPECT_EQ(at({"a", std::size_t{1}, "b"}), "2");
  EXPECT_EQ(at({"k"}), "2") << "the last of a key counts";
  EXPECT_EQ(at({}), to_json(value));
  EXPECT_EQ(at({"a", std::size_t{2}}), "nothing");
  EXPECT_EQ(at({"a", "b"}), "nothing");
  EXPECT_EQ(at({"k", std::size_t{0}}), "nothing");
  EXPECT_EQ(at({std::size_t{0}}), "nothing");
}

}  // namespace
}  // namespace sluice::operate
