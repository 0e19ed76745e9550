#include "host/stores/leased/leased_inspector.hpp"

#include <map>
#include <utility>
#include <vector>

#include "base/text/utf8.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/owner_figures.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/overview_count.hpp"

namespace sluice::queue::leased {
namespace {

// A page of a list ends there, short of its limit, so that nobody's memory depends on the size of messages.
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;
// Of each shard, where nobody tells what lies there and the count need not be exact: a megabyte.
constexpr std::size_t kCountedPages = 1;
// Of one round over the shards.
constexpr std::size_t kListRound = 1'000;

/// The units read are those of whole items all the same; what is left out is not transferred.
void project(HalfReader::Look& look, std::initializer_list<std::string_view> attributes) {
  for (const std::string_view name : attributes) {
    const std::string placeholder = "#" + std::string(name);
    look.projection += (look.projection.empty() ? "" : ", ") + placeholder;
    look.names.emplace(placeholder, name);
  }
}

/// The first ids in claiming order, of records that come in none.
class FirstIds {
 public:
  explicit FirstIds(std::size_t most) : most_(most) {}

  void add(RecordPosition standing, const std::string& id) {
    if (most_ == 0) {
      return;
    }
    ids_.emplace(std::move(standing), id);
    if (ids_.size() > most_) {
      ids_.erase(std::prev(ids_.end()));
    }
  }
  std::vector<std::string> finish() && {
    std::vector<std::string> ids;
    for (auto& [standing, id] : ids_) {
      ids.push_back(std::move(id));
    }
    return ids;
  }

 private:
  std::size_t most_;
  std::multimap<RecordPosition, std::string> ids_;
};

}  // namespace

Half half_of(const dynamo::Item& item) {
  const auto partition = parse_partition(Place::of(item).partition);
  return partition ? partition->half : Half::standard;
}

Result<dynamo::Item> LeasedInspector::record(const std::string& id, Deadline deadline) const {
  if (!is_storable_id(queue_.place.queue, id)) {
    return no_message(queue_.place.queue, clean_utf8(id, 100, "?"));
  }
  auto found = lookup_.find({id}, deadline);
  if (!found) {
    return table::store_error(queue_.place, found.error());
  }
  dynamo::Item& item = found->at(id).item;
  if (item.empty()) {
    return no_message(queue_.place.queue, id);
  }
  return std::move(item);
}

Result<StoredMessage> LeasedInspector::get(const std::string& id, Deadline deadline) const {
  SLUICE_TRY(item, record(id, deadline));
  return decode_record(*item, half_of(*item));
}

StoredMessage LeasedInspector::listed(const dynamo::Item& item, const ListRequest& request) {
  if (!request.content) {
    return decode_standing(item, request.half);
  }
  StoredMessage record = decode_record(item, request.half);
  if (request.native) {
    record.native = native_of(item);
  }
  return record;
}

Result<ListPage> LeasedInspector::list(const ListRequest& request, Deadline deadline, Scope* scope) const {
  HalfReader::Look look{.half = request.half, .newest_first = request.newest_first, .consistent = request.consistent};
  look.only = scope == nullptr ? nullptr : &scope->shards;
  if (!request.content) {
    project(look,
            {attribute::kPartition, attribute::kSort, attribute::kOwnId, attribute::kPriority, attribute::kSentAt,
             attribute::kCreatedAt, attribute::kUpdated, attribute::kVersion, attribute::kReceiveCount,
             attribute::kNotBefore, attribute::kReceived, attribute::kSuspect, attribute::kFailure, attribute::kHold});
  }
  if (!request.cursor.empty()) {
    SLUICE_TRY(after, decode_cursor(request.cursor, request.newest_first));
    look.after = std::move(*after);
  }
  ListPage result;
  std::size_t bytes = 0;
  for (bool more = true; more && result.messages.size() < request.limit && bytes < kListBytes;) {
    look.limit = std::min(request.limit - result.messages.size(), kListRound);
    SLUICE_TRY(records, reader_.in_order(look, deadline));
    for (const dynamo::Item& item : records->items) {
      result.messages.push_back(listed(item, request));
      bytes += result.messages.back().message.body.size() + result.messages.back().native.size();
      look.after = RecordPosition::of(Place::of(item));
      if (scope != nullptr) {
        scope->found.insert_or_assign(result.messages.back().message.id, look.after->shard);
      }
    }
    more = records->more;
    result.next = more ? encode_cursor(*look.after, request.newest_first) : std::string();
  }
  return result;
}

Result<std::optional<QueueStats>> LeasedInspector::announced(Half half, Deadline deadline) const {
  const auto heartbeats = read_partition(parts_.store.client, queue_.place.table, std::string(kHosts), false, deadline);
  if (!heartbeats) {
    return table::store_error(queue_.place, heartbeats.error());
  }
  OwnWords own;
  for (const Half one : {Half::standard, Half::dlq}) {
    if (auto word = queue_.own_word ? queue_.own_word(one) : std::nullopt) {
      own.emplace(one, *std::move(word));
    }
  }
  auto said = announced_stats(*heartbeats, {queue_.place.queue, half}, parts_.store.clock.wall_now(), own);
  if (!said) {
    return std::optional<QueueStats>();
  }
  if (said->in_use == 0) {
    SLUICE_TRY(shards, queue_.shards.get(deadline));
    said->in_use = shards->count;
  }
  said->stats.at_least = said->stats.at_least || said->held < said->in_use;
  return std::optional(said->stats);
}

Result<QueueStats> LeasedInspector::stats(const StatsRequest& request, Deadline deadline) const {
  const bool exact = request.consistent || request.exact;
  if (!exact) {
    SLUICE_TRY(said, announced(request.half, deadline));
    if (*said) {
      return **said;
    }
    if (request.cheap) {
      return Error(ErrorCode::unavailable, "no host that works on queue " + queue_.place.queue +
                                               " tells how much lies in it; it will within a lease of its start");
    }
  }
  auto counted = count({.half = request.half, .ids = 0, .exact = exact}, request.consistent, deadline);
  return counted ? Result<QueueStats>(counted->counts) : counted.error();
}

Result<QueueOverview> LeasedInspector::overview(const OverviewRequest& request, Deadline deadline) const {
  if (!request.exact) {
    SLUICE_TRY(said, announced(request.half, deadline));
    if (*said) {
      return QueueOverview{.counts = **said, .first_ids = {}, .first_in_flight_ids = {}, .errors = {}};
    }
  }
  return count(request, false, deadline);
}

// The time by which the records are judged is taken after the first answer, which may have put it right.
Result<QueueOverview> LeasedInspector::count(const OverviewRequest& request, bool consistent, Deadline deadline) const {
  HalfReader::Look look{.half = request.half, .consistent = consistent};
  project(look, {attribute::kPartition, attribute::kSort, attribute::kOwnId, attribute::kSentAt,
                 attribute::kReceiveCount, attribute::kNotBefore, attribute::kReceived});
  if (request.errors > 0) {
    project(look, {attribute::kFailure});
  }
  OverviewRequest wanted = request;
  wanted.ids = 0;  // they come in no order
  std::optional<table::OverviewCount> sum;
  WallTime now{};
  FirstIds first(request.ids);
  FirstIds first_hidden(request.ids);
  SLUICE_TRY(read, reader_.all(
                       look, deadline,
                       [&](const dynamo::Item& item) {
                         if (!sum) {
                           now = parts_.store.clock.wall_now();
                           sum.emplace(wanted, now);
                         }
                         const StoredMessage record = decode_standing(item, request.half);
                         sum->add(record);
                         first.add(RecordPosition::of(Place::of(item)), record.message.id);
                         if (record.state(now) != MessageState::ready) {
                           first_hidden.add(RecordPosition::of(Place::of(item)), record.message.id);
                         }
                       },
                       request.exact ? 0 : kCountedPages));
  QueueOverview overview = sum ? std::move(*sum).finish() : QueueOverview{};
  overview.first_ids = std::move(first).finish();
  overview.first_in_flight_ids = std::move(first_hidden).finish();
  overview.counts.at_least = !*read;
  return overview;
}

}  // namespace sluice::queue::leased
