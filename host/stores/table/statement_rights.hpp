#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/error.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::table {

/// The IAM action that a statement of that kind needs, and the one that the same write needs as a request of its own.
std::string_view statement_action(RecordWrite::Kind kind);
std::string_view request_action(RecordWrite::Kind kind);

/// Whether the role was refused for want of a right, and not for a signature or a token that is no good.
bool lacks_right(const dynamo::Error& error);

/// Which statements this process may not execute, as far as refusals have told: DynamoMQ's own policy grants PutItem,
/// UpdateItem and DeleteItem, and knows no PartiQL. Such writes go out as requests of their own.
///
/// Rights may be granted later, so that statements are tried again now and then. Thread-safe.
class StatementRights {
 public:
  static constexpr Duration kAskAgain = std::chrono::minutes(10);

  /// `warn` is told once for each table, in a line, what the rights would save; may be empty.
  explicit StatementRights(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  bool denied(std::string_view table, RecordWrite::Kind kind, SteadyTime now) const;
  /// The role was refused this kind of statement.
  void refused(std::string_view table, RecordWrite::Kind kind, SteadyTime now);
  /// So many writes go out one by one that would have gone together.
  void note_singles(std::string_view table, std::size_t writes);

 private:
  struct Known {
    std::array<std::optional<SteadyTime>, RecordWrite::kKinds> refused_at;
    bool warned = false;
  };

  const std::function<void(const std::string&)> warn_;
  mutable Mutex mutex_;
  std::map<std::string, Known, std::less<>> tables_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
