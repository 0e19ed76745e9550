#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

/// Reads whole records and counts, on whichever connection. Everything it returns is void when the connection has
/// failed.
class RecordReader {
 public:
  explicit RecordReader(Connection& connection);

  /// Another one after each commit of anybody's, this process's writer included, and for each reader.
  using Version = std::pair<std::uint64_t, std::int64_t>;
  Version version() { return {number_, version_.only().value_or(0)}; }
  /// For what is read beside messages.
  Connection& connection() { return connection_; }

  std::optional<std::int64_t> queue(const std::string& name) { return names_.find(name); }
  /// All of them, by name.
  std::vector<std::string> queues();
  std::optional<StoredMessage> find(std::int64_t queue, const std::string& id);
  std::optional<StoredMessage> read(std::int64_t seq) { return read(record_, seq); }
  /// The same without body, content type, attributes and group.
  std::optional<StoredMessage> read_head(std::int64_t seq) { return read(head_, seq); }
  /// What `put` was given as StoredMessage::native.
  std::string native(std::int64_t seq);

  using Place = sqlite::Place;
  static constexpr Place kFirst = sqlite::kFirst;
  /// The places after `after`, oldest first, whether ready, delayed or in flight.
  std::vector<Place> list(std::int64_t half, const Place& after, std::size_t limit);
  /// The places before `before`, youngest first.
  static constexpr Place kLast{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};
  std::vector<Place> list_newest(std::int64_t half, const Place& before, std::size_t limit);
  QueueStats stats(std::int64_t half, WallTime now);
  QueueOverview overview(std::int64_t half, std::size_t ids, std::size_t errors, WallTime now);

 private:
  std::optional<StoredMessage> read(Statement& statement, std::int64_t seq);
  std::string id(std::int64_t seq);
  /// Under which halves messages of this one lie in `ready`; none where its order is kept.
  std::vector<std::int64_t> place_halves(std::int64_t half);
  std::vector<Place> places(Statement& statement, std::int64_t half, const Place& from, std::size_t limit);
  void errors(std::int64_t half, std::size_t limit, WallTime now, QueueOverview& seen);

  const std::uint64_t number_;
  Connection& connection_;
  QueueNames names_;
  Statement version_;
  Statement queues_;
  Statement by_id_;
  Statement record_;
  Statement head_;
  Statement native_;
  Statement id_;
  Statement list_ready_;
  Statement list_suspects_;
  Statement list_newest_;
  Statement list_waiting_;
  Statement total_;
  Statement waiting_;
  Statement future_;
  Statement future_due_;
  Statement oldest_ready_;
  Statement oldest_due_;
  Statement hidden_waiting_;
  Statement hidden_future_;
  Statement failures_;
  Statement kept_;
  Statement list_kept_;
  Statement list_kept_newest_;
  Statement oldest_kept_;
};

}  // namespace sluice::queue::sqlite
