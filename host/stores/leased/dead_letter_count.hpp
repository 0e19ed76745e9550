#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace sluice::queue::leased {

/// Counts, for who owns shards of a standard half, the dead letters that lie in them, of which nobody else need know:
/// as many of each shard as a short read finds. Step functions. Not thread-safe.
class DeadLetterCount {
 public:
  static constexpr std::size_t kMostOfAShard = 100;
  static constexpr Duration kPause = std::chrono::seconds(60);
  static constexpr std::size_t kMostReads = 16;  ///< at once

  DeadLetterCount(std::string queue, std::string table) : queue_(std::move(queue)), table_(std::move(table)) {}

  void gained(std::uint32_t shard, SteadyTime now);
  void lost(std::uint32_t shard) { shards_.erase(shard); }
  /// A message has been put aside there.
  void dead_letter(std::uint32_t shard, SteadyTime now);

  struct Look {
    std::uint32_t shard = 0;
    std::uint64_t number = 0;  ///< of the time that the shard was gained
    dynamo::QueryRequest query;
  };
  std::vector<Look> next(SteadyTime now);
  /// The answer to a look that was made at `began`; nothing: it has failed.
  void done(const Look& look, const std::optional<dynamo::Page>& page, SteadyTime began);

  void add_to(OwnerFigures& figures, SteadyTime now) const;

 private:
  struct Shard {
    std::uint64_t number = 0;
    SteadyTime due_at{};
    std::optional<SteadyTime> looked_at{};
    std::size_t records = 0;
    bool more = false;
  };

  const std::string queue_;
  const std::string table_;
  std::map<std::uint32_t, Shard> shards_;
  std::uint64_t gained_ = 0;
};

}  // namespace sluice::queue::leased
