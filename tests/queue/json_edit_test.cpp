#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/text/json_check.hpp"
#include "host/queue/content_edit.hpp"

namespace sluice::queue {
namespace {

using ::testing::HasSubstr;
using Path = std::vector<PathStep>;

std::string edited(std::string_view document, const Path& path, const std::optional<std::string>& value) {
  auto result = edit_json(document, path, value);
  return result ? *result : "error: " + result.error().message();
}

TEST(JsonEdit, TouchesNothingButTheValue) {
  const std::string document = "\n{ \"a\" : 1.500 , \"b\":[ 1E+2 ,\t-0 ], \"c\" : \"\\u0041\\/\" }\n";
  EXPECT_EQ(edited(document, {"a"}, "2"), "\n{ \"a\" : 2 , \"b\":[ 1E+2 ,\t-0 ], \"c\" : \"\\u0041\\/\" }\n");
  EXPECT_EQ(edited(document, {"b", std::size_t{0}}, "[ ]"),
            "\n{ \"a\" : 1.500 , \"b\":[ [ ] ,\t-0 ], \"c\" : \"\\u0041\\/\" }\n");
}

TEST(JsonEdit, TakesAwayWithTheRightComma) {
  EXPECT_EQ(edited("[1,2,3]", {std::size_t{0}}, std::nullopt), "[2,3]");
  EXPECT_EQ(edited("[1,2,3]", {std::size_t{1}}, std::nullopt), "[1,3]");
  EXPECT_EQ(edited("[1,2,3]", {std::size_t{2}}, std::nullopt), "[1,2]");
  EXPECT_EQ(edited("[ 1 ]", {std::size_t{0}}, std::nullopt), "[  ]");
  EXPECT_EQ(edited(R"({"a":{},"b":[]})", {"a"}, std::nullopt), R"({"b":[]})");
  EXPECT_EQ(edited(R"({"a":{},"b":[]})", {"b"}, std::nullopt), R"({"a":{}})");
  EXPECT_EQ(edited(R"({"a":{}})", {"a"}, std::nullopt), "{}");
}

TEST(JsonEdit, AddsAtTheEnd) {
  EXPECT_EQ(edited("{}", {"a"}, "1"), R"({"a":1})");
  EXPECT_EQ(edited("{ }", {"a"}, "1"), R"({"a":1 })");
  EXPECT_EQ(edited("[]", {std::size_t{0}}, "1"), "[1]");
  EXPECT_EQ(edited("[ 1 ]", {std::size_t{1}}, "2"), "[ 1,2 ]");
  EXPECT_EQ(edited(R"({"a":[{}]})", {"a", std::size_t{0}, "b"}, R"("x")"), R"({"a":[{"b":"x"}]})");
}

TEST(JsonEdit, OfAKeyTwiceTheLastOneCounts) { EXPECT_EQ(edited(R"({"a":1,"a":2})", {"a"}, "3"), R"({"a":1,"a":3})"); }

TEST(JsonEdit, BracketsInStringsAreNoBrackets) {
  const std::string document = R"({"}":"{[\"]}","x":["]","\\",{"\\\"":1}]})";
  EXPECT_EQ(edited(document, {"x", std::size_t{2}, "\\\""}, "2"), R"({"}":"{[\"]}","x":["]","\\",{"\\\"":2}]})");
  EXPECT_EQ(edited(document, {"}"}, std::nullopt), R"({"x":["]","\\",{"\\\"":1}]})");
}

TEST(JsonEdit, RefusesAndNamesTheStep) {
  EXPECT_THAT(edited(R"({"a":{}})", {"a", "b", "c"}, "1"), HasSubstr("\"b\""));
  EXPECT_THAT(edited("[1]", {std::size_t{2}}, "1"), HasSubstr("[2]"));
  EXPECT_THAT(edited("[1]", {std::size_t{1}}, std::nullopt), HasSubstr("[1]"));
  EXPECT_THAT(edited("1", {"a"}, "1"), HasSubstr("no object"));
  EXPECT_THAT(edited("{}", {std::size_t{0}}, "1"), HasSubstr("no array"));
  EXPECT_THAT(edited("{", {"a"}, "1"), HasSubstr("document is not JSON"));
  EXPECT_THAT(edited("{}", {"a"}, "{"), HasSubstr("new value is not JSON"));
  EXPECT_THAT(edited("{}", {}, std::nullopt), HasSubstr("error"));
  EXPECT_EQ(edited("nonsense", {}, " [1] "), "[1]");
}

TEST(JsonEdit, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_THAT(edited("[" + nested(kJsonDepth - 1) + "]", {std::size_t{0}}, nested(kJsonDepth)), HasSubstr("no JSON"));
  EXPECT_THAT(edited("[]", Path(1000, std::size_t{0}), "1"), HasSubstr("error"));
}

/// Random documents edited as text and as values come to the same.
class Twins {
 public:
  explicit Twins(unsigned seed) : dice_(seed) {}

  boost::json::value document(int depth) {
    switch (depth == 0 ? 2 + below(3) : below(5)) {
      case 0: {
        boost::json::object object;
        for (std::uint64_t i = 0, count = below(4); i < count; ++i) {
          object[key()] = document(depth - 1);
        }
        return object;
      }
      case 1: {
        boost::json::array array;
        for (std::uint64_t i = 0, count = below(4); i < count; ++i) {
          array.push_back(document(depth - 1));
        }
        return array;
      }
      case 2:
        return boost::json::value(below(1000));
      case 3:
        return boost::json::value(key());
      default:
        return nullptr;
    }
  }

  void edit(boost::json::value& value, std::string& text) {
    Path path;
    boost::json::value* at = &value;
    while ((at->is_object() && !at->as_object().empty()) || (at->is_array() && !at->as_array().empty())) {
      if (at->is_object()) {
        auto member = std::next(at->as_object().begin(), static_cast<std::ptrdiff_t>(below(at->as_object().size())));
        path.emplace_back(std::string(member->key()));
        at = &member->value();
      } else {
        const std::size_t index = below(at->as_array().size());
        path.emplace_back(index);
        at = &at->as_array()[index];
      }
      if (below(3) == 0) {
        break;
      }
    }
    const boost::json::value with = document(2);
    *at = with;
    const auto result = edit_json(text, path, boost::json::serialize(with));
    ASSERT_TRUE(result) << text << ": " << result.error().message();
    text = *result;
    EXPECT_EQ(boost::json::parse(text), value) << text;
  }

  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }

 private:
  std::string key() {
    static const std::vector<std::string> kKeys{"a", "b\"", "\\", "]}", "", "\n", "\xC3\xBC", "a.b"};
    return kKeys[below(kKeys.size())];
  }

  std::mt19937 dice_;
};

TEST(JsonEdit, RandomEditsOfTextAndOfValuesAgree) {
  for (unsigned seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Twins twins(seed);
    boost::json::value value = twins.document(4);
    std::string text = boost::json::serialize(value);
    for (int i = 0; i < 10 && !HasFailure(); ++i) {
      twins.edit(value, text);
    }
  }
}

}  // namespace
}  // namespace sluice::queue
