#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
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

/// The changes that make up a message's life.
table::RecordChange claim_change(std::uint32_t receive_count, bool mark, WallTime now, WallTime invisible_until);
table::RecordChange extend_change(WallTime invisible_until);
/// Also takes back received_at, by which one tells what waits for its next attempt from what is being worked on.
table::RecordChange put_off_change(std::optional<WallTime> invisible_until);
table::RecordChange dead_letter_change(WallTime now);
table::RecordChange redrive_change(WallTime now);

/// What operators change besides. As if sent with that delay; zero or less: now.
table::RecordChange delay_change(WallTime now, Duration delay);
/// As if sent at that time, visible at once.
table::RecordChange sent_change(WallTime sent_at);
/// As if created and sent just now.
table::RecordChange reset_change(WallTime now);

}  // namespace sluice::queue::dynamomq
