#include <boost/json.hpp>

#include "tests/contract/store_contract.hpp"

// Bodies and content types come back as they were sent, through claim, get, retry, the DLQ and back.
namespace sluice::test {

using queue::NewMessage;

namespace {

struct Content {
  std::string name;
  std::string_view type;
  std::string body;
};

std::vector<Content> contents() {
  std::string binary;
  for (int i = 0; i < 256; ++i) {
    binary.push_back(static_cast<char>(i));
  }
  return {
      {"empty text", queue::kTextPlain, ""},
      {"text", queue::kTextPlain, "hello, world"},
      {"unicode", queue::kTextPlain, "Grüße, 日本語, 🙂, \xC2\xA0, line\nline\ttab\r"},
      {"text that looks like JSON", queue::kTextPlain, "{\"a\":1}"},
      {"large text", queue::kTextPlain, std::string(100 * 1024, 'x')},
      {"binary", queue::kOctetStream, binary + binary},
      {"binary of one NUL", queue::kOctetStream, std::string(1, '\0')},
      {"large binary", queue::kOctetStream, std::string(100 * 1024, '\xFF')},
  };
}

std::vector<std::string> documents() {
  return {R"({"b":1,"a":[true,null,"x",{"deep":[[]]}],"c":{}})",
          R"([1,2,3])",
          R"({"text":"quote \" backslash \\ unicode \u00fc 🙂"})",
          R"({})",
          R"([])",
          R"({"":"empty key","numbers":[0,-1,1.5,1e3]})"};
}

}  // namespace

TEST_P(StoreContract, BodiesComeBackByteForByte) {
  for (const Content& content : contents()) {
    SCOPED_TRACE(content.name);
    NewMessage message;
    message.id = content.name;
    message.body = content.body;
    message.content_type = content.type;
    const auto sent = desk().send(queue_name(), std::span(&message, 1), soon());
    ASSERT_EQ(sent[0].status, queue::SendStatus::sent) << sent[0].error.message();
    const queue::Delivery claimed = claim_one(standard());
    EXPECT_EQ(claimed.message.content_type, content.type);
    EXPECT_TRUE(claimed.message.body == content.body) << claimed.message.body.size() << " bytes";
    const queue::StoredMessage stored = get(content.name);
    EXPECT_TRUE(stored.message.body == content.body) << stored.message.body.size() << " bytes";
    EXPECT_EQ(settle(standard(), claimed.receipt, queue::CompletionAction::remove), queue::SettleStatus::applied);
  }
}

TEST_P(StoreContract, JsonBodiesComeBackAsEqualValues) {
  for (const std::string& document : documents()) {
    SCOPED_TRACE(document);
    NewMessage message;
    message.id = document;
    message.body = document;
    message.content_type = queue::kJson;
    const auto sent = desk().send(queue_name(), std::span(&message, 1), soon());
    ASSERT_EQ(sent[0].status, queue::SendStatus::sent) << sent[0].error.message();
    const queue::Delivery claimed = claim_one(standard());
    EXPECT_EQ(claimed.message.content_type, queue::kJson);
    if (traits().keeps_json_spelling) {
      EXPECT_EQ(claimed.message.body, document);
    }
    boost::system::error_code failed;
    const auto value = boost::json::parse(claimed.message.body, failed);
    ASSERT_FALSE(failed) << claimed.message.body;
    // Doubles and integers of one value are equal for a store that knows only numbers.
    EXPECT_EQ(boost::json::serialize(value).size() > 0, true);
    const auto expected = boost::json::parse(document);
    if (document.find("1e3") == std::string::npos) {
      EXPECT_EQ(value, expected);
    } else {
      const auto& numbers = value.as_object().at("numbers").as_array();
      ASSERT_EQ(numbers.size(), 4U);
      EXPECT_EQ(numbers[2].to_number<double>(), 1.5);
      EXPECT_EQ(numbers[3].to_number<double>(), 1000.0);
    }
    EXPECT_EQ(settle(standard(), claimed.receipt, queue::CompletionAction::remove), queue::SettleStatus::applied);
  }
}

TEST_P(StoreContract, JsonNumbersKeepAllTheirDigits) {
  NewMessage message;
  message.id = "digits";
  message.body =
      R"({"big":12345678901234567890123456789012345678,"small":0.12345678901234567890123,"id":9007199254740993})";
  message.content_type = queue::kJson;
  ASSERT_EQ(desk().send(queue_name(), std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  const std::string body = claim_one(standard()).message.body;
  EXPECT_THAT(body, ::testing::HasSubstr("12345678901234567890123456789012345678"));
  EXPECT_THAT(body, ::testing::HasSubstr("0.12345678901234567890123"));
  EXPECT_THAT(body, ::testing::HasSubstr("9007199254740993"));
}

TEST_P(StoreContract, ContentSurvivesRetryDlqAndRedrive) {
  const std::string body(100 * 1024, '\xFE');
  NewMessage message;
  message.id = "A-1";
  message.body = body;
  message.content_type = queue::kOctetStream;
  message.attributes = {{"k", "v"}};
  message.group = "g";
  ASSERT_EQ(desk().send(queue_name(), std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  const auto check = [&](const queue::Message& got) {
    EXPECT_TRUE(got.body == body) << got.body.size() << " bytes";
    EXPECT_EQ(got.content_type, queue::kOctetStream);
    EXPECT_EQ(got.attributes, message.attributes);
    EXPECT_EQ(got.group, "g");
  };
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, queue::CompletionAction::retry),
            queue::SettleStatus::applied);
  const queue::Delivery second = claim_one(standard());
  check(second.message);
  EXPECT_EQ(settle(standard(), second.receipt, queue::CompletionAction::dead_letter, {}, failure("no")),
            queue::SettleStatus::applied);
  const queue::Delivery dead = claim_one(dlq());
  check(dead.message);
  EXPECT_EQ(settle(dlq(), dead.receipt, queue::CompletionAction::release), queue::SettleStatus::applied);
  ASSERT_TRUE(desk().redrive(queue_name(), "A-1", soon()));
  clock().advance(1ms);
  check(claim_one(standard()).message);
}

}  // namespace sluice::test
