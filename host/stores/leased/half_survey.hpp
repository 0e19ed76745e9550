#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/shard_survey.hpp"

namespace sluice::queue::leased {

/// Estimates, for who owns shards of a half, how much lies in them that it has not read, and, of the standard half, how
/// much lies in those shards of the dead-letter half, of which nobody else need know. Step functions. Not thread-safe.
class HalfSurvey {
 public:
  static constexpr Duration kUnreadPause = std::chrono::seconds(20);
  static constexpr Duration kDeadPause = std::chrono::seconds(60);
  /// What is worked off within that time needs no estimate.
  static constexpr Duration kPatience = std::chrono::seconds(10);
  static constexpr std::size_t kMostReads = 16;  ///< at once

  HalfSurvey(QueueAddress address, std::string table) : address_(std::move(address)), table_(std::move(table)) {}

  void gained(std::uint32_t shard, SteadyTime now);
  void lost(std::uint32_t shard) { shards_.erase(shard); }
  /// What lies in the shard beyond what has been read is known, or is not; `behind`: something does.
  void knows(std::uint32_t shard, bool all, bool behind, SteadyTime now);
  /// A message has been put aside there.
  void dead_letter(std::uint32_t shard, SteadyTime now);

  /// Reads that belong together.
  struct Look {
    std::uint32_t shard = 0;
    std::uint64_t number = 0;  ///< of the time that the shard was gained
    bool dead = false;
    std::vector<KeySketch::Order> orders;
    std::vector<dynamo::QueryRequest> queries;
  };
  std::vector<Look> next(table::Moment now);
  /// The pages of the look's queries; nothing where one of them has failed.
  void done(const Look& look, const std::optional<std::vector<dynamo::Page>>& pages, SteadyTime now);

  /// Where the reading of each priority has come to.
  using Cursors = std::array<std::string, kPriorities>;
  /// Adds what lies in a shard beyond its cursors. False: nobody knows.
  bool add_unread(OwnerFigures& figures, std::uint32_t shard, const Cursors& cursors, table::Moment now) const;
  void add_dead(OwnerFigures& figures, SteadyTime now) const;

 private:
  struct Shard {
    std::uint64_t number = 0;
    std::optional<SteadyTime> unknown_since{};
    bool behind = false;
    std::optional<ShardSurvey> unread{};
    ShardSurvey dead;
  };

  std::size_t places() const;
  Look look_of(std::uint32_t shard, const Shard& of, bool dead, std::vector<KeySketch::Order> orders) const;
  bool counts_dead() const { return address_.half == Half::standard; }

  const QueueAddress address_;
  const std::string table_;
  std::map<std::uint32_t, Shard> shards_;
  std::uint64_t gained_ = 0;
};

}  // namespace sluice::queue::leased
