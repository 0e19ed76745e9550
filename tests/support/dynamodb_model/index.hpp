#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "tests/support/dynamodb_model/storage.hpp"

namespace sluice::test::model {

/// A global secondary index: an image of its table, some time ago.
///
/// Each write of the table reaches it when its own delay is over, writes of one item in their order, writes of
/// different items in any. A value in use by one thread.
class SecondaryIndex {
 public:
  /// What one write of the table does to the index, and what it costs there.
  struct Work {
    std::optional<Position> remove;
    std::optional<Position> insert;
    RecordPtr record;         ///< what is inserted
    double remove_units = 0;  ///< charged to the partition of `remove`
    double insert_units = 0;  ///< charged to the partition of `insert`
    double units() const { return remove_units + insert_units; }
  };

  SecondaryIndex(std::string name, KeySchema schema, KeySchema table, std::string projection,
                 std::set<std::string, std::less<>> included);

  const std::string& name() const { return name_; }
  const KeySchema& schema() const { return schema_; }
  const std::string& projection() const { return projection_; }
  const std::set<std::string, std::less<>>& included() const { return included_; }
  /// Whether entries hold all attributes of their items.
  bool holds_all() const { return projection_ == "ALL"; }

  // Refuse an item whose attributes cannot be keys of this index. Throw Failures.
  void check_types(const Item& item) const;
  void check_not_empty(const Item& item) const;
  Work work(const Position& position, const RecordPtr& before, const RecordPtr& after) const;
  /// Takes the work in; it shows at `due`, and not before earlier work on the same item does.
  void take(const Position& position, Work work, SteadyTime due, SteadyTime now);
  /// Lets everything that is due by `now` show.
  void advance(SteadyTime now);
  /// The entries as they show; call advance first.
  const Records& entries() const { return entries_; }
  std::size_t writes_under_way() const { return pending_.size(); }

 private:
  struct Pending {
    std::string tail;
    Work work;
  };
  std::vector<const KeyAttribute*> keys() const;
  std::optional<Position> place_of(const Position& position, const RecordPtr& record) const;
  RecordPtr image_of(const RecordPtr& record) const;
  void show(Work&& work);

  const std::string name_;
  const KeySchema schema_;
  const KeySchema table_;
  const std::string projection_;
  const std::set<std::string, std::less<>> included_;
  Records entries_;
  std::multimap<SteadyTime, Pending> pending_;
  std::unordered_map<std::string, SteadyTime> last_due_;  // of items with pending work
};

}  // namespace sluice::test::model
