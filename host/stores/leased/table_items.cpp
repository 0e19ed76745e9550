#include "host/stores/leased/table_items.hpp"

#include <map>
#include <set>
#include <utility>

#include "base/text/utf8.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

using table::ExaminedItems;

constexpr std::size_t kShownBytes = 100;
// Beyond what clocks that are nearly right may differ.
constexpr Duration kFuture = std::chrono::minutes(1);
constexpr std::string_view kDlqOwners = "@dlq";
constexpr std::string_view kOwners = "@";
constexpr std::string_view kOurs = "sluice:";

std::string name_of(const Place& place) {
  return clean_utf8(place.partition, kShownBytes, "?") + "/" + clean_utf8(place.sort, kShownBytes, "?");
}
std::string shown(const Place& place) { return "'" + name_of(place) + "'"; }

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

/// Judges the items of a table one by one.
class Examination {
 public:
  Examination(std::string table, WallTime now) : table_(std::move(table)), now_(now) {}

  void add(ExaminedItems& found, const dynamo::Item& item) {
    const Place place = Place::of(item);
    // First what has an id or a key of somebody's own, which may end as any partition does.
    const bool ours = place.partition.starts_with(kOurs) && place.sort == kAlone;
    if (ours || is_alias(place, item) || is_hold(place, item)) {
      return;
    }
    if (parse_partition(place.partition)) {
      if (std::string why = oddity_of(item); !why.empty()) {
        found.note_outside(name_of(place), std::move(why));
      }
      return;
    }
    if (place.partition == kHosts) {
      return add_heartbeat(found, item);
    }
    if (place.partition == kQueues) {
      return;
    }
    for (const std::string_view ending : {kDlqOwners, kOwners}) {
      if (const std::string queue = queue_before(place.partition, ending); !queue.empty()) {
        return add_ownership(found, item, queue);
      }
    }
    found.note_outside(name_of(place), "nothing of this layout has such keys");
  }

  void finish(ExaminedItems& found) const {
    for (const auto& [name, incarnations] : living_) {
      if (incarnations.size() > 1) {
        found.advise(std::to_string(incarnations.size()) + " hosts call themselves '" +
                         clean_utf8(name, kShownBytes, "?") + "', and reports and steering cannot tell them apart",
                     "give each a [host] name of its own; a host that has just started again is seen twice for the "
                     "length of a lease");
      }
    }
    if (found.outside > 0) {
      const bool one = found.outside == 1;
      found.advise(std::to_string(found.outside) + (one ? " item is" : " items are") +
                       " nothing of this layout, or no message that anybody could hand out: " + found.named(),
                   "mend or delete " + std::string(one ? "it" : "them") + "; hosts pass over it");
    }
  }

 private:
  void add_heartbeat(ExaminedItems& found, const dynamo::Item& item) {
    const auto beat = decode_beat(item);
    if (!beat) {
      return found.advise("the heartbeat " + shown(Place::of(item)) +
                              " has no counter or no lease, so that nobody can tell whether its host lives",
                          "delete it; a host that lives writes its own anew");
    }
    if (!beat->written_at) {
      return;
    }
    if (*beat->written_at > now_ + kFuture) {
      found.advise("host '" + clean_utf8(beat->host, kShownBytes, "?") +
                       "' writes heartbeats from the future, so that its clock is ahead, or this machine's is behind",
                   "set both by NTP; who lives is judged without wall clocks, but delays and dates are not");
    } else if (!beat->leaving && now_ - *beat->written_at <= beat->lease) {
      living_[beat->host.substr(0, beat->host.rfind('/'))].insert(beat->host);
    }
  }

  void add_ownership(ExaminedItems& found, const dynamo::Item& item, const std::string& queue) const {
    const Place place = Place::of(item);
    if (place.sort == kOrderedKey) {
      return;
    }
    if (place.sort == kShardsKey) {
      if (const auto shards = shards_of(item, {queue, table_, {}, {}}, kDefaultShards); !shards) {
        found.findings.push_back(
            {table::FindingLevel::unfit,
             "queue '" + queue + "' has a number of shards that no queue can have: " + shards.error().message(),
             "nothing is sent or handed out until then"});
      }
      return;
    }
    if (!shard_of_ownership(place.sort)) {
      return found.note_outside(name_of(place), "it lies among the owners of shards and names none");
    }
    const auto* owner = dynamo::find<std::string>(item, attribute::kOwner);
    if (owner == nullptr || dynamo::whole_number(item, attribute::kEpoch).value_or(0) < 1) {
      found.advise("the ownership item " + shown(place) + " is half made: it has no " +
                       (owner == nullptr ? "owner (o)" : "epoch (e)"),
                   "delete it while no host works on queue '" + queue + "'; hosts make it anew");
    }
  }

  const std::string table_;
  const WallTime now_;
  std::map<std::string, std::set<std::string>> living_;  ///< incarnations, by the host's name
};

}  // namespace

Result<ExaminedItems> examine_items(dynamo::Client& client, const std::string& table, std::size_t most_requests,
                                    WallTime now, Deadline deadline) {
  dynamo::ScanRequest scan;
  scan.table = table;
  Examination examination(table, now);
  const auto add = [&](ExaminedItems& found, const dynamo::Item& item) { examination.add(found, item); };
  SLUICE_TRY(found, table::examine_each(client, std::move(scan), most_requests, deadline, add));
  examination.finish(*found);
  return found;
}

}  // namespace sluice::queue::leased
