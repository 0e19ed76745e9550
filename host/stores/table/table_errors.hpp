#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "dynamo/error.hpp"

namespace sluice::queue::table {

/// A queue and where it lies. A value.
struct QueueTable {
  std::string queue;
  std::string table;
  std::string index;
  std::string region;  ///< for messages
};

/// Turns the client's failures into the store's: one line that says what is wrong and where.
Error store_error(const QueueTable& place, const dynamo::Error& error);

/// An answer of the client's with the store's error.
template <typename T>
Result<T> checked(const QueueTable& place, dynamo::Result<T> answer) {
  return answer ? Result<T>(std::move(*answer)) : Result<T>(store_error(place, answer.error()));
}

/// What of a queue's table is not as the store needs it, for whoever can say how to mend it.
enum class TableFault {
  none,        ///< the failure is about something else
  no_table,    ///< ErrorCode::queue_missing
  no_index,    ///< ErrorCode::queue_missing
  other_keys,  ///< ErrorCode::invalid: probably not a table of DynamoMQ's
};

/// Of an error that a store of this layout has given.
TableFault table_fault(const Error& error);

/// True when the request may have taken effect all the same.
bool outcome_unknown(const dynamo::Error& error);

enum class FindingLevel {
  unfit,    ///< it cannot hold a queue as it is
  waiting,  ///< it will do when DynamoDB is through with it
  advice,   ///< it works, and could be better
};

/// One thing about a table that is not as a queue wants it. A value; both texts are clauses without a full stop.
struct TableFinding {
  FindingLevel level = FindingLevel::unfit;
  std::string what;
  std::string mend;
};

}  // namespace sluice::queue::table
