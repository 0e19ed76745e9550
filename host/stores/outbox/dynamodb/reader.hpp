#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/dynamodb/passed_stretches.hpp"

namespace sluice::queue::outbox {

/// Reads pending rows: one consistent query for each bucket, so that a row is seen in its order from the moment it was
/// committed. There are no notifications.
class DynamoDbReader final : public ReadSession {
 public:
  /// `place` must outlive it.
  explicit DynamoDbReader(OutboxPlace& place) : place_(place) {}

  Result<SourceId> source_id(Deadline deadline) override { return place_.source_id(deadline); }
  Result<Page> fetch(const FetchRequest& request, Deadline deadline) override;
  Result<std::vector<GroupRows>> fetch_groups(std::span<const Group> groups, std::size_t limit,
                                              const FetchRequest& request, Deadline deadline) override;
  Result<News> wait(int wake, Deadline deadline) override;

 private:
  static constexpr std::size_t kMostGroupsKnown = 100'000;

  /// Where a group's rows begin, as far as has been seen.
  struct Start {
    std::uint32_t bucket = 0;
    std::int64_t first = 0;
  };
  /// Rows of one partition, by id.
  struct Stretch {
    std::vector<Row> rows;
    std::int64_t last = 0;  ///< the id up to which all has been read
    bool more = false;
  };

  /// Up to which id each partition has been read.
  using Reached = std::map<std::string, std::int64_t>;

  Result<Page> fetch(const FetchRequest& request, Reached& reached, Deadline deadline);
  Result<Page> fetch_some(const FetchRequest& request, Reached& reached, Deadline deadline);
  Result<Stretch> read(const std::string& partition, const FetchRequest& request, std::size_t limit, Deadline deadline);
  std::vector<std::uint32_t> with_higher(std::span<const std::uint32_t> buckets) const;
  dynamo::QueryRequest query_of(const std::string& partition, std::int64_t after, bool from_start) const;
  void note(const Row& row);

  OutboxPlace& place_;
  std::vector<std::uint32_t> higher_;  ///< buckets beyond the number; the same for all pages from the first row on
  std::map<Group, Start> starts_;
  PassedStretches passed_;
  Reached reached_;              ///< since the pages began at the first row
  std::int64_t read_up_to_ = 0;  ///< by the last look: the id up to which all buckets have been read
};

}  // namespace sluice::queue::outbox
