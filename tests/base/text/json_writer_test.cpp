#include "base/text/json_writer.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::string_literals::operator""s;

std::string laid_out(std::string_view json, JsonWriter::Layout layout) {
  JsonWriter text(layout);
  text.raw(json);
  return text.take_line();
}

TEST(JsonWriter, IndentsByTwoSpaces) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("name", "a\"b");
  json.key("list");
  json.begin_array();
  json.value(std::uint64_t{1});
  json.value(std::int64_t{-2});
  json.value(true);
  json.null();
  json.end_array();
  json.key("none");
  json.begin_object();
  json.end_object();
  json.end_object();
  EXPECT_EQ(json.take_line(), R"({
  "name": "a\"b",
  "list": [
    1,
    -2,
    true,
    null
  ],
  "none": {}
}
)");
  json.value("again");
  EXPECT_EQ(json.take_line(), "\"again\"\n");
}

TEST(JsonWriter, LaysForeignJsonOutAnewAndKeepsItsDigits) {
  const auto* foreign =
      " { \"n\" : 9007199254740993.000100 ,\t\"s\":\"a,:]}\\\"\\\\\" , \"l\" : [ ] , \"m\":[ 1 , {} ] } ";
  EXPECT_EQ(laid_out(foreign, JsonWriter::Layout::compact),
            "{\"n\":9007199254740993.000100,\"s\":\"a,:]}\\\"\\\\\",\"l\":[],\"m\":[1,{}]}\n");
  EXPECT_EQ(laid_out(foreign, JsonWriter::Layout::indented),
            "{\n  \"n\": 9007199254740993.000100,\n  \"s\": \"a,:]}\\\"\\\\\",\n  \"l\": [],\n  \"m\": [\n    1,\n    "
            "{}\n  ]\n}\n");
  EXPECT_EQ(laid_out("1e400", JsonWriter::Layout::compact), "1e400\n");
  EXPECT_EQ(laid_out("\"\"", JsonWriter::Layout::compact), "\"\"\n");
  EXPECT_EQ(laid_out("null", JsonWriter::Layout::indented), "null\n");
}

TEST(JsonWriter, ForeignJsonFitsWhereItStands) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.key("data");
  json.raw(R"({"a":[1,2]})");
  json.member("next", true);
  json.end_object();
  EXPECT_EQ(json.take_line(), "{\n  \"data\": {\n    \"a\": [\n      1,\n      2\n    ]\n  },\n  \"next\": true\n}\n");
}

/// DEL and C1 may stand in JSON as they are; a terminal obeys them.
TEST(JsonWriter, ForeignJsonCannotSteerATerminal) {
  EXPECT_EQ(laid_out("{\"\xc2\x9bk\":\"a\x7f\xc2\x9b\x33\x31mü\"}", JsonWriter::Layout::compact),
            "{\"\\u009bk\":\"a\\u007f\\u009b31mü\"}\n");
}

}  // namespace
}  // namespace sluice
