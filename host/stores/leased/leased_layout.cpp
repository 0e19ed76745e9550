#include "host/stores/leased/leased_layout.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::TransactAction;

constexpr Duration kShardsTime = std::chrono::seconds(5);

/// Where an item lies that somebody else has put among the messages: it is listed by its keys, and may so be removed.
std::vector<Place> strange_places(const std::string& queue, const std::string& id) {
  const auto keys = listed_keys(id);
  if (!keys || is_sort_key(keys->first)) {
    return {};
  }
  return {{partition_of(queue, Half::standard, keys->second), keys->first},
          {partition_of(queue, Half::dlq, keys->second), keys->first}};
}

class LeasedLayout final : public table::RecordLayout {
 public:
  explicit LeasedLayout(LeasedQueue& queue)
      : RecordLayout(queue.parts, queue.place, kNames, queue.place.queue), queue_(queue) {}

  /// Wherever they lie, as ids and aliases say.
  dynamo::Result<table::FoundRecords> find(const std::set<std::string>& ids, Deadline deadline) const override;
  bool is_storable_id(std::string_view id) const override { return leased::is_storable_id(place().queue, id); }
  StoredMessage decode(const dynamo::Item& item) const override { return decode_record(item); }
  StoredMessage decode_state(const dynamo::Item& item) const override { return decode_standing(item); }
  table::VersionMark version_of(const dynamo::Item& item) const override { return leased::version_of(item); }

  // To a message with an id of its sender's an alias leads, and one that is there may be of a message that is gone:
  // whoever sends with ids of his own finds that out by sending. Any other has the id of the place where it lies,
  // unless a mark has to name it.
  Result<std::vector<TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                          WallTime now) const override {
    const NewMessage& message = emitted.message;
    if (!is_storable_id(message.id)) {
      return Error(ErrorCode::invalid, unstorable_id(place().queue));
    }
    const bool named = !emitted.made_id || has_send_keys(message);
    // Where the number cannot be read, the configured one is as good: a shard that is beyond it is drained.
    const auto shards = queue_.shards.settled(Deadline::after(parts().clock, kShardsTime));
    const Place to = queue_.new_place(message.group, message.priority, later(queue_.keys.stamp(now), message.delay),
                                      shards ? shards->count : queue_.shards.configured());
    SLUICE_TRY(item, encode_record(message, {.place = to, .own_id = named ? message.id : std::string(), .now = now}));
    if (!token.empty()) {
      item->insert_or_assign(std::string(attribute::kUniqueToken), unique_token(message, token));
    }
    std::vector<TransactAction> actions{table::put_message(place().table, *item, kNames)};
    if (named) {
      actions.push_back(put_alias(place(), message.id, to, std::nullopt));
    }
    return actions;
  }
  // By it an owner knows whether the key is free once the message was claimed.
  std::string unique_token(const NewMessage& message, std::string token) const override {
    return message.unique_until == UniqueUntil::claimed ? token + kFreedAtClaim : token;
  }

 private:
  LeasedQueue& queue_;
};

}  // namespace

dynamo::Result<PlacedItems> read_places(dynamo::Client& client, const table::QueueTable& table,
                                        const std::set<Place>& places, Deadline deadline) {
  std::vector<dynamo::Item> keys;
  keys.reserve(places.size());
  for (const Place& place : places) {
    // DynamoDB refuses a key that is empty, and the whole request with it.
    if (!place.partition.empty() && !place.sort.empty() && place.sort.size() <= 1024) {
      keys.push_back(place.key());
    }
  }
  SLUICE_TRY(items, table::read_items(client, table.table, keys, deadline));
  PlacedItems found;
  for (dynamo::Item& item : *items) {
    Place place = Place::of(item);
    found.insert_or_assign(std::move(place), std::move(item));
  }
  return found;
}

dynamo::Result<table::FoundRecords> LeasedLayout::find(const std::set<std::string>& ids, Deadline deadline) const {
  table::FoundRecords records;
  for (const std::string& id : ids) {
    records[id];
  }
  const std::string& queue = place().queue;
  // First where the id says and at its alias, then where that leads, then among what is nobody's.
  const auto near = [&](const std::string& id, const table::FoundRecord&) {
    std::vector<Place> places{alias_place(queue, id)};
    if (auto direct = made_place(queue, id)) {
      places.push_back(std::move(*direct));
    }
    return places;
  };
  const auto far = [](const std::string&, const table::FoundRecord& one) {
    return one.alias ? std::vector<Place>{Place::of(*one.alias)} : std::vector<Place>();
  };
  const auto strange = [&](const std::string& id, const table::FoundRecord&) { return strange_places(queue, id); };
  using PlacesOf = std::function<std::vector<Place>(const std::string& id, const table::FoundRecord& one)>;
  for (const PlacesOf& places_of : {PlacesOf(near), PlacesOf(far), PlacesOf(strange)}) {
    std::map<Place, std::string> looked_at;
    for (const auto& [id, one] : records) {
      for (Place& place : one.there() ? std::vector<Place>() : places_of(id, one)) {
        looked_at.emplace(std::move(place), id);
      }
    }
    std::set<Place> places;
    std::transform(looked_at.begin(), looked_at.end(), std::inserter(places, places.end()),
                   [](const auto& one) { return one.first; });
    SLUICE_TRY(items, read_places(parts().client, place(), places, deadline));
    for (auto& [lies, item] : *items) {
      const std::string& id = looked_at.at(lies);
      if (lies == alias_place(queue, id)) {
        records[id].alias = alias_target(item).key();
      } else if (id_of(item) == id) {
        records[id].item = std::move(item);
      }
    }
  }
  return records;
}

std::unique_ptr<table::RecordLayout> make_leased_layout(LeasedQueue& queue) {
  return std::make_unique<LeasedLayout>(queue);
}

namespace {

constexpr std::size_t kRecordsPerTransaction = 20;  // with five actions at most, of 100

class LeasedInserter final : public table::KeyedInserter {
 public:
  explicit LeasedInserter(const table::RecordLayout& layout)
      : KeyedInserter(layout, {.most_together = kRecordsPerTransaction, .tries = kMaxRounds}) {}

 private:
  static bool has_alias(const Entry& entry) { return entry.draft.item.contains(attribute::kOwnId); }
  bool looks_at_id(const Entry& entry) const override { return entry.draft.message == nullptr || has_alias(entry); }

  void judge(Entry& entry) const override {
    const bool ours = entry.before.there() && layout_.nonce_of(entry.before.item) == entry.token;
    // Nobody else comes upon a place that was made by chance.
    if (ours ||
        (has_alias(entry) && entry.before.alias && Place::of(*entry.before.alias) == Place::of(entry.draft.item))) {
      finish(entry, SendStatus::sent);
    } else if (entry.before.there() && !entry.draft.replace) {
      finish(entry, SendStatus::duplicate_id, table::duplicate_id(layout_.place(), entry.id()));
    }
  }

  std::vector<std::string> items_of(const Entry& entry) const override {
    const Place place = Place::of(entry.draft.item);
    std::vector<std::string> items{place.partition + '\n' + place.sort};
    if (looks_at_id(entry)) {
      items.push_back(alias_partition_of(layout_.place().queue, entry.id()));
    }
    return items;
  }

  // The record, its alias, and what has to go or must not be there.
  void add_record(const Entry& entry, std::vector<TransactAction>& actions) const override {
    const table::QueueTable& table = layout_.place();
    const Place place = Place::of(entry.draft.item);
    const bool replaces = entry.draft.replace && entry.before.there();
    const bool in_place = replaces && Place::of(entry.before.item) == place;
    TransactAction put = table::put_message(table.table, entry.draft.item, kNames);
    if (in_place) {
      const TransactAction as_read = remove_record(table, entry.before.item);
      put.condition = as_read.condition;
      put.names = as_read.names;
      put.values = as_read.values;
    }
    actions.push_back(std::move(put));
    if (has_alias(entry)) {
      const auto& before = entry.before.alias;
      actions.push_back(put_alias(table, entry.id(), place, before ? std::optional(Place::of(*before)) : std::nullopt));
    }
    if (replaces && !in_place) {
      actions.push_back(remove_record(table, entry.before.item));
      if (auto freed = free_group(table, entry.before.item)) {
        actions.push_back(std::move(*freed));
      }
    } else if (const auto made = made_place(table.queue, entry.id()); made && *made != place && has_alias(entry)) {
      // It looks like an id that we made, and such a message needs no alias.
      actions.push_back({.kind = TransactAction::Kind::check,
                         .table = table.table,
                         .item = made->key(),
                         .condition = "attribute_not_exists(#p)",
                         .names = {{"#p", std::string(attribute::kPartition)}}});
    }
  }
};

}  // namespace

void insert_keyed(const table::RecordLayout& layout, std::vector<KeyedDraft> drafts, Deadline deadline) {
  LeasedInserter(layout).insert(std::move(drafts), deadline);
}

}  // namespace sluice::queue::leased
