#include "base/text/plain_json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "base/text/json_reader.hpp"

namespace sluice {
namespace {

constexpr std::size_t kDepth = 20;

/// How long the value is by the reader's own way, which it takes within an array; 0: there is none.
std::size_t read_length(const std::string& text) {
  const std::string within = "[" + text;
  JsonReader reader(within, kDepth + 1, JsonReader::BadText::refuse);
  return reader.begin_array() && reader.next_element() && reader.skip() ? reader.offset() - 1 : 0;
}

TEST(PlainJson, IsPassedOverWhole) {
  for (const std::string text : {"1", " -0.5e+3", "\"\"", "[]", "{}", "[ ]", "{ }", "true", "false", "null",
                                 R"({"a": [1, {"b": []}, "c"], "d": {}})", "[[],[[]],{}]", "\t[\r\n1 , 2 ] "}) {
    EXPECT_EQ(plain_json(text, kDepth), text.find_last_not_of(' ') + 1) << text;
  }
  EXPECT_EQ(plain_json("1 2", kDepth), 1U);
  EXPECT_EQ(plain_json("[1]]", kDepth), 3U);
}

TEST(PlainJson, IsNotWhatTheReaderMustLookAt) {
  for (const char* text :
       {"",     " ",    "\"a\\n\"", "\"\xC3\xA4\"", "\"\x01\"",   "\"",    "\"a",   "[",         "{",  "[1", "[1,",
        "[1,]", "[,1]", "{\"a\"}",  "{\"a\":}",     "{\"a\":1,}", "{a:1}", "[1}",   "{\"a\":1]", "01", "-",  "1.",
        ".5",   "1e",   "+1",       "tru",          "nul",        "x",     "[1 2]", "{\"a\" 1}", ",",  "]",  "}"}) {
    EXPECT_EQ(plain_json(text, kDepth), 0U) << text;
  }
  EXPECT_EQ(plain_json(std::string(64, '[') + std::string(64, ']'), 128), 128U);
  EXPECT_EQ(plain_json(std::string(65, '[') + std::string(65, ']'), 128), 0U);
  EXPECT_EQ(plain_json("[[1]]", 1), 0U);
}

// Whatever it passes over is what the reader passes over, and to the byte.
TEST(PlainJson, AgreesWithTheReader) {
  constexpr std::string_view kPieces = "{}[]:,,\"\"\"aa01-.eE+ \ttnf\\\x7F";
  SeededRandom random(5);
  std::size_t passed = 0;
  for (int tries = 0; tries < 300'000; ++tries) {
    std::string text = random.below(2) == 0 ? "" : R"({"a":[1,{"b":[true,null]},"c"],"d":{"e":-1.5e3}})";
    for (std::uint64_t edits = random.below(8) + (text.empty() ? 1 : 0); edits > 0; --edits) {
      const std::size_t place = random.below(text.size() + 1);
      text.replace(place, random.below(3), 1, kPieces[random.below(kPieces.size())]);
    }
    const std::size_t length = plain_json(text, kDepth);
    if (length > 0) {
      ++passed;
      ASSERT_EQ(length, read_length(text)) << text;
    } else if (text.find_first_of("\\\x7F") == std::string::npos) {
      ASSERT_EQ(read_length(text), 0U) << "plain text is not passed over: " << text;
    }
  }
  EXPECT_GT(passed, 10'000U);
}

}  // namespace
}  // namespace sluice
