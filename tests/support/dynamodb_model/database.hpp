#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "tests/support/dynamodb_model/capacity.hpp"
#include "tests/support/dynamodb_model/evaluate.hpp"
#include "tests/support/dynamodb_model/index.hpp"
#include "tests/support/dynamodb_model/storage.hpp"

namespace sluice::test::model {

/// How late the writes of a table show in its indexes. Zeros: at once.
struct IndexLag {
  Duration typical{};   ///< most writes: anything up to this
  Duration longest{};   ///< the rest: anything up to this
  Duration shortest{};  ///< and nothing sooner than this
  double slow = 0;      ///< the share of the rest
};

struct Table {
  std::string name;
  KeySchema schema;
  std::map<std::string, std::string> attribute_types;
  std::vector<std::unique_ptr<SecondaryIndex>> indexes;
  bool deletion_protection = false;
  bool provisioned = false;
  long long read_capacity = 0;
  long long write_capacity = 0;
  SteadyTime active_at;
  Records records;

  /// Throws a Failure when there is none of that name.
  SecondaryIndex& index(const std::string& index_name) const;
  RecordPtr find(const Position& position) const;
};

/// One write that a request asks for. Everything pointed to is borrowed.
struct Write {
  enum class Kind { put, update, remove, check };
  Kind kind = Kind::put;
  Table* table = nullptr;
  Item key;                        ///< of all but puts
  Item item;                       ///< of puts
  const Update* update = nullptr;  ///< of updates; null: only make sure that the item is there
  const Condition* condition = nullptr;
  Bindings bindings;
  bool must_exist = false;       ///< an absent item fails the condition
  bool must_be_new = false;      ///< a present item is a duplicate
  bool absent_passes = false;    ///< an absent item is not asked for its condition
  bool returns_refused = false;  ///< ReturnValuesOnConditionCheckFailure is ALL_OLD
};

/// A write whose checks have passed.
struct Change {
  Table* table = nullptr;
  bool changes = true;  ///< false: a condition check
  Position position;
  RecordPtr before;
  RecordPtr after;
  std::vector<SecondaryIndex::Work> indexes;
  std::set<std::string> touched;  ///< attributes that an update is about
  double units() const;
};

/// What an item is refused for as it is, whatever the table holds: its keys, those of indexes, its size.
void check_new_item(const Table& table, const Item& item);

/// Tables and their writes. Throws Failures. In use by one thread.
class Database {
 public:
  explicit Database(Random& random) : random_(random) {}

  void set_now(SteadyTime now) { now_ = now; }
  SteadyTime now() const { return now_; }
  void set_lag(IndexLag lag) { lag_ = lag; }
  Throughput& throughput() { return throughput_; }
  /// How long new tables are CREATING.
  void set_table_creation(Duration span) { table_creation_ = span; }
  Duration table_creation() const { return table_creation_; }

  Table& table(const std::string& name);
  std::map<std::string, Table>& tables() { return tables_; }

  /// Checks a write and computes what it would do, without doing it. Units that its failure costs go to `spent`.
  Change prepare(const Write& write, Usage& spent);
  /// Does it. `factor`: 2 within transactions, for the table's own units.
  void commit(Change change, Usage& spent, double factor = 1);

  /// Told of each change of an item as it happens. Null: an item that is not there. Must not call back.
  using Observer = std::function<void(const Table& table, const Item* before, const Item* after)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  /// The entries of an index as they show now.
  const Records& entries(Table& table, const std::string& index);

  /// A transaction is at work on the item until then: others' writes conflict with it.
  void lock(const Table& table, const Position& position, SteadyTime until);
  bool is_locked(const Table& table, const Position& position);

 private:
  void check_condition(const Write& write, const Change& change, Usage& spent);
  Item after_update(const Write& write, Change& change) const;
  void admit_indexes(const Change& change);
  Duration draw_lag();

  Random& random_;
  SteadyTime now_;
  IndexLag lag_;
  Duration table_creation_{};
  Throughput throughput_;
  Observer observer_;
  std::map<std::string, Table> tables_;
  std::unordered_map<std::string, SteadyTime> locks_;
};

}  // namespace sluice::test::model
