// Numbers 1 to 11 of DynamoMQ's own tests: what is wrong with an id. docs/start/conformance.md is the list.
#include "tests/client/client_rig.hpp"

namespace sluice::client {
namespace {

/// The table holds A-101, ready.
class Errors : public ClientTest {
 protected:
  void SetUp() override {
    ClientTest::SetUp();
    if (!IsSkipped()) {
      seed_ready("A-101");
    }
  }
};

constexpr const char* kNotProvided = "IDNotProvidedError";
constexpr const char* kNotFound = "IDNotFoundError";

TEST_P(Errors, N01_SendWithoutId) {
  EXPECT_EQ(error_name(client().send(NewMessage{.id = "", .data = "x"})), kNotProvided);
}

TEST_P(Errors, N02_SendSameId) {
  const auto sent = client().send({.id = "A-101", .data = "another"});
  ASSERT_EQ(error_name(sent), "IDDuplicatedError");
  EXPECT_EQ(sent.error().message(), "Provided ID was duplicated.");
  EXPECT_EQ(get("A-101").data, "{\"n\":1}") << "what was there stays";
}

TEST_P(Errors, N03_ChangeVisibilityWithoutId) {
  EXPECT_EQ(error_name(client().change_visibility("", 30s)), kNotProvided);
  EXPECT_EQ(error_name(client().change_visibility(Receipt{}, 30s)), kNotProvided);
}
TEST_P(Errors, N04_ChangeVisibilityOfUnknownId) {
  EXPECT_EQ(error_name(client().change_visibility("B-101", 30s)), kNotFound);
}

TEST_P(Errors, N05_MoveToDlqWithoutId) {
  EXPECT_EQ(error_name(client().move_to_dlq("")), kNotProvided);
  EXPECT_EQ(error_name(client().move_to_dlq(Receipt{})), kNotProvided);
}
TEST_P(Errors, N06_MoveToDlqOfUnknownId) { EXPECT_EQ(error_name(client().move_to_dlq("B-101")), kNotFound); }

TEST_P(Errors, N07_RedriveWithoutId) { EXPECT_EQ(error_name(client().redrive("")), kNotProvided); }
TEST_P(Errors, N08_RedriveOfUnknownId) { EXPECT_EQ(error_name(client().redrive("B-101")), kNotFound); }

TEST_P(Errors, N09_DeleteWithoutId) {
  EXPECT_EQ(error_name(client().delete_message("")), kNotProvided);
  EXPECT_EQ(error_name(client().delete_message("", 1)), kNotProvided);
  EXPECT_EQ(error_name(client().delete_message(Receipt{})), kNotProvided);
}
TEST_P(Errors, N10_GetWithoutId) { EXPECT_EQ(error_name(client().get("")), kNotProvided); }
TEST_P(Errors, N11_ReplaceWithoutId) { EXPECT_EQ(error_name(client().replace({.id = "", .data = "x"})), kNotProvided); }

SLUICE_ON_BOTH_STORES(Errors);

// The names and texts that DynamoMQ's error tests hold.
TEST(ErrorTexts, AreDynamoMqs) {
  const struct {
    Error error;
    const char* name;
    const char* text;
  } cases[] = {
      {Error(ErrorKind::id_not_provided), "IDNotProvidedError", "ID was not provided."},
      {Error(ErrorKind::id_not_found), "IDNotFoundError", "Provided ID was not found in the Dynamo DB."},
      {Error(ErrorKind::id_duplicated), "IDDuplicatedError", "Provided ID was duplicated."},
      {Error(ErrorKind::conditional_check_failed, "cause"), "ConditionalCheckFailedError",
       "Condition on the 'version' attribute has failed: cause."},
      {Error(ErrorKind::empty_queue), "EmptyQueueError", "Cannot proceed, queue is empty."},
      {Error(ErrorKind::building_expression, "cause"), "BuildingExpressionError", "Failed to build expression: cause."},
      {Error(ErrorKind::dynamodb_api, "cause"), "DynamoDBAPIError", "Failed DynamoDB API: cause."},
      {Error(ErrorKind::unmarshaling_attribute, "cause"), "UnmarshalingAttributeError", "Failed to unmarshal: cause."},
      {Error(ErrorKind::marshaling_attribute, "cause"), "MarshalingAttributeError", "Failed to marshal: cause."},
      {Error("message", "operation", Status::processing), "InvalidStateTransitionError",
       "operation operation failed for status PROCESSING: message."},
      {Error(ErrorKind::queue_full), "QueueFullError", "The producer holds as many messages as it may."},
      {Error(ErrorKind::producer_closed), "ProducerClosedError",
       "The producer was closed before the message was sent."},
  };
  for (const auto& [error, name, text] : cases) {
    EXPECT_EQ(error.name(), name);
    EXPECT_EQ(error.message(), text);
  }
}

}  // namespace
}  // namespace sluice::client
