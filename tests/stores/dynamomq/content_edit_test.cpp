// Edits of one item's content, in memory: each kind of path, and what lies beside it.

#include "host/stores/dynamomq/content_edit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/stores/dynamomq/record.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using dynamo::Binary;
using dynamo::Item;
using dynamo::List;
using dynamo::Map;
using dynamo::Number;
using queue::ContentEdit;
using Path = std::vector<queue::PathStep>;

Item document() {
  return {{"id", "A-1"},
          {"data", Map{{"n", Number{"0.12345678901234567890123"}},
                       {"set", dynamo::NumberSet{{"1", "2"}}},
                       {"deep", Map{{"bytes", Binary{"\x01\xff"}}, {"list", List{Number{"1"}, Number{"2"}}}}}}},
          {"theirs", dynamo::StringSet{{"x"}}}};
}

Item edited(Item item, const std::vector<ContentEdit>& edits) {
  const auto applied = queue::dynamomq::apply_edits(item, edits);
  EXPECT_TRUE(applied) << applied.error().message();
  return item;
}

Item edited(Item item, Path path, std::optional<std::string> json) {
  return edited(std::move(item), {{std::move(path), std::move(json)}});
}

std::string refusal(Item item, Path path, std::optional<std::string> json) {
  const std::vector<ContentEdit> edits{{std::move(path), std::move(json)}};
  const auto applied = queue::dynamomq::apply_edits(item, edits);
  EXPECT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), ErrorCode::invalid);
  EXPECT_EQ(applied.error().message().find('\n'), std::string::npos);
  return applied.error().message();
}

Map& data(Item& item) { return *item.at("data").get<Map>(); }

TEST(ContentEditTest, SetsAKeyAndLeavesEverythingBesideItAlone) {
  Item expected = document();
  data(expected)["deep"].get<Map>()->insert_or_assign("new", AttributeValue(Number{"1.50"}));
  EXPECT_EQ(edited(document(), {"data", "deep", "new"}, "1.50"), expected);
}

TEST(ContentEditTest, SetsReplacesAppendsAndRemovesInArrays) {
  const auto list = [](Item item) { return *data(item)["deep"].get<Map>()->at("list").get<List>(); };
  const Path path{"data", "deep", "list"};
  const auto at = [&](std::size_t index) {
    Path whole = path;
    whole.emplace_back(index);
    return whole;
  };
  EXPECT_EQ(list(edited(document(), at(0), "9")), (List{Number{"9"}, Number{"2"}}));
  EXPECT_EQ(list(edited(document(), at(2), "3")), (List{Number{"1"}, Number{"2"}, Number{"3"}}));
  EXPECT_EQ(list(edited(document(), at(0), std::nullopt)), (List{Number{"2"}}));
  EXPECT_THAT(refusal(document(), at(3), "3"), ::testing::HasSubstr("[3]: the array has 2 elements"));
  EXPECT_THAT(refusal(document(), at(2), std::nullopt), ::testing::HasSubstr("[2]"));
}

/// An editor shows a set as an array; what it gives back is still a set.
TEST(ContentEditTest, SetsStaySets) {
  const auto set = [](const Item& item) { return data(const_cast<Item&>(item)).at("set"); };
  const Path path{"data", "set"};
  const auto at = [&](std::size_t index) {
    Path whole = path;
    whole.emplace_back(index);
    return whole;
  };
  using dynamo::NumberSet;
  EXPECT_EQ(set(edited(document(), at(1), "3.50")), AttributeValue(NumberSet{{"1", "3.50"}}));
  EXPECT_EQ(set(edited(document(), at(2), "3")), AttributeValue(NumberSet{{"1", "2", "3"}}));
  EXPECT_EQ(set(edited(document(), at(0), std::nullopt)), AttributeValue(NumberSet{{"2"}}));
  EXPECT_EQ(set(edited(document(), path, "[7,8]")), AttributeValue(NumberSet{{"7", "8"}}));
  EXPECT_EQ(set(edited(document(), path, R"([7,"8"])")), AttributeValue(List{Number{"7"}, "8"})) << "it asks for that";
  EXPECT_EQ(set(edited(document(), path, "[7,7]")), AttributeValue(List{Number{"7"}, Number{"7"}}));
  EXPECT_EQ(set(edited(document(), path, "[]")), AttributeValue(List{}));
  EXPECT_EQ(set(edited(document(), path, "7")), AttributeValue(Number{"7"}));
  EXPECT_THAT(refusal(document(), at(0), R"("x")"), ::testing::HasSubstr("data: a set of numbers holds nothing but"));
  EXPECT_THAT(refusal(document(), at(3), "3"), ::testing::HasSubstr("[3]: the array has 2 elements"));
  EXPECT_THAT(refusal(document(), at(2), std::nullopt), ::testing::HasSubstr("[2]"));
  Item one = edited(document(), at(0), std::nullopt);
  EXPECT_THAT(refusal(one, at(0), std::nullopt), ::testing::HasSubstr("never empty"));
}

TEST(ContentEditTest, SetsOfTextAndOfBytesStayWhatTheyAre) {
  Item item = document();
  data(item).insert_or_assign("texts", AttributeValue(dynamo::StringSet{{"a", "b"}}));
  data(item).insert_or_assign("blobs", AttributeValue(dynamo::BinarySet{{"\x01\xff"}}));
  item =
      edited(item, {{{"data", "texts", std::size_t{0}}, R"("c")"}, {{"data", "blobs", std::size_t{1}}, R"("AAEC")"}});
  EXPECT_EQ(data(item).at("texts"), AttributeValue(dynamo::StringSet{{"c", "b"}}));
  EXPECT_EQ(data(item).at("blobs"), AttributeValue(dynamo::BinarySet{{"\x01\xff", std::string("\0\x01\x02", 3)}}));
  EXPECT_THAT(refusal(item, {"data", "blobs", std::size_t{0}}, R"("no base64")"), ::testing::HasSubstr("Base64"));
  EXPECT_THAT(refusal(item, {"data", "texts", std::size_t{0}}, "1"), ::testing::HasSubstr("nothing but text"));
}

/// Binary is shown as Base64, and Base64 that is written back is binary.
TEST(ContentEditTest, BinaryStaysBinary) {
  const auto bytes = [](Item item) { return data(item)["deep"].get<Map>()->at("bytes"); };
  const Path path{"data", "deep", "bytes"};
  EXPECT_EQ(bytes(edited(document(), path, R"("Av8=")")), AttributeValue(Binary{"\x02\xff"}));
  EXPECT_EQ(bytes(edited(document(), path, R"("plain text")")), AttributeValue("plain text"));
}

TEST(ContentEditTest, EditsFollowOneAnother) {
  const Item item = edited(document(), {{{"data", "deep"}, "{}"},
                                        {{"data", "deep", "a"}, "[1]"},
                                        {{"data", "deep", "a", std::size_t{1}}, "2"},
                                        {{"data", "n"}, std::nullopt}});
  Item expected = document();
  data(expected).insert_or_assign("deep", AttributeValue(Map{{"a", List{Number{"1"}, Number{"2"}}}}));
  data(expected).erase("n");
  EXPECT_EQ(item, expected);
}

TEST(ContentEditTest, PathsThatLeadNowhereAreRefusedWithTheirPlace) {
  EXPECT_THAT(refusal(document(), {"data", "absent", "x"}, "1"), ::testing::HasSubstr("nowhere at \"absent\""));
  EXPECT_THAT(refusal(document(), {"data", "absent"}, std::nullopt), ::testing::HasSubstr("nowhere at \"absent\""));
  EXPECT_THAT(refusal(document(), {"data", "n", "x"}, "1"), ::testing::HasSubstr("no object"));
  EXPECT_THAT(refusal(document(), {"data", "set", std::size_t{0}, "x"}, "1"), ::testing::HasSubstr("no object"));
  EXPECT_THAT(refusal(document(), {"data", std::size_t{0}}, "1"), ::testing::HasSubstr("no array"));
  EXPECT_THAT(refusal(document(), {"data", "deep", "list", "x"}, "1"), ::testing::HasSubstr("no object"));
  EXPECT_THAT(refusal(document(), {"dat"}, "1"), ::testing::HasSubstr("begins with data"));
  refusal(document(), {}, "1");
  refusal(document(), {std::size_t{0}}, "1");
  refusal(document(), {"id"}, R"("B")");
  refusal(document(), {"theirs"}, R"("B")");
}

TEST(ContentEditTest, ValuesThatDynamoDbCannotHoldAreRefused) {
  EXPECT_THAT(refusal(document(), {"data", "n"}, "1e300"),
              ::testing::HasSubstr("DynamoDB cannot hold the number 1e300"));
  EXPECT_THAT(refusal(document(), {"data", "n"}, "{"), ::testing::HasSubstr("not JSON"));
  refusal(document(), {"data", "n"}, "");
  refusal(document(), {"data", "n"}, "1 2");
}

TEST(ContentEditTest, WholeBodyMayBecomeAnything) {
  const Item text{{"data", "hello"}};
  EXPECT_EQ(edited(text, {"data"}, R"("bye")"), (Item{{"data", "bye"}}));
  EXPECT_EQ(edited(text, {"data"}, "[1]"), (Item{{"data", List{Number{"1"}}}}));
  const Item json{{"data", Number{"1"}}};
  EXPECT_EQ(edited(json, {"data"}, R"("bye")"), (Item{{"data", "bye"}, {"sluice_content_type", "application/json"}}));
  const Item json_text{{"data", "x"}, {"sluice_content_type", "application/json"}};
  EXPECT_EQ(edited(json_text, {"data"}, R"("y")"), (Item{{"data", "y"}, {"sluice_content_type", "application/json"}}));
  EXPECT_EQ(edited(json_text, {"data"}, "null"), (Item{{"data", dynamo::Null{}}}));
  const Item csv{{"data", "x"}, {"sluice_content_type", "text/csv"}};
  EXPECT_EQ(edited(csv, {"data"}, R"("y")"), (Item{{"data", "y"}, {"sluice_content_type", "text/csv"}}));
  EXPECT_EQ(edited(csv, {"data"}, "1"), (Item{{"data", Number{"1"}}}));
  const Item image{{"data", Binary{"\xff"}}, {"sluice_content_type", "image/png"}};
  EXPECT_EQ(edited(image, {"data"}, "{}"), (Item{{"data", Map{}}}));
  EXPECT_EQ(edited(Item{}, {"data"}, "{}"), (Item{{"data", Map{}}}));
  refusal(text, {"data"}, std::nullopt);
}

TEST(ContentEditTest, NoPathLeadsIntoTextOrBytes) {
  EXPECT_THAT(refusal({{"data", R"({"a":1})"}}, {"data", "a"}, "2"), ::testing::HasSubstr("the body is text"));
  EXPECT_THAT(refusal({{"data", Binary{"x"}}}, {"data", "a"}, "2"),
              ::testing::HasSubstr("the body is application/octet-stream"));
  EXPECT_THAT(refusal({}, {"data", "a"}, "2"), ::testing::HasSubstr("no object"));
}

TEST(ContentEditTest, ContentTypeRereadsTheSameBytes) {
  const Item text{{"data", R"({"a":[1.50]})"}};
  const Item json{{"data", Map{{"a", List{Number{"1.50"}}}}}};
  EXPECT_EQ(edited(text, {"content_type"}, R"("application/json")"), json);
  EXPECT_EQ(edited(json, {"content_type"}, R"("text/plain")"), text);
  refusal(json, {"content_type"}, std::nullopt);
  refusal(json, {"content_type"}, R"("")");
  EXPECT_EQ(edited(text, {"content_type"}, R"("text/csv")"),
            (Item{{"data", R"({"a":[1.50]})"}, {"sluice_content_type", "text/csv"}}));
  EXPECT_EQ(edited(text, {"content_type"}, R"("application/octet-stream")"),
            (Item{{"data", Binary{R"({"a":[1.50]})"}}}));
  refusal({{"data", "no json"}}, {"content_type"}, R"("application/json")");
  EXPECT_THAT(refusal(document(), {"content_type"}, R"("text/plain")"), ::testing::HasSubstr("sets or binary"))
      << "their types would be gone for ever";
  EXPECT_EQ(edited(document(), {"content_type"}, R"("application/json")"), document());
  refusal(text, {"content_type"}, "1");
  refusal(text, {"content_type", "x"}, R"("y")");
}

TEST(ContentEditTest, AttributesAndGroupAreText) {
  const Item bare{{"data", "x"}};
  const Item with{{"data", "x"}, {"sluice_attributes", Map{{"k", "v"}}}, {"sluice_group", "g"}};
  EXPECT_EQ(edited(bare, {{{"attributes", "k"}, R"("v")"}, {{"group"}, R"("g")"}}), with);
  EXPECT_EQ(edited(with, {{{"attributes", "k"}, std::nullopt}, {{"group"}, std::nullopt}}), bare);
  EXPECT_EQ(edited(with, {{{"attributes", "k"}, std::nullopt}, {{"group"}, R"("")"}}), bare);
  refusal(bare, {"attributes", "k"}, "1");
  refusal(bare, {"attributes", "k"}, std::nullopt);
  refusal(bare, {"attributes"}, R"({"k":"v"})");
  refusal(bare, {"attributes", ""}, R"("v")");
  refusal(bare, {"attributes", "k", "deeper"}, R"("v")");
  refusal(bare, {"attributes", std::size_t{0}}, R"("v")");
  refusal(bare, {"group"}, "5");
  refusal({{"sluice_attributes", "odd"}}, {"attributes", "k"}, R"("v")");
}

TEST(ContentEditTest, StrangersAttributesInOurMapStay) {
  const Item odd{{"data", "x"}, {"sluice_attributes", Map{{"number", Number{"1"}}, {"k", "v"}}}};
  EXPECT_EQ(edited(odd, {"attributes", "k"}, std::nullopt),
            (Item{{"data", "x"}, {"sluice_attributes", Map{{"number", Number{"1"}}}}}));
}

}  // namespace
}  // namespace sluice::test
