#include "host/stores/leased/leased_lookup.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace sluice::queue::leased {
namespace {

constexpr std::size_t kKeysARead = table::kMaxKeysPerBatchGet;

Place target_of(const dynamo::Item& alias) {
  const auto* partition = dynamo::find<std::string>(alias, attribute::kTarget);
  const auto* sort = dynamo::find<std::string>(alias, attribute::kTargetSort);
  return {partition == nullptr ? std::string() : *partition, sort == nullptr ? std::string() : *sort};
}

const dynamo::Item* at(const LeasedLookup::Items& items, const Place& place) {
  const auto found = items.find(place);
  return found == items.end() ? nullptr : &found->second;
}

/// Where a message of a made id lies that was never moved.
std::vector<Place> direct_places(const std::string& queue, const std::string& id) {
  std::vector<Place> places;
  if (auto made = made_place(queue, id)) {
    places.push_back(std::move(*made));
  }
  return places;
}

/// Where an item lies that somebody else has put among the messages: it is listed by its keys, and may so be removed.
std::set<Place> strange_places(const std::string& queue, const std::string& id) {
  std::set<Place> places;
  const auto keys = listed_keys(id);
  if (keys && !is_sort_key(keys->first)) {
    for (const Half half : {Half::standard, Half::dlq}) {
      places.insert({partition_of(queue, half, keys->second), keys->first});
    }
  }
  return places;
}

void settle(LeasedLookup::Found& one, const std::string& id, const std::vector<Place>& places,
            std::initializer_list<const LeasedLookup::Items*> reads) {
  for (const Place& place : places) {
    for (const auto* read : reads) {
      const auto* item = at(*read, place);
      if (item != nullptr && !one.there() && Candidate::of(*item).id == id) {
        one.item = *item;
      }
    }
  }
}

}  // namespace

dynamo::Result<LeasedLookup::Items> LeasedLookup::read(const std::set<Place>& places, Deadline deadline) const {
  std::vector<dynamo::Item> keys;
  keys.reserve(places.size());
  for (const Place& place : places) {
    // DynamoDB refuses a key that is empty, and the whole request with it.
    if (!place.partition.empty() && !place.sort.empty() && place.sort.size() <= 1024) {
      keys.push_back(place.key());
    }
  }
  Items found;
  for (std::size_t from = 0; from < keys.size(); from += kKeysARead) {
    const std::size_t count = std::min(kKeysARead, keys.size() - from);
    SLUICE_TRY(items, client_.batch_get(place_.table, std::span(keys).subspan(from, count), deadline));
    for (dynamo::Item& item : *items) {
      Place place = Place::of(item);
      found.insert_or_assign(std::move(place), std::move(item));
    }
  }
  return found;
}

dynamo::Result<std::map<std::string, LeasedLookup::Found>> LeasedLookup::find(const std::set<std::string>& ids,
                                                                              Deadline deadline) const {
  std::set<Place> near;
  for (const std::string& id : ids) {
    near.insert(alias_place(place_.queue, id));
    for (Place& direct : direct_places(place_.queue, id)) {
      near.insert(std::move(direct));
    }
  }
  SLUICE_TRY(first, read(near, deadline));
  std::map<std::string, Found> standing;
  std::set<Place> far;
  for (const std::string& id : ids) {
    Found& one = standing[id];
    if (const auto* alias = at(*first, alias_place(place_.queue, id))) {
      one.alias = target_of(*alias);
      far.insert(*one.alias);
    }
  }
  SLUICE_TRY(second, far.empty() ? dynamo::Result<Items>(Items()) : read(far, deadline));
  std::set<Place> strange;
  for (auto& [id, one] : standing) {
    std::vector<Place> places = direct_places(place_.queue, id);
    if (one.alias) {
      places.insert(places.begin(), *one.alias);
    }
    settle(one, id, places, {&*second, &*first});
    if (!one.there()) {
      strange.merge(strange_places(place_.queue, id));
    }
  }
  SLUICE_TRY(third, strange.empty() ? dynamo::Result<Items>(Items()) : read(strange, deadline));
  for (auto& [id, one] : standing) {
    const std::set<Place> places = one.there() ? std::set<Place>() : strange_places(place_.queue, id);
    settle(one, id, {places.begin(), places.end()}, {&*third});
  }
  return standing;
}

}  // namespace sluice::queue::leased
