#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::dynamomq {

/// What every update leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

/// Makes the writes of one table. A value; thread-safe.
///
/// Every update carries a condition on the version, raises it and leaves a nonce; so does every removal but
/// `remove_any`. Items are only ever updated, never put again, so that attributes which we do not know stay.
class WriteBuilder {
 public:
  /// `table` must outlive the writes.
  explicit WriteBuilder(std::string_view table) : table_(table) {}

  /// Is refused when the id is there already.
  table::RecordWrite insert(const std::string& id, dynamo::Item item) const;
  /// Raises the version, sets updated_at and the nonce, and applies `change`; returns the new item when `returning`.
  table::RecordWrite update(table::Expected expected, const WriteMark& mark, table::RecordChange change,
                            bool returning = false) const;
  /// Returns the old item when `returning`: the one way to tell a removal from a record that was gone already.
  table::RecordWrite remove(table::Expected expected, bool returning = false) const;
  /// Removes the record whatever it has become; returns the old item.
  table::RecordWrite remove_any(const std::string& id) const;

 private:
  std::string_view table_;
};

/// Attributes that a record may have, so that a change which takes them away has to name them.
struct MayHave {
  bool suspect = true;
  bool failure = true;
};
/// A change of a message's state as this layout's attributes.
table::RecordChange attributes_of(const core::StateChange& change, MayHave may_have = {});

}  // namespace sluice::queue::dynamomq
