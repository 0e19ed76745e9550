#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/queue/operator.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"

namespace sluice::test {

/// Bytes of the largest body, as on DynamoDB.
inline constexpr std::size_t kSimBodyLimit = std::size_t{400} * 1024;

/// The records of one queue, both halves, and host/stores/core over them: what the roles do when nothing goes
/// wrong. Every call takes the time. Not thread-safe; SimQueues guards it.
class SimRecords {
 public:
  /// Leaves `leased_until` to the caller, who knows when he asked.
  queue::Claimed claim(queue::Half half, const queue::ClaimRequest& request, WallTime now);
  bool holds(queue::Half half, const queue::Receipt& receipt) { return held(half, receipt) != nullptr; }
  /// False: the receipt is no longer good, and nothing has changed.
  bool settle(queue::Half half, const queue::Completion& completion, WallTime now);
  std::optional<queue::Receipt> extend(queue::Half half, const queue::Receipt& receipt, WallTime until, WallTime now);
  /// False: the id is taken.
  bool send(const queue::NewMessage& message, const std::string& id, WallTime now);

  const queue::StoredMessage* find(const std::string& id) const;
  /// At most `limit` records that lie after `after` in the order asked for, each with its place in the order.
  using Place = std::pair<WallTime, std::uint64_t>;
  std::vector<std::pair<Place, const queue::StoredMessage*>> list(queue::Half half, const std::optional<Place>& after,
                                                                  std::size_t limit, bool newest_first) const;
  queue::QueueStats stats(queue::Half half, WallTime now) const;
  queue::QueueOverview overview(const queue::OverviewRequest& request, WallTime now) const;
  queue::ChangeResult change(const std::string& queue, const queue::Change& change, WallTime now);
  Result<queue::StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, WallTime now);
  queue::PutStatus put(const queue::StoredMessage& stored, queue::PutMode mode);

  /// Makes every receipt that is out void, as if another host had claimed each of these messages until `until`.
  std::size_t take_away(queue::Half half, WallTime until, WallTime now);

 private:
  struct Record {
    queue::StoredMessage stored;
    std::uint64_t sequence = 0;
  };
  using Records = std::map<std::string, Record, std::less<>>;

  /// The places of what these rules hand out, in their order, at most `max`.
  std::vector<Place> turns(queue::Half half, const queue::ClaimRequest& request, WallTime now);
  std::vector<Place> by_priority(queue::Half half, const queue::ClaimRequest& request, WallTime now);
  bool suspected(const Place& place) const;
  queue::Delivery hand_out(const Place& place, queue::StoredMessage& stored, const queue::ClaimRequest& request,
                           WallTime now);
  std::optional<Duration> next_due(queue::Half half, WallTime now) const;
  Record* held(queue::Half half, const queue::Receipt& receipt);
  void apply(Record& record, const queue::core::StateChange& change, WallTime now);
  bool remove(const std::string& id);
  std::set<Place>& order(queue::Half half) { return half == queue::Half::dlq ? dlq_ : standard_; }
  const std::set<Place>& order(queue::Half half) const { return half == queue::Half::dlq ? dlq_ : standard_; }
  static Place place(const Record& record) { return {record.stored.message.sent_at, record.sequence}; }

  Records records_;
  std::map<std::uint64_t, std::string> ids_;
  std::set<Place> standard_;
  std::set<Place> dlq_;
  std::uint64_t next_sequence_ = 1;
  std::map<std::pair<queue::Half, std::string>, std::uint64_t> turn_of_;  ///< by lane: when it had its last turn
  std::uint64_t next_turn_ = 1;
  std::map<queue::Half, queue::ClaimRules> kept_;  ///< what the last claim that wanted an order wanted
  std::map<std::string, WallTime> last_sent_{};    ///< by group
  std::map<std::string, WallTime> holds_;          ///< dead letters whose group waits, with the places that they had
  std::map<queue::Half, std::array<std::int64_t, queue::kPriorities>> credits_;
};

}  // namespace sluice::test
