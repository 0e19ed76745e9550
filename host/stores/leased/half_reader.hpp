#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/client.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/leased/leased_parts.hpp"

namespace sluice::queue::leased {

/// Where a record stands in the order of its half, whatever its priority: by the time of its key, then by what makes
/// keys differ. A value.
struct RecordPosition {
  std::string time;  ///< of the sort key, and its chance
  char digit = '0';  ///< of its priority
  std::uint32_t shard = 0;

  static RecordPosition of(const Place& place);
  friend auto operator<=>(const RecordPosition&, const RecordPosition&) = default;
};

/// A place in a list, as opaque text; it leads on although what lay there is gone.
std::string encode_cursor(const RecordPosition& last, bool newest_first);
/// ErrorCode::invalid for what is no cursor of such a list.
Result<RecordPosition> decode_cursor(std::string_view cursor, bool newest_first);

/// Reads one half of a queue across its shards. Thread-safe.
class HalfReader {
 public:
  HalfReader(LeasedParts parts, LeasedQueue& queue) : parts_(parts), queue_(queue) {}

  struct Look {
    Half half = Half::standard;
    std::size_t limit = 0;
    const std::set<std::uint32_t>* only = nullptr;  ///< null: of all shards
    std::optional<RecordPosition> after{};
    bool newest_first = false;
    bool consistent = false;
    std::string projection{};
    std::map<std::string, std::string> names{};
  };
  struct Records {
    std::vector<dynamo::Item> items;  ///< in the order asked for
    bool more = false;
  };
  /// So many records in order. A shard is asked once, and for each priority of which it has more than fit; half a read
  /// unit at least each time.
  Result<Records> in_order(const Look& look, Deadline deadline) const;

  /// Every record of the half, shard by shard, in no order. `each` is called with each of them. With `most_pages`, no
  /// more than so many of a shard; false: there are more.
  Result<bool> all(const Look& look, Deadline deadline, const std::function<void(const dynamo::Item&)>& each,
                   std::size_t most_pages = 0) const;

 private:
  struct Stream;

  Result<Shards> shards(Deadline deadline) const { return queue_.shards.get(deadline); }
  dynamo::QueryRequest query_of(const Look& look, std::uint32_t shard) const;
  Result<std::vector<Stream>> open_streams(const Look& look, Deadline deadline) const;
  Result<void> open_shard(const Look& look, std::uint32_t shard, std::vector<Stream>& streams, Deadline deadline) const;
  Result<void> fill(const Look& look, Stream& stream, Deadline deadline) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
};

}  // namespace sluice::queue::leased
