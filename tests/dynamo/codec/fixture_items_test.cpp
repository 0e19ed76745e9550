// Items as DynamoMQ and its SDK wrote them.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/plain_json.hpp"

namespace sluice::dynamo {
namespace {

const std::filesystem::path kItems = std::filesystem::path(SLUICE_FIXTURES_DIR) / "dynamomq" / "items.jsonl";

TEST(FixtureItems, EveryLineComesBack) {
  std::ifstream file(kItems);
  if (!file) {
    GTEST_SKIP() << kItems << " is absent: items of DynamoMQ are NOT checked";
  }
  boost::json::parse_options options;
  options.max_depth = 100;
  const auto tree = [&options](const std::string& text) { return boost::json::parse(text, {}, options); };
  std::string line;
  std::size_t lines = 0;
  while (std::getline(file, line)) {
    ++lines;
    const Result<Item> item = decode_item(line);
    ASSERT_TRUE(item) << "line " << lines << ": " << item.error().message;
    const std::string encoded = encode_item(*item);
    EXPECT_EQ(*decode_item(encoded), *item) << "line " << lines;
    // Numbers are strings in DynamoDB's JSON, so that another library's tree compares them exactly.
    EXPECT_EQ(tree(encoded), tree(line)) << "line " << lines;
  }
  EXPECT_EQ(lines, 500u);
}

TEST(FixtureItems, EveryBodyHasAPlainForm) {
  std::ifstream file(kItems);
  if (!file) {
    GTEST_SKIP() << kItems << " is absent: bodies of DynamoMQ are NOT checked";
  }
  std::string line;
  while (std::getline(file, line)) {
    const Result<Item> item = decode_item(line);
    ASSERT_TRUE(item);
    const std::string plain = to_plain_json(item->at("data"));
    const Result<AttributeValue> back = from_plain_json(plain);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_plain_json(*back), plain);
  }
}

}  // namespace
}  // namespace sluice::dynamo
