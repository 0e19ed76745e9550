#include <iterator>
#include <utility>

#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace sluice::queue::outbox {
namespace {

// A row that is committed so long after one of a higher id is found when the stretch is looked at again.
constexpr Duration kLate = std::chrono::minutes(1);
constexpr Duration kReadAgain = std::chrono::minutes(1);
constexpr Duration kForget = std::chrono::minutes(10);

/// Stretches of a partition of which nobody wants a row as long as certain groups wait. A query pays for all that it
/// passes over, so that such a stretch is looked at once a minute, and not with every poll. In its first minute it is
/// read all the same: rows that are committed late may come in between. Not thread-safe.
class PassedStretches {
 public:
  /// Where who would read on behind `after` may do so as well.
  std::int64_t skip(const std::string& partition, std::int64_t after, std::span<const Group> without, SteadyTime now) {
    auto& known = stretches_[partition];
    std::erase_if(known, [now](const auto& one) { return now - one.second.read > kForget; });
    for (const auto& [begin, stretch] : known) {
      if (begin <= after && after < stretch.last && now - stretch.found >= kLate && now - stretch.read < kReadAgain &&
          std::includes(without.begin(), without.end(), stretch.groups.begin(), stretch.groups.end())) {
        after = stretch.last;
      }
    }
    return after;
  }

  /// All rows behind `after` and up to `last` have been passed over, because these groups wait or whatever waits.
  void add(const std::string& partition, std::int64_t after, std::int64_t last, const std::set<Group>& groups,
           SteadyTime now) {
    auto& known = stretches_[partition];
    while (after < last) {
      const auto next = known.upper_bound(after);
      const auto at = next == known.begin() ? known.end() : std::prev(next);
      if (at == known.end() || at->second.last <= after) {
        const std::int64_t end = next == known.end() ? last : std::min(last, next->first);
        known.insert_or_assign(after, Stretch{end, now, now, groups});
        after = end;
        continue;
      }
      if (at->first == after) {
        at->second.last = std::min(at->second.last, last);
        at->second.read = now;
        at->second.groups = groups;
      }
      after = at->second.last;
    }
  }

 private:
  struct Stretch {
    std::int64_t last = 0;
    SteadyTime found{};
    SteadyTime read{};
    std::set<Group> groups;
  };

  std::map<std::string, std::map<std::int64_t, Stretch>> stretches_;  ///< by what they begin behind; apart
};

bool waits(const Group& group, const FetchRequest& request) {
  return std::binary_search(request.without.begin(), request.without.end(), group);
}

// A dead letter without a group holds nothing.
bool passed_over(const Row& row, const FetchRequest& request) {
  return (row.dead && (!request.filter->hold_dead || row.group.id.empty())) ||
         !wants(*request.filter, row.group.type, row.event) || waits(row.group, request);
}

std::vector<std::string> partitions_of(const FetchRequest& request, std::span<const std::uint32_t> buckets) {
  std::vector<std::string> partitions;
  for (const std::uint32_t bucket : buckets) {
    if (request.filter->hold_dead) {
      partitions.push_back(dead_partition_of(bucket));  // first: a row that is redriven meanwhile is in one of both
    }
    partitions.push_back(partition_of(bucket));
  }
  return partitions;
}

// The rows of a page: as many as were asked for, by number and by bytes.
Page cut(std::vector<Row> rows, bool more, const FetchRequest& request) {
  std::size_t bytes = 0;
  std::size_t kept = 0;
  // The next page goes on behind an id, so that rows of one id, each in a bucket of its own, stay together.
  const auto belongs = [&] { return kept > 0 && rows[kept].id == rows[kept - 1].id; };
  while (kept < rows.size() && ((kept < request.limit && bytes < request.bytes) || belongs())) {
    bytes += rows[kept++].payload.size();
  }
  more = more || kept < rows.size();
  rows.resize(kept);
  return {std::move(rows), more};
}

class DynamoDbReader final : public ReadSession {
 public:
  explicit DynamoDbReader(OutboxPlace& place) : place_(place) {}

  Result<SourceId> source_id(Deadline deadline) override { return place_.source_id(deadline); }

  Result<Page> fetch(const FetchRequest& request, Deadline deadline) override {
    if (!request.beyond) {
      reached_.clear();
      higher_ = place_.higher_buckets(deadline);
    }
    return fetch(request, reached_, deadline);
  }

  Result<std::vector<Page>> fetch_groups(std::span<const Group> groups, const FetchRequest& request,
                                         Deadline deadline) override {
    const std::size_t limit = request.limit;
    std::vector<Page> found(groups.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto start = starts_.find(groups[i]);
      std::vector<std::uint32_t> buckets(request.buckets.begin(), request.buckets.end());
      FetchRequest from = request;
      from.without = {};
      if (start != starts_.end()) {
        buckets = {start->second.bucket};
        if (start->second.first > std::numeric_limits<std::int64_t>::min()) {
          from.beyond = RowKey{.id = start->second.first - 1};
        }
        starts_.erase(start);  // reading it again tells where it begins now
      }
      from.buckets = buckets;
      from.limit = std::max<std::size_t>(limit, 100) * buckets.size();
      Reached reached;
      while (found[i].rows.size() <= limit && bytes < request.bytes) {
        SLUICE_TRY(page, fetch(from, reached, deadline));
        for (Row& row : page->rows) {
          from.beyond = RowKey{.id = row.id};
          if (row.group == groups[i] && found[i].rows.size() <= limit) {
            bytes += row.payload.size();
            found[i].rows.push_back(std::move(row));
          }
        }
        if (!page->more) {
          break;
        }
      }
      found[i].more = found[i].rows.size() > limit || bytes >= request.bytes;
      found[i].rows.resize(std::min(found[i].rows.size(), limit));
    }
    return found;
  }

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

  // A page of which the filter leaves nothing says nothing about the ones behind it.
  Result<Page> fetch(const FetchRequest& request, Reached& reached, Deadline deadline) {
    FetchRequest next = request;
    while (true) {
      auto page = fetch_some(next, reached, deadline);
      if (!page || !page->rows.empty() || !page->more) {
        return page;
      }
      next.beyond = RowKey{.id = read_up_to_};
    }
  }

  Result<Page> fetch_some(const FetchRequest& request, Reached& reached, Deadline deadline) {
    const auto partitions = partitions_of(request, with_higher(request.buckets));
    const std::size_t share = request.limit / partitions.size() + 1;
    std::vector<Row> rows;
    read_up_to_ = std::numeric_limits<std::int64_t>::max();
    bool more = false;
    for (const std::string& partition : partitions) {
      // Ids grow within a bucket alone: what has landed in one since its end was read may stand before `after`.
      FetchRequest own = request;
      if (const auto known = reached.find(partition); own.beyond && known != reached.end()) {
        own.beyond->id = std::min(own.beyond->id, known->second);
      }
      SLUICE_TRY(stretch, read(partition, own, share, deadline));
      reached.insert_or_assign(partition, stretch->last);
      if (stretch->more) {
        more = true;
        read_up_to_ = std::min(read_up_to_, stretch->last);
      }
      std::move(stretch->rows.begin(), stretch->rows.end(), std::back_inserter(rows));
    }
    // What lies beyond the first gap comes with a later page, in its order.
    std::erase_if(rows, [this](const Row& row) { return row.id > read_up_to_; });
    std::erase_if(rows, [&request](const Row& row) { return passed_over(row, request); });
    std::sort(rows.begin(), rows.end(), [](const Row& one, const Row& other) { return one.key() < other.key(); });
    return cut(std::move(rows), more, request);
  }

  Result<Stretch> read(const std::string& partition, const FetchRequest& request, std::size_t limit,
                       Deadline deadline) {
    const std::int64_t begin = request.beyond ? request.beyond->id : std::numeric_limits<std::int64_t>::min();
    const std::int64_t after = passed_.skip(partition, begin, request.without, place_.clock().steady_now());
    dynamo::QueryRequest query =
        place_.query_of(partition, !request.beyond && after == begin ? std::nullopt : std::optional(after));
    query.limit = static_cast<std::int64_t>(limit);
    SLUICE_TRY(page, place_.told(place_.client().query(query, deadline)));
    Stretch stretch{.last = after};
    const WallTime now = place_.now();
    std::set<Group> waiting;
    bool passed = true;
    for (const dynamo::Item& item : page->items) {
      const auto id = place_.id_of(item);
      if (!id) {
        continue;  // `inspect` tells of it
      }
      stretch.last = *id;
      stretch.rows.push_back(place_.row_of(item, now));
      note(stretch.rows.back());
      passed = passed && passed_over(stretch.rows.back(), request);
      if (waits(stretch.rows.back().group, request)) {
        waiting.insert(stretch.rows.back().group);
      }
    }
    if (passed && !stretch.rows.empty()) {
      passed_.add(partition, after, stretch.last, waiting, place_.clock().steady_now());
    }
    if (const auto last = place_.id_of(page->last_evaluated_key)) {
      stretch.more = true;
      stretch.last = *last;
    }
    return stretch;
  }

  // Those beyond the number that go with these, too.
  std::vector<std::uint32_t> with_higher(std::span<const std::uint32_t> buckets) const {
    std::vector<std::uint32_t> all(buckets.begin(), buckets.end());
    std::copy_if(higher_.begin(), higher_.end(), std::back_inserter(all), [&](std::uint32_t higher) {
      return std::find(buckets.begin(), buckets.end(), higher % place_.table().buckets) != buckets.end();
    });
    return all;
  }

  void note(const Row& row) {
    if (starts_.size() >= kMostGroupsKnown) {
      starts_.clear();  // they are found again, at a price
    }
    const auto [place, fresh] = starts_.try_emplace(row.group, Start{row.bucket, row.id});
    if (!fresh && row.id < place->second.first) {
      place->second = {row.bucket, row.id};
    }
  }

  OutboxPlace& place_;
  std::vector<std::uint32_t> higher_;  ///< buckets beyond the number; the same for all pages from the first row on
  std::map<Group, Start> starts_;
  PassedStretches passed_;
  Reached reached_;              ///< since the pages began at the first row
  std::int64_t read_up_to_ = 0;  ///< by the last look: the id up to which all buckets have been read
};

}  // namespace

std::unique_ptr<ReadSession> make_dynamodb_reader(OutboxPlace& place) {
  return std::make_unique<DynamoDbReader>(place);
}

}  // namespace sluice::queue::outbox
