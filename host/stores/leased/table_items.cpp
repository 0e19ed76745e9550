#include "host/stores/leased/table_items.hpp"

#include <utility>

#include "base/text/utf8.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

constexpr std::size_t kShownBytes = 100;
// Beyond what clocks that are nearly right may differ.
constexpr Duration kFuture = std::chrono::minutes(1);
constexpr std::string_view kDlqOwners = "@dlq";
constexpr std::string_view kOwners = "@";
constexpr std::string_view kOrdered = "ordered";  // an item beside the owners': the half is handed out by groups
constexpr std::string_view kOurs = "sluice:";

std::string shown(const Place& place) {
  return "'" + clean_utf8(place.partition, kShownBytes, "?") + "/" + clean_utf8(place.sort, kShownBytes, "?") + "'";
}

/// The queue whose partition this is by that ending; empty: it is none.
std::string queue_before(const std::string& partition, std::string_view ending) {
  return partition.size() > ending.size() && partition.ends_with(ending)
             ? partition.substr(0, partition.size() - ending.size())
             : std::string();
}

bool is_alias(const Place& place, const dynamo::Item& item) {
  return place.partition.find("#id/") != std::string::npos && place.sort == kAlone &&
         dynamo::find<std::string>(item, attribute::kTarget) != nullptr &&
         dynamo::find<std::string>(item, attribute::kTargetSort) != nullptr;
}

bool is_hold(const Place& place, const dynamo::Item& item) {
  const auto mark = place.partition.find_last_of('%');
  return mark != std::string::npos && dynamo::find<std::string>(item, attribute::kOwnId) != nullptr;
}

}  // namespace

void TableItemsExamination::advise(std::string what, std::string mend) {
  found_.findings.push_back({table::FindingLevel::advice, std::move(what), std::move(mend)});
}

void TableItemsExamination::note_foreign(const dynamo::Item& item, const std::string& why) {
  if (++found_.foreign <= TableItems::kNamed) {
    foreign_names_ += (foreign_names_.empty() ? "" : ", ") + shown(Place::of(item)) + " (" + why + ")";
  }
}

void TableItemsExamination::add(const dynamo::Item& item) {
  ++found_.read;
  const Place place = Place::of(item);
  if (const auto partition = parse_partition(place.partition)) {
    found_.queues.insert(partition->queue);
    return add_message(item);
  }
  if (place.partition == kHosts) {
    return add_heartbeat(item, place.sort);
  }
  for (const std::string_view ending : {kDlqOwners, kOwners}) {
    if (const std::string queue = queue_before(place.partition, ending); !queue.empty()) {
      found_.queues.insert(queue);
      return add_ownership(item, queue, place.sort);
    }
  }
  const bool ours = place.partition.starts_with(kOurs) && place.sort == kAlone;
  if (!ours && !is_alias(place, item) && !is_hold(place, item)) {
    note_foreign(item, "nothing of this layout has such keys");
  }
}

void TableItemsExamination::add_message(const dynamo::Item& item) {
  if (const std::string why = oddity_of(item); !why.empty()) {
    note_foreign(item, why);
  }
}

void TableItemsExamination::add_heartbeat(const dynamo::Item& item, const std::string& host) {
  const auto lease = dynamo::whole_number(item, attribute::kLease);
  if (!dynamo::whole_number(item, attribute::kCounter) || !lease || *lease <= 0) {
    return advise("the heartbeat " + shown(Place::of(item)) +
                      " has no counter or no lease, so that nobody can tell "
                      "whether its host lives",
                  "delete it; a host that lives writes its own anew");
  }
  const auto written_at = time_of(item, attribute::kUpdated);
  if (!written_at) {
    return;
  }
  if (*written_at > now_ + kFuture) {
    advise("host '" + clean_utf8(host, kShownBytes, "?") +
               "' writes heartbeats from the future, so that its clock is "
               "ahead, or this machine's is behind",
           "set both by NTP; who lives is judged without wall clocks, but delays and dates are not");
  }
  const auto leaving = dynamo::find<bool>(item, attribute::kLeaving);
  const bool fresh = now_ - *written_at <= std::chrono::milliseconds(*lease) && *written_at <= now_ + kFuture;
  if (fresh && (leaving == nullptr || !*leaving)) {
    living_[host.substr(0, host.rfind('/'))].insert(host);
  }
}

void TableItemsExamination::add_ownership(const dynamo::Item& item, const std::string& queue, const std::string& sort) {
  if (sort == kOrdered) {
    return;
  }
  if (sort == kShardsKey) {
    const table::QueueTable place{queue, table_, {}, {}};
    if (const auto shards = shards_of(item, place, kDefaultShards); !shards) {
      found_.findings.push_back(
          {table::FindingLevel::unfit,
           "queue '" + queue + "' has a number of shards that no queue can have: " + shards.error().message(),
           "nothing is sent or handed out until then"});
    }
    return;
  }
  if (!shard_of_ownership(sort)) {
    return note_foreign(item, "it lies among the owners of shards and names none");
  }
  const auto* owner = dynamo::find<std::string>(item, attribute::kOwner);
  const auto epoch = dynamo::whole_number(item, attribute::kEpoch);
  if (owner == nullptr || !epoch || *epoch < 1) {
    advise("the ownership item " + shown(Place::of(item)) + " is half made: it has no " +
               (owner == nullptr ? "owner (o)" : "epoch (e)"),
           "delete it while no host works on queue '" + queue + "'; hosts make it anew");
  }
}

TableItems TableItemsExamination::finish() && {
  for (const auto& [name, incarnations] : living_) {
    if (incarnations.size() > 1) {
      advise(std::to_string(incarnations.size()) + " hosts call themselves '" + clean_utf8(name, kShownBytes, "?") +
                 "', and reports and steering cannot tell them apart",
             "give each a [host] name of its own; a host that has just started again is seen twice for the length of "
             "a lease");
    }
  }
  if (found_.foreign > 0) {
    const bool one = found_.foreign == 1;
    advise(std::to_string(found_.foreign) + (one ? " item is" : " items are") +
               " nothing of this layout, or no message that anybody could hand out: " + foreign_names_ +
               (found_.foreign > TableItems::kNamed ? ", ..." : ""),
           "mend or delete " + std::string(one ? "it" : "them") + "; hosts pass over it");
  }
  return std::move(found_);
}

Result<TableItems> examine_items(dynamo::Client& client, const std::string& table, std::size_t most_requests,
                                 WallTime now, Deadline deadline) {
  dynamo::ScanRequest scan;
  scan.table = table;
  TableItemsExamination examination(table, now);
  double read_units = 0;
  bool whole = false;
  for (std::size_t requests = 0; requests < most_requests && !whole; ++requests) {
    auto page = client.scan(scan, deadline);
    if (!page) {
      return table::store_error({table, table, {}, {}}, page.error());
    }
    read_units += page->capacity.read;
    for (const auto& item : page->items) {
      examination.add(item);
    }
    scan.exclusive_start_key = std::move(page->last_evaluated_key);
    whole = scan.exclusive_start_key.empty();
  }
  TableItems found = std::move(examination).finish();
  found.read_units = read_units;
  found.whole = whole;
  return found;
}

}  // namespace sluice::queue::leased
