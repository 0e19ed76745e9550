#include <boost/json.hpp>
#include <string>
#include <vector>

#include "tests/contract/store_contract.hpp"

// Edits: a path leads to what is set or taken away, and everything beside it stays. Where a store spells JSON in its
// own way (traits().keeps_json_spelling), values are compared; digits stay on every store.
namespace sluice::test {

using queue::CompletionAction;
using queue::ContentEdit;
using queue::SettleStatus;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

void expect_same_json(const std::string& actual, const std::string& expected) {
  boost::json::error_code failed;
  const boost::json::value parsed = boost::json::parse(actual, failed);
  ASSERT_FALSE(failed) << actual;
  EXPECT_EQ(parsed, boost::json::parse(expected)) << actual;
}

ContentEdit set_body(std::string json) { return {.path = {"data"}, .json = std::move(json)}; }

}  // namespace

TEST_P(StoreContract, EditReachesIntoABody) {
  send_content("A-1", R"({"order":{"items":[{"sku":"x","n":1},{"sku":"y","n":2}],"note":"old"},"keep":null})",
               queue::kJson);
  const auto edited = edit("A-1", {
                                      {.path = {"data", "order", "items", std::size_t{1}, "n"}, .json = "7"},
                                      {.path = {"data", "order", "note"}, .json = std::nullopt},
                                      {.path = {"data", "order", "added"}, .json = R"({"deep":[true]})"},
                                      {.path = {"data", "order", "items", std::size_t{2}}, .json = R"("appended")"},
                                      {.path = {"data", "order", "items", std::size_t{0}}, .json = std::nullopt},
                                  });
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->version, 2);
  const queue::StoredMessage after = get("A-1");
  EXPECT_EQ(after.version, 2);
  EXPECT_EQ(after.message.body, edited->message.body);
  EXPECT_EQ(after.message.content_type, queue::kJson);
  expect_same_json(after.message.body,
                   R"({"order":{"items":[{"sku":"y","n":7},"appended"],"added":{"deep":[true]}},"keep":null})");
}

TEST_P(StoreContract, EditKeepsEveryDigitBesideThePath) {
  send_content("A-1",
               R"({"big":9007199254740993,"long":12345678901234567890123456789012345678,"small":0.1000000001,"n":1})",
               queue::kJson);
  const auto edited = edit("A-1", {{.path = {"data", "n"}, .json = "18446744073709551617"}});
  ASSERT_TRUE(edited) << edited.error().message();
  for (const std::string& body : {edited->message.body, claim_one(standard()).message.body}) {
    EXPECT_THAT(body, HasSubstr("9007199254740993"));
    EXPECT_THAT(body, HasSubstr("12345678901234567890123456789012345678"));
    EXPECT_THAT(body, HasSubstr("0.1000000001"));
    EXPECT_THAT(body, HasSubstr("18446744073709551617"));
  }
}

TEST_P(StoreContract, EditKeepsSpellingWhereTheStoreDoes) {
  if (!traits().keeps_json_spelling) {
    GTEST_SKIP() << "this store keeps values, not their spelling";
  }
  send_content("A-1", "{ \"z\" : 1.50,\n  \"a\":[ 1 , 2 ], \"u\":\"\\u00fc\\/\" }", queue::kJson);
  ASSERT_TRUE(edit("A-1", {{.path = {"data", "a", std::size_t{1}}, .json = " 1e5 "}}));
  EXPECT_EQ(get("A-1").message.body, "{ \"z\" : 1.50,\n  \"a\":[ 1 , 1e5 ], \"u\":\"\\u00fc\\/\" }");
  ASSERT_TRUE(edit("A-1", {{.path = {"data", "z"}, .json = std::nullopt}}));
  EXPECT_EQ(get("A-1").message.body, "{ \"a\":[ 1 , 1e5 ], \"u\":\"\\u00fc\\/\" }");
}

TEST_P(StoreContract, EditWithOddKeys) {
  send_content("A-1", R"({"":0,"a.b":1,"quote\"d":2,"\u00fc":3,"0":{"data":4}})", queue::kJson);
  const auto edited = edit("A-1", {
                                      {.path = {"data", "a.b"}, .json = "10"},
                                      {.path = {"data", "quote\"d"}, .json = "20"},
                                      {.path = {"data", "\xC3\xBC"}, .json = "30"},
                                      {.path = {"data", "0", "data"}, .json = "40"},
                                      {.path = {"data", "new \"key\"\n"}, .json = "50"},
                                  });
  ASSERT_TRUE(edited) << edited.error().message();
  expect_same_json(edited->message.body,
                   R"({"":0,"a.b":10,"quote\"d":20,"\u00fc":30,"0":{"data":40},"new \"key\"\n":50})");
}

TEST_P(StoreContract, EditRefusesPathsThatLeadNowhere) {
  send_content("A-1", R"({"list":[1,2],"object":{"a":1},"text":"t"})", queue::kJson);
  send("plain");
  const std::vector<ContentEdit> wrong{
      {.path = {}, .json = "1"},
      {.path = {"nonsense"}, .json = "1"},
      {.path = {"id"}, .json = R"("other")"},
      {.path = {"version"}, .json = "7"},
      {.path = {std::size_t{0}}, .json = "1"},
      {.path = {"data"}, .json = std::nullopt},
      {.path = {"data", "absent"}, .json = std::nullopt},
      {.path = {"data", "absent", "deeper"}, .json = "1"},
      {.path = {"data", "text", "deeper"}, .json = "1"},
      {.path = {"data", "list", "key"}, .json = "1"},
      {.path = {"data", "list", std::size_t{3}}, .json = "1"},
      {.path = {"data", "list", std::size_t{2}}, .json = std::nullopt},
      {.path = {"data", "object", std::size_t{0}}, .json = "1"},
      {.path = {"attributes"}, .json = "{}"},
      {.path = {"attributes", "absent"}, .json = std::nullopt},
      {.path = {"attributes", "a"}, .json = "1"},
      {.path = {"attributes", "a", "b"}, .json = R"("x")"},
      {.path = {"group"}, .json = "7"},
      {.path = {"group", "a"}, .json = R"("x")"},
      {.path = {"content_type"}, .json = "7"},
      {.path = {"content_type"}, .json = R"("")"},
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const auto edited = edit("A-1", {wrong[i]});
    ASSERT_FALSE(edited) << "case " << i;
    EXPECT_EQ(edited.error().code(), ErrorCode::invalid) << "case " << i << ": " << edited.error().message();
    EXPECT_FALSE(edited.error().message().empty());
  }
  const auto inside_text = edit("plain", {{.path = {"data", "a"}, .json = "1"}});
  ASSERT_FALSE(inside_text);
  EXPECT_EQ(inside_text.error().code(), ErrorCode::invalid) << inside_text.error().message();
  EXPECT_EQ(get("A-1").version, 1);
  EXPECT_EQ(get("plain").version, 1);
}

TEST_P(StoreContract, EditRefusesWhatIsNoJson) {
  send_content("A-1", R"({"a":1})", queue::kJson);
  for (const std::string wrong : {"", "{", "nul", "'x'", "1 2", "{\"a\":1,}", "\"\\q\"", "\"\xFF\"", "NaN", "01"}) {
    for (const bool whole : {true, false}) {
      const auto edited = edit("A-1", {whole ? set_body(wrong) : ContentEdit{{"data", "a"}, wrong}});
      ASSERT_FALSE(edited) << wrong;
      EXPECT_EQ(edited.error().code(), ErrorCode::invalid) << wrong << ": " << edited.error().message();
    }
  }
  expect_same_json(get("A-1").message.body, R"({"a":1})");
}

TEST_P(StoreContract, EditsAreAllMadeOrNone) {
  send_content("A-1", R"({"a":1})", queue::kJson);
  const auto edited = edit("A-1", {{.path = {"data", "a"}, .json = "2"},
                                   {.path = {"attributes", "tenant"}, .json = R"("acme")"},
                                   {.path = {"data", "b", "c"}, .json = "3"}});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code(), ErrorCode::invalid);
  const queue::StoredMessage after = get("A-1");
  EXPECT_EQ(after.version, 1);
  expect_same_json(after.message.body, R"({"a":1})");
  EXPECT_TRUE(after.message.attributes.empty());
}

TEST_P(StoreContract, EditReplacesAWholeBody) {
  send("text");
  auto edited = edit("text", {set_body(R"("new \u00fc\ntext")")});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->message.body, "new \xC3\xBC\ntext");
  EXPECT_EQ(edited->message.content_type, queue::kTextPlain);
  edited = edit("text", {set_body(R"( {"now":"JSON"} )")});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->message.content_type, queue::kJson);
  expect_same_json(edited->message.body, R"({"now":"JSON"})");
  edited = edit("text", {set_body(R"([1,2])"), {.path = {"data", std::size_t{2}}, .json = "3"}});
  ASSERT_TRUE(edited) << edited.error().message();
  expect_same_json(edited->message.body, "[1,2,3]");
  const queue::Delivery claimed = claim_one(standard());
  EXPECT_EQ(claimed.message.content_type, queue::kJson);
  expect_same_json(claimed.message.body, "[1,2,3]");
  send_content("bytes", std::string("\x00\xFF", 2), queue::kOctetStream);
  edited = edit("bytes", {set_body("null")});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->message.content_type, queue::kJson);
  EXPECT_EQ(edited->message.body, "null");
}

TEST_P(StoreContract, EditOfABodyToLargeAndBack) {
  send("A-1");
  const std::string large(100 * 1024, 'L');
  auto edited = edit("A-1", {set_body("\"" + large + "\"")});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(get("A-1").message.body, large);
  if (traits().max_body > 0) {
    const auto refused = edit("A-1", {set_body("\"" + std::string(traits().max_body + 1, 'L') + "\"")});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid) << refused.error().message();
  }
  edited = edit("A-1", {set_body(R"("small")")});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(claim_one(standard()).message.body, "small");
}

TEST_P(StoreContract, EditOfAttributesGroupAndType) {
  queue::NewMessage message;
  message.id = "A-1";
  message.body = R"({"a":1})";
  message.attributes = {{"keep", "1"}, {"change", "2"}, {"drop", "3"}};
  message.group = "g";
  ASSERT_EQ(desk().send(queue_name(), std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  auto edited = edit("A-1", {{.path = {"attributes", "change"}, .json = R"("changed")"},
                             {.path = {"attributes", "drop"}, .json = std::nullopt},
                             {.path = {"attributes", "new.name"}, .json = R"("\u00fc")"},
                             {.path = {"group"}, .json = R"("other")"},
                             {.path = {"content_type"}, .json = R"("text/csv")"}});
  ASSERT_TRUE(edited) << edited.error().message();
  const queue::Attributes expected{{"keep", "1"}, {"change", "changed"}, {"new.name", "\xC3\xBC"}};
  for (const queue::Message& seen : {edited->message, get("A-1").message}) {
    EXPECT_EQ(seen.attributes, expected);
    EXPECT_EQ(seen.group, "other");
    EXPECT_EQ(seen.content_type, "text/csv");
    EXPECT_EQ(seen.body, R"({"a":1})");
  }
  edited = edit("A-1", {{.path = {"group"}, .json = std::nullopt},
                        {.path = {"content_type"}, .json = R"("application/json")"},
                        {.path = {"data", "a"}, .json = "2"}});
  ASSERT_TRUE(edited) << edited.error().message();
  const queue::Delivery claimed = claim_one(standard());
  EXPECT_EQ(claimed.message.group, "");
  EXPECT_EQ(claimed.message.content_type, queue::kJson);
  expect_same_json(claimed.message.body, R"({"a":2})");
  EXPECT_EQ(claimed.message.attributes, expected);
}

TEST_P(StoreContract, EditToJsonOfABodyThatIsNoneIsRefused) {
  send("A-1");
  const auto edited = edit("A-1", {{.path = {"content_type"}, .json = R"("application/json")"}});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code(), ErrorCode::invalid) << edited.error().message();
  EXPECT_EQ(get("A-1").message.content_type, queue::kTextPlain);
}

TEST_P(StoreContract, EditLeavesTheMessageWhereItStands) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const queue::StoredMessage before = get(actor.id);
    const auto edited = edit(actor.id, {set_body(R"("edited")")});
    ASSERT_TRUE(edited) << edited.error().message();
    const queue::StoredMessage after = get(actor.id);
    EXPECT_EQ(after.version, before.version + 1);
    EXPECT_EQ(after.version, edited->version);
    EXPECT_EQ(after.message.body, "edited");
    EXPECT_EQ(after.message.sent_at, before.message.sent_at);
    EXPECT_EQ(after.message.attempt, before.message.attempt);
    EXPECT_EQ(after.created_at, before.created_at);
    EXPECT_EQ(after.updated_at, clock().wall_now());
    EXPECT_EQ(after.half, before.half);
    EXPECT_EQ(after.failure.error, before.failure.error);
    EXPECT_EQ(after.state(clock().wall_now()), before.state(clock().wall_now()));
    if (actor.receipt) {
      EXPECT_EQ(settle(actor.address, *actor.receipt, CompletionAction::remove), SettleStatus::lost);
    }
  }
}

TEST_P(StoreContract, EditRefusesWhatHasChangedInBetween) {
  send("A-1");
  const std::int64_t version = get("A-1").version;
  claim_one(standard());
  const ContentEdit late = set_body(R"("too late")");
  const auto edited = desk().edit(queue_name(), "A-1", version, std::span(&late, 1), soon());
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code(), ErrorCode::conflict) << edited.error().message();
  EXPECT_EQ(get("A-1").message.body, "body of A-1");
  const auto ghost = desk().edit(queue_name(), "ghost", 1, std::span(&late, 1), soon());
  ASSERT_FALSE(ghost);
  EXPECT_EQ(ghost.error().code(), ErrorCode::not_found) << ghost.error().message();
  const auto too_late = desk().edit(queue_name(), "A-1", get("A-1").version, std::span(&late, 1), passed());
  ASSERT_FALSE(too_late);
  EXPECT_EQ(too_late.error().code(), ErrorCode::timeout) << too_late.error().message();
}

}  // namespace sluice::test
