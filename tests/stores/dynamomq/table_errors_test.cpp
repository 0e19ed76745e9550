#include "host/stores/dynamomq/table_errors.hpp"

#include <gmock/gmock.h>

namespace sluice::queue::dynamomq {
namespace {

using dynamo::ErrorKind;
using ::testing::HasSubstr;

const QueueTable kPlace{"orders", "orders-table", "the-index", "eu-west-1"};

TEST(StoreError, MissingTableNamesTheCommand) {
  const Error error = store_error(kPlace, {ErrorKind::resource_not_found, "Requested resource not found"});
  EXPECT_EQ(error.code(), ErrorCode::queue_missing);
  EXPECT_EQ(error.message(),
            "table 'orders-table' does not exist in eu-west-1; make it with: sluice table create --queue orders");
}

TEST(StoreError, TheCommandFindsTheTableAsThisProcessDoes) {
  QueueTable place = kPlace;
  place.options = "--table-name orders-table --endpoint-url http://127.0.0.1:8000";
  const Error error = store_error(place, {ErrorKind::resource_not_found, "Requested resource not found"});
  EXPECT_EQ(error.message(),
            "table 'orders-table' does not exist in eu-west-1; make it with: sluice table create --table-name "
            "orders-table --endpoint-url http://127.0.0.1:8000");
}

TEST(StoreError, MissingIndexIsNamed) {
  const Error error =
      store_error(kPlace, {ErrorKind::validation, "The table does not have the specified index: the-index"});
  EXPECT_EQ(error.code(), ErrorCode::queue_missing);
  EXPECT_THAT(error.message(), HasSubstr("'the-index'"));
  EXPECT_THAT(error.message(), HasSubstr("sluice table check --queue orders"));
}

TEST(StoreError, AnotherProgramsTableNamesTheCommandThatChecksIt) {
  for (const char* text :
       {"One or more parameter values were invalid: Missing the key pk in the item",
        "The provided key element does not match the schema",
        "Where clause does not contain a mandatory equality on all key attributes",
        "One or more parameter values were invalid: Type mismatch for key id expected: N actual: S"}) {
    const Error error = store_error(kPlace, {ErrorKind::validation, text});
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_THAT(error.message(), HasSubstr("sluice table check --queue orders")) << text;
  }
  EXPECT_EQ(store_error(kPlace, {ErrorKind::validation, "Item size has exceeded the maximum allowed size"}).message(),
            "table 'orders-table': Item size has exceeded the maximum allowed size");
}

TEST(StoreError, KeyRangeThrottleSaysThatTheCeilingIsMet) {
  dynamo::Error throttle(ErrorKind::throttled, "slow down");
  EXPECT_EQ(store_error(kPlace, throttle).code(), ErrorCode::throttled);
  EXPECT_THAT(store_error(kPlace, throttle).message(), HasSubstr("slow down"));
  throttle.throttling_reasons = {"IndexWriteKeyRangeThroughputExceeded"};
  EXPECT_THAT(store_error(kPlace, throttle).message(), HasSubstr("IndexWriteKeyRangeThroughputExceeded"));
  EXPECT_THAT(store_error(kPlace, throttle).message(), HasSubstr("ceiling"));
}

TEST(StoreError, EveryKindHasACode) {
  const auto code = [](ErrorKind kind, bool unknown = false) {
    dynamo::Error error(kind, "why");
    error.outcome_unknown = unknown;
    return store_error(kPlace, error).code();
  };
  EXPECT_EQ(code(ErrorKind::access_denied), ErrorCode::denied);
  EXPECT_EQ(code(ErrorKind::no_credentials), ErrorCode::denied);
  EXPECT_EQ(code(ErrorKind::validation), ErrorCode::invalid);
  EXPECT_EQ(code(ErrorKind::conditional_check_failed), ErrorCode::conflict);
  EXPECT_EQ(code(ErrorKind::cancelled), ErrorCode::cancelled);
  EXPECT_EQ(code(ErrorKind::timeout), ErrorCode::timeout);
  EXPECT_EQ(code(ErrorKind::timeout, true), ErrorCode::unknown_outcome);
  EXPECT_EQ(code(ErrorKind::transport), ErrorCode::unavailable);
  EXPECT_EQ(code(ErrorKind::transport, true), ErrorCode::unknown_outcome);
  EXPECT_EQ(code(ErrorKind::server), ErrorCode::unavailable);
  EXPECT_EQ(code(ErrorKind::server, true), ErrorCode::unknown_outcome);
  EXPECT_EQ(code(ErrorKind::malformed_response), ErrorCode::internal);
}

}  // namespace
}  // namespace sluice::queue::dynamomq
