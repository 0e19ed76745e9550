#include "base/text/json_reader.hpp"

#include <gtest/gtest.h>

#include <boost/json/basic_parser_impl.hpp>
#include <random>

namespace sluice {
namespace {

using std::string_literals::operator""s;

bool accepts(std::string_view text, JsonReader::BadText bad_text = JsonReader::BadText::refuse) {
  JsonReader reader(text, 40, bad_text);
  return reader.skip() && reader.finish();
}

// Boost's parser as an independent judge of what is JSON. It does not build anything.
struct Ignore {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Code = boost::json::error_code;
  using View = boost::json::string_view;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t, Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_key_part(View, std::size_t, Code&) { return true; }
  bool on_key(View, std::size_t, Code&) { return true; }
  bool on_string_part(View, std::size_t, Code&) { return true; }
  bool on_string(View, std::size_t, Code&) { return true; }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(std::int64_t, View, Code&) { return true; }
  bool on_uint64(std::uint64_t, View, Code&) { return true; }
  bool on_double(double, View, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }
};

bool boost_accepts(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 40;
  boost::json::basic_parser<Ignore> parser(options);
  boost::json::error_code code;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), code);
  return !code && used == text.size();
}

TEST(JsonReader, AcceptsJson) {
  for (const std::string& text :
       {"null"s, "true"s, " false "s, "0"s, "-0"s, "-0.5e+10"s, "1E5"s, "\"\""s, "[]"s, "{}"s, "[ ]"s, "{ }"s,
        "\t[1 , 2\r\n]"s, R"({"a":{"b":[null,{"c":""}]},"d":"A\n"})"s, "\"\xc3\xa9\x7f\""s, "\"\\ud83d\\ude00\""s}) {
    EXPECT_TRUE(accepts(text)) << text;
  }
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "nul"s,
                                  "nulll"s,
                                  "True"s,
                                  "01"s,
                                  "-"s,
                                  "+1"s,
                                  "1."s,
                                  ".5"s,
                                  "1e"s,
                                  "1e+"s,
                                  "0x1"s,
                                  "NaN"s,
                                  "Infinity"s,
                                  "\""s,
                                  "\"\\\""s,
                                  "\"\\x\""s,
                                  "\"\\u12\""s,
                                  "\"\\u12g4\""s,
                                  "\"a\nb\""s,
                                  "\"\0\""s,
                                  "'a'"s,
                                  "["s,
                                  "[1"s,
                                  "[1,"s,
                                  "[1,]"s,
                                  "[,1]"s,
                                  "[1 2]"s,
                                  "]"s,
                                  "{"s,
                                  "{\"a\""s,
                                  "{\"a\":"s,
                                  "{\"a\":1"s,
                                  "{\"a\":1,"s,
                                  "{\"a\":1,}"s,
                                  "{a:1}"s,
                                  "{1:1}"s,
                                  "{\"a\" 1}"s,
                                  "{\"a\":1 \"b\":2}"s,
                                  "{,}"s,
                                  "[}"s,
                                  "{]"s,
                                  "1 2"s,
                                  "[] x"s,
                                  "// c\n1"s,
                                  "\xef\xbb\xbf"
                                  "1"s,
                                  "\"\xff\""s,
                                  "\"\xed\xa0\x80\""s,
                                  "\"\\ud800\""s,
                                  "\"\\ud800\\u0041\""s,
                                  "\"\\ude00\""s,
                                  "\"\\ud800x\""s}) {
    EXPECT_FALSE(accepts(text)) << testing::PrintToString(text);
  }
}

TEST(JsonReader, ReplacesBadTextWhereAsked) {
  const auto read = [](std::string_view text) {
    JsonReader reader(text, 4, JsonReader::BadText::replace);
    std::string out;
    EXPECT_TRUE(reader.read_string(out) && reader.finish()) << reader.reason();
    return out;
  };
  EXPECT_EQ(read("\"a\xff"
                 "b\""),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(read("\"\\ud800\""), "\xEF\xBF\xBD");
  EXPECT_EQ(read("\"\\ude00x\""), "\xEF\xBF\xBDx");
  EXPECT_EQ(read("\"\\ud800\\u0041\""),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(read("\"\\ud800\\ud83d\\ude00\""), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  EXPECT_EQ(read("\"\xed\xa0\x80\""), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(JsonReader, DepthIsLimitedAndComesDownAgain) {
  JsonReader fine("[[[]],[[]]]", 3, JsonReader::BadText::refuse);
  EXPECT_TRUE(fine.skip() && fine.finish());
  JsonReader deep("[[[[]]]]", 3, JsonReader::BadText::refuse);
  EXPECT_FALSE(deep.skip());
  EXPECT_EQ(deep.reason(), "it is nested too deep");
  const std::string endless(1'000'000, '[');
  EXPECT_FALSE(accepts(endless));
}

TEST(JsonReader, TheFirstFailureStaysAndEverythingFailsAfterIt) {
  JsonReader reader("{\n \"a\": x}", 4, JsonReader::BadText::refuse);
  std::string_view name;
  EXPECT_TRUE(reader.begin_object());
  EXPECT_TRUE(reader.next_member(name));
  EXPECT_EQ(name, "a");
  EXPECT_FALSE(reader.skip());
  EXPECT_EQ(reader.place(), "line 2, column 7");
  const std::string reason = reader.reason();
  std::string text;
  bool flag = false;
  EXPECT_FALSE(reader.next_member(name) || reader.next_element() || reader.begin_array() || reader.begin_object());
  EXPECT_FALSE(reader.read_string(text) || reader.read_bool(flag) || reader.read_null() || reader.read_number(name));
  EXPECT_FALSE(reader.skip() || reader.finish() || reader.fail("another"));
  EXPECT_EQ(reader.peek(), JsonReader::Kind::nothing);
  EXPECT_EQ(reader.reason(), reason);
}

TEST(JsonReader, NamesWithEscapesAreRead) {
  JsonReader reader(R"({"a\n\"b":1,"":2})", 4, JsonReader::BadText::refuse);
  std::string_view name;
  EXPECT_TRUE(reader.begin_object() && reader.next_member(name));
  EXPECT_EQ(name, "a\n\"b");
  EXPECT_TRUE(reader.skip() && reader.next_member(name));
  EXPECT_EQ(name, "");
  EXPECT_TRUE(reader.skip());
  EXPECT_FALSE(reader.next_member(name));
  EXPECT_TRUE(reader.finish());
}

// Mutations of JSON, judged by two parsers that share no code.
TEST(JsonReader, AgreesWithAnotherParserOnMutations) {
  const std::string seed = R"({"a":[1,-2.5e-3,true,null,"x\u00e9\ud83d\ude00\"é"],"b":{"c":[],"d":{}},"e":"\\"} )";
  const std::string alphabet = "{}[]\",:\\ueE0123456789+-.truefalsn \n\xc3\xa9\x01";
  std::mt19937 random(20240607);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text.erase(at, 1);
          break;
        case 1:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          text[at] = alphabet[random() % alphabet.size()];
      }
    }
    const bool expected = boost_accepts(text);
    ASSERT_EQ(accepts(text), expected) << text;
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(accepted, 1000);
}

// Reads a value piece by piece, as a decoder does.
bool read_through(JsonReader& reader) {
  std::string text;
  std::string_view view;
  bool flag = false;
  switch (reader.peek()) {
    case JsonReader::Kind::object:
      for (reader.begin_object(); reader.next_member(view) && read_through(reader);) {
      }
      return !reader.failed();
    case JsonReader::Kind::array:
      for (reader.begin_array(); reader.next_element() && read_through(reader);) {
      }
      return !reader.failed();
    case JsonReader::Kind::string:
      return reader.read_string(text);
    case JsonReader::Kind::number:
      return reader.read_number(view);
    case JsonReader::Kind::boolean:
      return reader.read_bool(flag);
    case JsonReader::Kind::null:
      return reader.read_null();
    case JsonReader::Kind::nothing:
      break;
  }
  return reader.skip();
}

// One that asks for each piece and one that passes over the whole end at the same byte, for the same reason.
TEST(JsonReader, SkipsWhatItReadsAndFailsWhereReadingFails) {
  constexpr std::string_view kPieces = "{}[]:,,\"\"\"aa01-.eE+ \ttnf\\\x7F\xC3\xA9";
  std::mt19937 random(5);
  int fine = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string text = random() % 2 == 0 ? "" : R"({"a":[1,{"b":[true,null]},"c"],"d":{"e":-1.5e3}})";
    for (unsigned edits = random() % 8 + (text.empty() ? 1 : 0); edits > 0; --edits) {
      const std::size_t at = random() % (text.size() + 1);
      text.replace(at, random() % 3, 1, kPieces[random() % kPieces.size()]);
    }
    JsonReader skips(text, 20, JsonReader::BadText::refuse);
    JsonReader reads(text, 20, JsonReader::BadText::refuse);
    const bool skipped = skips.skip();
    ASSERT_EQ(read_through(reads), skipped) << text;
    ASSERT_EQ(reads.offset(), skips.offset()) << text;
    if (reads.failed()) {
      ASSERT_EQ(reads.reason(), skips.reason()) << text;
    }
    fine += skipped ? 1 : 0;
  }
  EXPECT_GT(fine, 5'000);
}

// It counts on 64 bits which of those that are open are objects; beyond them it begins anew.
TEST(JsonReader, KnowsWhichBracketEndsWhatHoweverDeep) {
  for (const std::size_t depth : {1U, 63U, 64U, 65U, 127U, 128U, 129U, 200U}) {
    std::string opening;
    std::string closing;
    for (std::size_t level = 0; level < depth; ++level) {
      opening += level % 3 == 0 ? "{\"a\":" : "[";
      closing.insert(closing.begin(), level % 3 == 0 ? '}' : ']');
    }
    for (const std::string_view after : {"", ",1", ",\"b\":1"}) {
      const std::string text = opening + "1" + closing.front() + std::string(after) + closing.substr(1);
      JsonReader skips(text, depth, JsonReader::BadText::refuse);
      JsonReader reads(text, depth, JsonReader::BadText::refuse);
      EXPECT_EQ(skips.skip() && skips.finish(), read_through(reads) && reads.finish()) << text;
      EXPECT_EQ(skips.offset(), reads.offset()) << text;
    }
    const std::string text = opening + "1" + closing;
    JsonReader fine(text, depth, JsonReader::BadText::refuse);
    EXPECT_TRUE(fine.skip() && fine.finish()) << depth << ": " << fine.reason();
    for (std::size_t level = 0; level < depth; ++level) {
      std::string wrong = closing;
      wrong[level] = wrong[level] == '}' ? ']' : '}';
      const std::string bad = opening + "1" + wrong;
      JsonReader refuses(bad, depth, JsonReader::BadText::refuse);
      EXPECT_FALSE(refuses.skip());
      EXPECT_EQ(refuses.offset(), opening.size() + 1 + level);
    }
    JsonReader shallow(text, depth - 1, JsonReader::BadText::refuse);
    EXPECT_FALSE(shallow.skip());
    EXPECT_EQ(shallow.reason(), "it is nested too deep");
  }
}

TEST(JsonReader, GivesAValueAsWritten) {
  JsonReader reader(R"({ "a" :  [1.10, {"x":"\u00e9"}]  , "b":1E400})", 8, JsonReader::BadText::refuse);
  std::string_view name;
  std::string_view text;
  ASSERT_TRUE(reader.begin_object() && reader.next_member(name) && reader.read_raw(text));
  EXPECT_EQ(text, R"([1.10, {"x":"\u00e9"}])");
  ASSERT_TRUE(reader.next_member(name) && reader.read_raw(text));
  EXPECT_EQ(text, "1E400");
  EXPECT_FALSE(reader.next_member(name));
  EXPECT_TRUE(reader.finish());
  JsonReader broken("[1,", 8, JsonReader::BadText::refuse);
  EXPECT_FALSE(broken.read_raw(text));
}

}  // namespace
}  // namespace sluice
