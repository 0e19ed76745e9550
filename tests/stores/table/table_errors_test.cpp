#include "host/stores/table/table_errors.hpp"

#include <gmock/gmock.h>

namespace sluice::queue::table {
namespace {

using dynamo::ErrorKind;
using ::testing::HasSubstr;

const QueueTable kPlace{"orders", "orders-table", "the-index", "eu-west-1"};

TEST(StoreError, MissingTableIsNamed) {
  const Error error = store_error(kPlace, {ErrorKind::resource_not_found, "Requested resource not found"});
  EXPECT_EQ(error.code(), ErrorCode::queue_missing);
  EXPECT_EQ(error.message(), "table 'orders-table' does not exist in eu-west-1");
  EXPECT_EQ(table_fault(error), TableFault::no_table);
}

TEST(StoreError, MissingIndexIsNamed) {
  const Error error =
      store_error(kPlace, {ErrorKind::validation, "The table does not have the specified index: the-index"});
  EXPECT_EQ(error.code(), ErrorCode::queue_missing);
  EXPECT_EQ(error.message(), "table 'orders-table' in eu-west-1 has no index 'the-index'");
  EXPECT_EQ(table_fault(error), TableFault::no_index);
}

TEST(StoreError, AFileThatIsGoneIsNoTableToMake) {
  const Error file(ErrorCode::queue_missing,
                   "store \"/var/sluice.db\": \"/var/sluice.db-wal\" was removed while in use");
  EXPECT_EQ(table_fault(file), TableFault::none);
}

TEST(StoreError, AnotherProgramsTableIsToldFromAWrongRequest) {
  for (const char* text :
       {"One or more parameter values were invalid: Missing the key pk in the item",
        "The provided key element does not match the schema",
        "Where clause does not contain a mandatory equality on all key attributes",
        "One or more parameter values were invalid: Type mismatch for key id expected: N actual: S"}) {
    const Error error = store_error(kPlace, {ErrorKind::validation, text});
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_EQ(table_fault(error), TableFault::other_keys) << text;
  }
  const Error size = store_error(kPlace, {ErrorKind::validation, "Item size has exceeded the maximum allowed size"});
  EXPECT_EQ(size.message(), "table 'orders-table': Item size has exceeded the maximum allowed size");
  EXPECT_EQ(table_fault(size), TableFault::none);
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
}  // namespace sluice::queue::table
