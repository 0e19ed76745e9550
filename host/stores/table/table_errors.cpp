#include "host/stores/table/table_errors.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/joined.hpp"

namespace sluice::queue::table {

namespace {

// By these words table_fault tells them.
constexpr std::string_view kDoesNotExist = " does not exist";
constexpr std::string_view kHasNoIndex = " has no index";
constexpr std::string_view kNoDynamoMqTable = "; it seems to be no DynamoMQ table";
constexpr std::string_view kNoLeasedTable = "; it seems to be no table of the leased layout";

// Only DynamoMQ's layout has one.
bool has_index(const QueueTable& place) { return !place.index.empty(); }

std::string region_of(const QueueTable& place) { return place.region.empty() ? "this region" : place.region; }

bool names_missing_index(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::validation &&
         error.message.find("does not have the specified index") != std::string::npos;
}

// What DynamoDB says of a table whose keys are not those of a queue.
bool names_other_keys(const dynamo::Error& error) {
  constexpr std::array<std::string_view, 4> kWords{"Missing the key", "key element", "key attributes",
                                                   "Type mismatch for"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view words) { return error.message.find(words) != std::string::npos; });
}

Error missing_table(const QueueTable& place) {
  return {ErrorCode::queue_missing,
          "table '" + place.table + "'" + std::string(kDoesNotExist) + " in " + region_of(place)};
}

Error missing_index(const QueueTable& place) {
  return {ErrorCode::queue_missing,
          "table '" + place.table + "' in " + region_of(place) + std::string(kHasNoIndex) + " '" + place.index + "'"};
}

Error throttled(const QueueTable& place, const dynamo::Error& error) {
  const std::string reasons = joined(error.throttling_reasons);
  const bool ceiling = reasons.find("KeyRangeThroughputExceeded") != std::string::npos;
  std::string text = "table '" + place.table + "' is throttled";
  text += reasons.empty() ? ": " + error.message : " (" + reasons + ")";
  text +=
      ceiling && !has_index(place)
          ? "; one shard of the queue takes more than the 1,000 writes and 3,000 reads a second of a partition key: "
            "give the queue more shards"
      : ceiling ? "; all messages of a DynamoMQ queue share one index key, whose 1,000 writes and 3,000 reads a second "
                  "are the ceiling of this layout: spread the load over several queues"
                : "; lower the load or raise the table's limits";
  return {ErrorCode::throttled, std::move(text)};
}

}  // namespace

bool outcome_unknown(const dynamo::Error& error) {
  return error.outcome_unknown || error.exception_name.find("InternalServerError") != std::string::npos;
}

Error store_error(const QueueTable& place, const dynamo::Error& error) {
  using dynamo::ErrorKind;
  if (names_missing_index(error)) {
    return missing_index(place);
  }
  const std::string where = "table '" + place.table + "': ";
  switch (error.kind) {
    case ErrorKind::resource_not_found:
      return error.message.find("ndex") != std::string::npos ? missing_index(place) : missing_table(place);
    case ErrorKind::access_denied:
      return {ErrorCode::denied, where + error.message +
                                     "; check that the credentials are valid and that their policy allows this table" +
                                     (has_index(place) ? " and its index" : "")};
    case ErrorKind::no_credentials:
      return {ErrorCode::denied, error.message};
    case ErrorKind::throttled:
      return throttled(place, error);
    case ErrorKind::validation:
      return {ErrorCode::invalid, where + error.message +
                                      std::string(!names_other_keys(error) ? ""
                                                  : has_index(place)       ? kNoDynamoMqTable
                                                                           : kNoLeasedTable)};
    case ErrorKind::conditional_check_failed:
      return {ErrorCode::conflict, where + "somebody else changed the message in between"};
    case ErrorKind::cancelled:
      return {ErrorCode::cancelled, where + error.message};
    default:
      break;
  }
  if (outcome_unknown(error)) {
    return {ErrorCode::unknown_outcome, where + error.message + "; it may have taken effect all the same"};
  }
  const ErrorCode code = error.kind == ErrorKind::timeout              ? ErrorCode::timeout
                         : error.kind == ErrorKind::malformed_response ? ErrorCode::internal
                                                                       : ErrorCode::unavailable;
  return {code, where + error.message};
}

TableFault table_fault(const Error& error) {
  const std::string& text = error.message();
  if (error.code() == ErrorCode::queue_missing) {
    // The file of another store may be missing too; no table is made for it.
    return text.find(kHasNoIndex) != std::string::npos     ? TableFault::no_index
           : text.find(kDoesNotExist) != std::string::npos ? TableFault::no_table
                                                           : TableFault::none;
  }
  const bool other = text.ends_with(kNoDynamoMqTable) || text.ends_with(kNoLeasedTable);
  return error.code() == ErrorCode::invalid && other ? TableFault::other_keys : TableFault::none;
}

}  // namespace sluice::queue::table
