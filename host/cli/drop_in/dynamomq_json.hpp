#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text/json_writer.hpp"
#include "host/queue/stored_message.hpp"

/// What DynamoMQ's program prints, with its keys and as Go's encoder writes them: indented, and its times without
/// trailing zeros. Each of these texts is a whole document with its line break.
namespace sluice::cli {

/// Ids that an operation on many messages succeeded with, and why it failed with the others.
struct BulkOutcome {
  struct Failed {
    std::string id;
    std::string error;
  };
  std::vector<std::string> successes;
  std::vector<Failed> failures;
  std::optional<Error> denied;  ///< the first of them that failed because the role may not do it
};

std::string dynamomq_message(const queue::StoredMessage& message);
/// The same under "RedroveMessage".
std::string dynamomq_redriven(const queue::StoredMessage& message);
/// Its "system info": all but the body, and the status after the id.
std::string dynamomq_system_info(const queue::StoredMessage& message, WallTime now);
/// The body alone.
std::string dynamomq_data(const queue::Message& message);
std::string dynamomq_statuses(const std::vector<queue::StoredMessage>& messages, WallTime now);
/// The counts of that half.
std::string dynamomq_stats(queue::Half half, const queue::QueueOverview& overview);
std::string dynamomq_outcome(const BulkOutcome& outcome, bool always_failures);

/// `{"successes": [...], "failures": [{"ID": ..., "Error": ...}]}`. `nulls`: empty lists are null, as Go prints them;
/// without `always_failures` an empty list of failures is left out.
void write_outcome(JsonWriter& json, const BulkOutcome& outcome, bool nulls, bool always_failures);

/// "READY" or "PROCESSING"; a message that waits for its time is the latter.
std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now);

/// Valid JSON with the members of every object in the order of their keys' bytes, as Go writes maps; of a key given
/// twice the last. Compact; every digit of its numbers stays, and strings are spelled as `JsonWriter` spells them.
std::string with_sorted_keys(std::string_view json);

/// JSON text with what Go's encoder escapes beside the necessary: < > & and the line separators U+2028 and U+2029.
std::string escaped_as_go_does(std::string_view json);

}  // namespace sluice::cli
