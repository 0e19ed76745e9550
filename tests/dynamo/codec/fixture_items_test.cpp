// Items as DynamoMQ and its SDK write them: ours, and theirs where the tree has them beside it.
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dynamo/codec/json_codec.hpp"

namespace sluice::dynamo {
namespace {

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> found{SLUICE_SOURCE_DIR "/tests/fixtures/dynamomq/items.jsonl"};
  if (std::filesystem::path theirs = SLUICE_FIXTURES_DIR "/dynamomq/items.jsonl"; std::filesystem::exists(theirs)) {
    found.push_back(std::move(theirs));
  }
  return found;
}

class FixtureItems : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  std::ifstream file_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Items, FixtureItems, ::testing::ValuesIn(files()),
                         [](const auto& info) { return info.index == 0 ? "Ours" : "DynamoMqs"; });

TEST_P(FixtureItems, EveryLineComesBack) {
  boost::json::parse_options options;
  options.max_depth = 100;
  const auto tree = [&options](const std::string& text) { return boost::json::parse(text, {}, options); };
  std::string line;
  std::size_t lines = 0;
  while (std::getline(file_, line)) {
    ++lines;
    const Result<Item> item = decode_item(line);
    ASSERT_TRUE(item) << "line " << lines << ": " << item.error().message;
    const std::string encoded = encode_item(*item);
    EXPECT_EQ(*decode_item(encoded), *item) << "line " << lines;
    // Numbers are strings in DynamoDB's JSON, so that another library's tree compares them exactly.
    EXPECT_EQ(tree(encoded), tree(line)) << "line " << lines;
  }
  EXPECT_GT(lines, 100u);
}

TEST_P(FixtureItems, EveryBodyHasAPlainForm) {
  std::string line;
  while (std::getline(file_, line)) {
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
