#include "host/stores/outbox/dynamodb/reader.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

bool waits(const Group& group, const FetchRequest& request) {
  return std::binary_search(request.without.begin(), request.without.end(), group);
}

// A dead letter without a group holds nothing.
bool passed_over(const Row& row, const FetchRequest& request) {
  return (row.dead && (!request.dead || row.group.id.empty())) || !wants(*request.filter, row.group.type, row.event) ||
         waits(row.group, request);
}

std::vector<std::string> partitions_of(const FetchRequest& request, std::span<const std::uint32_t> buckets) {
  std::vector<std::string> partitions;
  for (const std::uint32_t bucket : buckets) {
    if (request.dead) {
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

}  // namespace

Result<Page> DynamoDbReader::fetch(const FetchRequest& request, Deadline deadline) {
  if (request.from_start) {
    reached_.clear();
    higher_ = place_.higher_buckets(deadline);
  }
  return fetch(request, reached_, deadline);
}

// A page of which the filter leaves nothing says nothing about the ones behind it.
Result<Page> DynamoDbReader::fetch(const FetchRequest& request, Reached& reached, Deadline deadline) {
  FetchRequest next = request;
  while (true) {
    auto page = fetch_some(next, reached, deadline);
    if (!page || !page->rows.empty() || !page->more) {
      return page;
    }
    next.from_start = false;
    next.after = read_up_to_;
  }
}

Result<Page> DynamoDbReader::fetch_some(const FetchRequest& request, Reached& reached, Deadline deadline) {
  const auto partitions = partitions_of(request, with_higher(request.buckets));
  const std::size_t share = request.limit / partitions.size() + 1;
  std::vector<Row> rows;
  read_up_to_ = std::numeric_limits<std::int64_t>::max();
  bool more = false;
  for (const std::string& partition : partitions) {
    // Ids grow within a bucket alone: what has landed in one since its end was read may stand before `after`.
    const auto known = request.from_start ? reached.end() : reached.find(partition);
    FetchRequest own = request;
    own.after = known == reached.end() ? request.after : std::min(request.after, known->second);
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

// Those beyond the number that go with these, too.
std::vector<std::uint32_t> DynamoDbReader::with_higher(std::span<const std::uint32_t> buckets) const {
  std::vector<std::uint32_t> all(buckets.begin(), buckets.end());
  std::copy_if(higher_.begin(), higher_.end(), std::back_inserter(all), [&](std::uint32_t higher) {
    return std::find(buckets.begin(), buckets.end(), higher % place_.table().buckets) != buckets.end();
  });
  return all;
}

dynamo::QueryRequest DynamoDbReader::query_of(const std::string& partition, std::int64_t after, bool from_start) const {
  dynamo::QueryRequest query;
  query.table = place_.table().table;
  query.consistent = true;
  query.key_condition = "#b = :b";
  query.names.emplace("#b", kBucket);
  query.values.emplace(":b", partition);
  if (!from_start) {
    query.key_condition += " AND #id > :after";
    query.names.emplace("#id", place_.columns().id);
    query.values.emplace(":after", AttributeValue::number(after));
  }
  return query;
}

Result<DynamoDbReader::Stretch> DynamoDbReader::read(const std::string& partition, const FetchRequest& request,
                                                     std::size_t limit, Deadline deadline) {
  const std::int64_t begin = request.from_start ? std::numeric_limits<std::int64_t>::min() : request.after;
  const std::int64_t after = passed_.skip(partition, begin, request.without, place_.steady_now());
  dynamo::QueryRequest query = query_of(partition, after, request.from_start && after == begin);
  query.limit = static_cast<std::int64_t>(limit);
  auto page = place_.client().query(query, deadline);
  if (!page) {
    return place_.error_of(page.error());
  }
  Stretch stretch{.last = after};
  const WallTime now = place_.now();
  std::set<Group> waiting;
  bool passed = true;
  for (const dynamo::Item& item : page->items) {
    const auto id = place_.rows().id_of(item);
    if (!id) {
      continue;  // `inspect` tells of it
    }
    stretch.last = *id;
    stretch.rows.push_back(place_.rows().row_of(item, now));
    note(stretch.rows.back());
    passed = passed && passed_over(stretch.rows.back(), request);
    if (waits(stretch.rows.back().group, request)) {
      waiting.insert(stretch.rows.back().group);
    }
  }
  if (passed && !stretch.rows.empty()) {
    passed_.add(partition, after, stretch.last, waiting, place_.steady_now());
  }
  if (const auto last = place_.rows().id_of(page->last_evaluated_key)) {
    stretch.more = true;
    stretch.last = *last;
  }
  return stretch;
}

void DynamoDbReader::note(const Row& row) {
  if (starts_.size() >= kMostGroupsKnown) {
    starts_.clear();  // they are found again, at a price
  }
  const auto [place, fresh] = starts_.try_emplace(row.group, Start{row.bucket, row.id});
  if (!fresh && row.id < place->second.first) {
    place->second = {row.bucket, row.id};
  }
}

Result<std::vector<GroupRows>> DynamoDbReader::fetch_groups(std::span<const Group> groups, std::size_t limit,
                                                            const FetchRequest& request, Deadline deadline) {
  std::vector<GroupRows> found(groups.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto start = starts_.find(groups[i]);
    std::vector<std::uint32_t> buckets(request.buckets.begin(), request.buckets.end());
    FetchRequest from = request;
    from.without = {};
    if (start != starts_.end()) {
      buckets = {start->second.bucket};
      from.from_start = start->second.first == std::numeric_limits<std::int64_t>::min();
      from.after = start->second.first - (from.from_start ? 0 : 1);
      starts_.erase(start);  // reading it again tells where it begins now
    }
    from.buckets = buckets;
    from.limit = std::max<std::size_t>(limit, 100) * buckets.size();
    Reached reached;
    while (found[i].rows.size() <= limit && bytes < request.bytes) {
      SLUICE_TRY(page, fetch(from, reached, deadline));
      for (Row& row : page->rows) {
        from.after = row.id;
        if (row.group == groups[i] && found[i].rows.size() <= limit) {
          bytes += row.payload.size();
          found[i].rows.push_back(std::move(row));
        }
      }
      from.from_start = false;
      if (!page->more) {
        break;
      }
    }
    found[i].more = found[i].rows.size() > limit || bytes >= request.bytes;
    found[i].rows.resize(std::min(found[i].rows.size(), limit));
  }
  return found;
}

Result<ReadSession::News> DynamoDbReader::wait(int wake, Deadline deadline) {
  pollfd waited{.fd = wake, .events = POLLIN, .revents = 0};
  const auto left = deadline.left(place_.steady_now());
  const auto most = std::chrono::milliseconds(std::numeric_limits<int>::max());
  const auto span = std::min(std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, most)), most);
  if (::poll(&waited, 1, deadline.is_never() ? -1 : static_cast<int>(span.count())) < 0 && errno != EINTR) {
    return Error(ErrorCode::internal, std::string("cannot wait for news: ") + std::strerror(errno));
  }
  return News::none;
}

}  // namespace sluice::queue::outbox
