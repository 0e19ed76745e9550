#include "host/stores/leased/half_reader.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace sluice::queue::leased {
namespace {

constexpr std::int64_t kMostAPage = 1'000;
constexpr char kForward = 'f';
constexpr char kBackward = 'b';
constexpr std::string_view kDigits = "0123";
constexpr std::size_t kFirstDigit = 0;

// What sorts behind every key of a priority: its digit's keys are of digits and capital letters.
constexpr char kBeyond = '~';

Error no_cursor() {
  return {ErrorCode::invalid, "the cursor is not one that such a list has given; leave it out to begin at the start"};
}

}  // namespace

RecordPosition RecordPosition::of(const Place& place) {
  const auto partition = parse_partition(place.partition);
  const bool ours = place.sort.size() > 1;
  return {.time = ours ? place.sort.substr(1) : place.sort,
          .digit = place.sort.empty() ? '0' : place.sort[kFirstDigit],
          .shard = partition ? partition->shard : 0};
}

std::string encode_cursor(const RecordPosition& last, bool newest_first) {
  return std::string(1, newest_first ? kBackward : kForward) + made_id(last.digit + last.time, last.shard);
}

Result<RecordPosition> decode_cursor(std::string_view cursor, bool newest_first) {
  if (cursor.empty() || cursor.front() != (newest_first ? kBackward : kForward)) {
    return no_cursor();
  }
  const auto keys = listed_keys(cursor.substr(1));
  if (!keys || keys->first.size() > 1024 || keys->second >= kMostShards) {
    return no_cursor();
  }
  return RecordPosition::of({partition_of("q", Half::standard, keys->second), keys->first});
}

/// The records of one priority in one shard, as far as they have been read.
struct HalfReader::Stream {
  std::uint32_t shard = 0;
  char digit = '0';
  std::deque<dynamo::Item> items{};
  bool done = false;                        // nothing lies behind what has been read
  std::optional<std::string> read_up_to{};  // the sort key
};

dynamo::QueryRequest HalfReader::query_of(const Look& look, std::uint32_t shard) const {
  dynamo::QueryRequest query;
  query.table = queue_.place.table;
  query.key_condition = "#p = :p";
  query.names = look.names;
  query.names.insert_or_assign("#p", std::string(attribute::kPartition));
  query.values.emplace(":p", partition_of(queue_.place.queue, look.half, shard));
  query.projection = look.projection;
  query.consistent = look.consistent;
  query.forward = !look.newest_first;
  return query;
}

// All of a shard in one query, where there are no more than are wanted.
Result<void> HalfReader::open_shard(const Look& look, std::uint32_t shard, std::vector<Stream>& streams,
                                    Deadline deadline) const {
  std::vector<Stream> opened;
  for (const char digit : kDigits) {
    opened.push_back({.shard = shard, .digit = digit});
  }
  if (!look.after) {
    dynamo::QueryRequest query = query_of(look, shard);
    query.limit = std::min<std::int64_t>(static_cast<std::int64_t>(look.limit) + 1, kMostAPage);
    auto page = parts_.store.client.query(query, deadline);
    if (!page) {
      return table::store_error(queue_.place, page.error());
    }
    const bool whole = page->last_evaluated_key.empty();
    const char last = whole || page->items.empty() ? '\0' : RecordPosition::of(Place::of(page->items.back())).digit;
    for (dynamo::Item& item : page->items) {
      const Place place = Place::of(item);
      const char digit = RecordPosition::of(place).digit;
      auto stream = std::find_if(opened.begin(), opened.end(), [&](const Stream& one) { return one.digit == digit; });
      if (stream == opened.end()) {  // somebody else's sort key
        stream = opened.insert(opened.end(), Stream{.shard = shard, .digit = digit, .done = true});
      }
      stream->read_up_to = place.sort;
      stream->items.push_back(std::move(item));
    }
    for (Stream& stream : opened) {
      const bool passed = look.newest_first ? stream.digit > last : stream.digit < last;
      stream.done = whole || stream.done || (last != '\0' && passed);
    }
  }
  std::move(opened.begin(), opened.end(), std::back_inserter(streams));
  return {};
}

Result<std::vector<HalfReader::Stream>> HalfReader::open_streams(const Look& look, Deadline deadline) const {
  SLUICE_TRY(count, shards(deadline));
  std::vector<Stream> streams;
  for (std::uint32_t shard = 0; shard < count->most_ever; ++shard) {
    if (look.only != nullptr && !look.only->contains(shard)) {
      continue;
    }
    SLUICE_PASS_ON(open_shard(look, shard, streams, deadline));
  }
  return streams;
}

// Reads on in one priority of a shard.
Result<void> HalfReader::fill(const Look& look, Stream& stream, Deadline deadline) const {
  while (stream.items.empty() && !stream.done) {
    dynamo::QueryRequest query = query_of(look, stream.shard);
    std::string low(1, stream.digit);
    std::string high = low + kBeyond;
    std::string& bound = look.newest_first ? high : low;
    if (stream.read_up_to) {
      bound = *stream.read_up_to;
    } else if (look.after) {
      bound = stream.digit + look.after->time;
    }
    query.key_condition += " AND #s BETWEEN :low AND :high";
    query.names.insert_or_assign("#s", std::string(attribute::kSort));
    query.values.emplace(":low", low);
    query.values.emplace(":high", high);
    query.limit = std::min<std::int64_t>(static_cast<std::int64_t>(look.limit) + 2, kMostAPage);
    auto page = parts_.store.client.query(query, deadline);
    if (!page) {
      return table::store_error(queue_.place, page.error());
    }
    for (dynamo::Item& item : page->items) {
      const Place place = Place::of(item);
      const RecordPosition standing = RecordPosition::of(place);
      // The bounds belong to what is between them.
      const bool seen = stream.read_up_to
                            ? place.sort == *stream.read_up_to
                            : look.after && (look.newest_first ? standing >= *look.after : standing <= *look.after);
      if (!seen) {
        stream.items.push_back(std::move(item));
      }
    }
    if (!stream.items.empty()) {
      stream.read_up_to = Place::of(stream.items.back()).sort;
    }
    stream.done = page->last_evaluated_key.empty();
  }
  return {};
}

Result<HalfReader::Records> HalfReader::in_order(const Look& look, Deadline deadline) const {
  SLUICE_TRY(streams, open_streams(look, deadline));
  Records records;
  for (;;) {
    Stream* next = nullptr;
    RecordPosition best;
    for (Stream& stream : *streams) {
      SLUICE_PASS_ON(fill(look, stream, deadline));
      if (stream.items.empty()) {
        continue;
      }
      RecordPosition standing = RecordPosition::of(Place::of(stream.items.front()));
      if (next == nullptr || (look.newest_first ? standing > best : standing < best)) {
        next = &stream;
        best = std::move(standing);
      }
    }
    if (next == nullptr) {
      return records;
    }
    if (records.items.size() == look.limit) {
      records.more = true;
      return records;
    }
    records.items.push_back(std::move(next->items.front()));
    next->items.pop_front();
  }
}

Result<bool> HalfReader::all(const Look& look, Deadline deadline, const std::function<void(const dynamo::Item&)>& each,
                             std::size_t most_pages) const {
  SLUICE_TRY(count, shards(deadline));
  bool whole = true;
  for (std::uint32_t shard = 0; shard < count->most_ever; ++shard) {
    dynamo::QueryRequest query = query_of(look, shard);
    std::size_t pages = 0;
    do {
      auto page = parts_.store.client.query(query, deadline);
      if (!page) {
        return table::store_error(queue_.place, page.error());
      }
      for (const dynamo::Item& item : page->items) {
        each(item);
      }
      query.exclusive_start_key = std::move(page->last_evaluated_key);
    } while (!query.exclusive_start_key.empty() && ++pages != most_pages);
    whole = whole && query.exclusive_start_key.empty();
  }
  return whole;
}

}  // namespace sluice::queue::leased
