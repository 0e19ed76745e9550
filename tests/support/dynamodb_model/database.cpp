#include "tests/support/dynamodb_model/database.hpp"

#include <algorithm>
#include <utility>

#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

constexpr std::size_t kMaxItemBytes = 400 * 1024;

std::string lock_name(const Table& table, const Position& position) { return table.name + '/' + tail_of(position); }

void check_indexes(const Table& table, const Item& item) {
  for (const auto& index : table.indexes) {
    index->check_types(item);
    index->check_not_empty(item);
  }
}

}  // namespace

void check_new_item(const Table& table, const Item& item) {
  check_item_key(table.schema, item);
  check_indexes(table, item);
  if (item_bytes(item) > kMaxItemBytes) {
    throw validation("Item size has exceeded the maximum allowed size");
  }
}

SecondaryIndex& Table::index(const std::string& index_name) const {
  for (const auto& index : indexes) {
    if (index->name() == index_name) {
      return *index;
    }
  }
  throw validation("The table does not have the specified index: " + index_name);
}

RecordPtr Table::find(const Position& position) const {
  const auto found = records.find(position);
  return found == records.end() ? nullptr : found->second;
}

double Change::units() const { return write_units(std::max(before ? before->bytes : 0, after ? after->bytes : 0)); }

Table& Database::table(const std::string& name) {
  const auto found = tables_.find(name);
  if (found == tables_.end() || found->second.active_at > now_) {
    throw Failure{"ResourceNotFoundException", "Requested resource not found", 400, ""};
  }
  return found->second;
}

Change Database::prepare(const Write& write, Usage& spent) {
  Table& table = *write.table;
  Change change;
  change.table = &table;
  if (write.kind == Write::Kind::put) {
    check_new_item(table, write.item);
    change.position = position_of(table.schema, write.item);
  } else {
    check_key(table.schema, write.key);
    change.position = position_of(table.schema, write.key);
  }
  if (is_locked(table, change.position)) {
    throw Failure{"TransactionConflictException", "Transaction is ongoing for the item", 400, ""};
  }
  throughput_.admit(Throughput::Use::write, table.name, "", change.position.hash, now_);
  change.before = table.find(change.position);
  check_condition(write, change, spent);
  if (write.kind == Write::Kind::put) {
    change.after = std::make_shared<Record>(write.item);
  } else if (write.kind == Write::Kind::update) {
    change.after = std::make_shared<Record>(after_update(write, change));
  } else if (write.kind == Write::Kind::check) {
    change.changes = false;
    return change;
  }
  change.indexes.reserve(table.indexes.size());
  for (const auto& index : table.indexes) {
    change.indexes.push_back(index->work(change.position, change.before, change.after));
  }
  admit_indexes(change);
  return change;
}

void Database::check_condition(const Write& write, const Change& change, Usage& spent) {
  static const Item kNothing;
  const Item& item = change.before ? change.before->item : kNothing;
  const bool duplicate = write.must_be_new && change.before;
  const bool asked = write.condition != nullptr && (change.before || !write.absent_passes);
  if (!duplicate && (change.before || !write.must_exist) && (!asked || holds(*write.condition, item, write.bindings))) {
    return;
  }
  const double units = write_units(change.before ? change.before->bytes : 0);
  spent.add_write(write.table->name, "", units);
  throughput_.charge(Throughput::Use::write, write.table->name, "", change.position.hash, units, now_);
  if (duplicate) {
    throw Failure{"DuplicateItemException", "Duplicate primary key exists in table", 400, ""};
  }
  Failure failure = conditional_check_failed();
  if (write.returns_refused && change.before) {
    failure.extra = ",\"Item\":";
    dynamo::append_item(failure.extra, item);
  }
  throw Failure(std::move(failure));
}

Item Database::after_update(const Write& write, Change& change) const {
  const Item& base = change.before ? change.before->item : write.key;
  if (write.update == nullptr) {
    return base;
  }
  Item item = updated(*write.update, base, write.bindings, &change.touched);
  const KeySchema& schema = write.table->schema;
  for (const std::string& name : change.touched) {
    if (schema.is_key(name)) {
      throw invalid_values("Cannot update attribute " + name + ". This attribute is part of the key");
    }
  }
  check_indexes(*write.table, item);
  if (item_bytes(item) > kMaxItemBytes) {
    throw validation("Item size to update has exceeded the maximum allowed size");
  }
  return item;
}

// An index that cannot keep up holds back the writes of its table.
void Database::admit_indexes(const Change& change) {
  for (std::size_t i = 0; i < change.indexes.size(); ++i) {
    const auto& work = change.indexes[i];
    const std::string& index = change.table->indexes[i]->name();
    if (work.remove) {
      throughput_.admit(Throughput::Use::write, change.table->name, index, work.remove->hash, now_);
    }
    if (work.insert && !(work.remove && work.remove->hash == work.insert->hash)) {
      throughput_.admit(Throughput::Use::write, change.table->name, index, work.insert->hash, now_);
    }
  }
}

void Database::commit(Change change, Usage& spent, double factor) {
  Table& table = *change.table;
  const double units = change.units() * factor;
  spent.add_write(table.name, "", units);
  throughput_.charge(Throughput::Use::write, table.name, "", change.position.hash, units, now_);
  if (!change.changes) {
    return;
  }
  for (std::size_t i = 0; i < change.indexes.size(); ++i) {
    SecondaryIndex::Work& work = change.indexes[i];
    SecondaryIndex& index = *table.indexes[i];
    if (work.units() > 0) {
      spent.add_write(table.name, index.name(), work.units());
    }
    if (work.remove) {
      throughput_.charge(Throughput::Use::write, table.name, index.name(), work.remove->hash, work.remove_units, now_);
    }
    if (work.insert) {
      throughput_.charge(Throughput::Use::write, table.name, index.name(), work.insert->hash, work.insert_units, now_);
    }
    if (work.remove || work.insert) {
      index.advance(now_);
      index.take(change.position, std::move(work), now_ + draw_lag(), now_);
    }
  }
  if (observer_) {
    observer_(table, change.before ? &change.before->item : nullptr, change.after ? &change.after->item : nullptr);
  }
  if (change.after) {
    table.records.insert_or_assign(std::move(change.position), std::move(change.after));
  } else {
    table.records.erase(change.position);
  }
}

Duration Database::draw_lag() {
  if (lag_.typical <= Duration::zero() && lag_.longest <= Duration::zero()) {
    return Duration::zero();
  }
  const Duration most = random_.unit() < lag_.slow ? lag_.longest : lag_.typical;
  return std::max(lag_.shortest,
                  Duration(static_cast<Duration::rep>(random_.unit() * static_cast<double>(most.count()))));
}

const Records& Database::entries(Table& table, const std::string& index) {
  SecondaryIndex& found = table.index(index);
  found.advance(now_);
  return found.entries();
}

void Database::lock(const Table& table, const Position& position, SteadyTime until) {
  if (until > now_) {
    locks_[lock_name(table, position)] = until;
  }
}

bool Database::is_locked(const Table& table, const Position& position) {
  if (locks_.empty()) {
    return false;
  }
  const auto found = locks_.find(lock_name(table, position));
  if (found == locks_.end()) {
    return false;
  }
  if (found->second > now_) {
    return true;
  }
  locks_.erase(found);
  return false;
}

}  // namespace sluice::test::model
