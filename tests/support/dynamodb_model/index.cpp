#include "tests/support/dynamodb_model/index.hpp"

#include <algorithm>
#include <utility>

#include "tests/support/dynamodb_model/capacity.hpp"
#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {

SecondaryIndex::SecondaryIndex(std::string name, KeySchema schema, KeySchema table, std::string projection,
                               std::set<std::string, std::less<>> included)
    : name_(std::move(name)),
      schema_(std::move(schema)),
      table_(std::move(table)),
      projection_(std::move(projection)),
      included_(std::move(included)) {}

void SecondaryIndex::check_types(const Item& item) const {
  for (const KeyAttribute* key : keys()) {
    const auto found = item.find(key->name);
    if (found != item.end() && type_of(found->second) != key->type) {
      throw invalid_values("Type mismatch for Index Key " + key->name + " Expected: " + key->type +
                           " Actual: " + std::string(type_of(found->second)) + " IndexName: " + name_);
    }
  }
}

void SecondaryIndex::check_not_empty(const Item& item) const {
  for (const KeyAttribute* key : keys()) {
    const auto found = item.find(key->name);
    if (found != item.end() && is_empty(found->second)) {
      throw validation(
          "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
          "The "
          "AttributeValue for a key attribute cannot contain an empty " +
          std::string(found->second.is<std::string>() ? "string" : "binary") + " value. IndexName: " + name_ +
          ", IndexKey: " + key->name);
    }
  }
}

std::vector<const KeyAttribute*> SecondaryIndex::keys() const {
  return schema_.range ? std::vector<const KeyAttribute*>{&schema_.hash, &*schema_.range}
                       : std::vector<const KeyAttribute*>{&schema_.hash};
}

std::optional<Position> SecondaryIndex::place_of(const Position& position, const RecordPtr& record) const {
  if (!record || record->item.count(schema_.hash.name) == 0 ||
      (schema_.range && record->item.count(schema_.range->name) == 0)) {
    return std::nullopt;
  }
  Position place = position_of(schema_, record->item);
  place.tail = tail_of(position);
  return place;
}

RecordPtr SecondaryIndex::image_of(const RecordPtr& record) const {
  if (holds_all()) {
    return record;
  }
  Item image;
  for (const auto& [name, value] : record->item) {
    if (schema_.is_key(name) || table_.is_key(name) || included_.count(name) > 0) {
      image.emplace(name, value);
    }
  }
  return std::make_shared<Record>(std::move(image));
}

SecondaryIndex::Work SecondaryIndex::work(const Position& position, const RecordPtr& before,
                                          const RecordPtr& after) const {
  Work work;
  work.remove = place_of(position, before);
  work.insert = place_of(position, after);
  const RecordPtr old_image = work.remove ? image_of(before) : nullptr;
  work.record = work.insert ? image_of(after) : nullptr;
  if (work.remove && work.insert && *work.remove == *work.insert) {
    if (old_image->item == work.record->item) {
      return {};
    }
    work.insert_units = write_units(std::max(old_image->bytes, work.record->bytes));
    work.remove.reset();
    return work;
  }
  work.remove_units = work.remove ? write_units(old_image->bytes) : 0;
  work.insert_units = work.insert ? write_units(work.record->bytes) : 0;
  return work;
}

void SecondaryIndex::take(const Position& position, Work work, SteadyTime due, SteadyTime now) {
  if (!work.remove && !work.insert) {
    return;
  }
  if (due <= now && pending_.empty()) {
    show(std::move(work));
    return;
  }
  std::string tail = tail_of(position);
  SteadyTime& last = last_due_[tail];
  last = std::max(last, due);
  pending_.emplace(last, Pending{std::move(tail), std::move(work)});
}

void SecondaryIndex::advance(SteadyTime now) {
  while (!pending_.empty() && pending_.begin()->first <= now) {
    auto node = pending_.extract(pending_.begin());
    const auto last = last_due_.find(node.mapped().tail);
    if (last != last_due_.end() && last->second <= node.key()) {
      last_due_.erase(last);
    }
    show(std::move(node.mapped().work));
  }
}

void SecondaryIndex::show(Work&& work) {
  if (work.remove) {
    entries_.erase(*work.remove);
  }
  if (work.insert) {
    entries_.insert_or_assign(std::move(*work.insert), std::move(work.record));
  }
}

}  // namespace sluice::test::model
