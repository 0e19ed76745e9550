#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamo/client.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// How a layout names what a write is about. The views are of literals.
struct RecordNames {
  std::string_view hash;     ///< the attribute of the partition key
  std::string_view range{};  ///< of the sort key; empty: the table has none
  std::string_view version;
};
inline constexpr RecordNames kRecordNames{.hash = attribute::kId, .version = attribute::kVersion};

/// The record that a statement is about, as it must be for it to take effect.
struct Expected {
  std::string id;
  VersionMark version;
  std::optional<Half> half{};  ///< the half of the queue; nothing: either
  /// Its invisibility must have ended before; nothing: it need not. Times are compared as they are spelt, which may
  /// refuse a record that became visible within that same second, but takes none that is hidden (in UTC, as all write).
  std::optional<WallTime> visible_at{};
  /// `sent_at` as it is spelt; nothing: whatever it is. Versions begin anew with a message that is sent again under an
  /// id that had become free; the time at which it was sent tells it from the one before.
  std::optional<std::string> sent_at{};
  std::string sort{};  ///< the sort key, where the layout has one
};

/// What every update leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

/// What one update writes. As a statement, assignments are separated by commas, and at most one attribute is taken
/// away: neither repeated SET nor repeated REMOVE is understood everywhere.
struct RecordChange {
  std::vector<std::pair<std::string_view, dynamo::AttributeValue>> set;
  std::string_view removed{};  ///< the attribute that is to go; empty: none
};

/// One write of one record, before it is spelt as a request: as a statement of a batch, or as a request of its own
/// (single_writes.hpp). A value.
struct RecordWrite {
  enum class Kind { insert, update, remove };
  static constexpr std::size_t kKinds = 3;

  Kind kind = Kind::update;
  std::string_view table;       ///< outlives the write
  Expected expected;            ///< of an insert only the id, which must not be there yet
  bool whatever_it_is = false;  ///< only the id of `expected` counts
  dynamo::Item item{};          ///< of an insert: the whole record
  RecordChange change{};        ///< of an update
  bool returning = false;       ///< an update its new item, a removal the old one
  bool alone = false;           ///< no statement can spell it
  const RecordNames* names = &kRecordNames;

  const std::string& id() const { return expected.id; }
  dynamo::Item key() const;
};

/// The PartiQL statement that makes the write.
dynamo::Statement statement_of(const RecordWrite& write);

/// Makes the writes of one table. A value; thread-safe.
///
/// Every update carries a condition on the version, raises it and leaves a nonce; so does every removal but
/// `remove_any`. Items are only ever updated, never put again, so that attributes which we do not know stay.
class WriteBuilder {
 public:
  /// `table` must outlive the writes.
  explicit WriteBuilder(std::string_view table) : table_(table) {}

  /// Is refused when the id is there already.
  RecordWrite insert(const std::string& id, dynamo::Item item) const;
  /// Raises the version, sets updated_at and the nonce, and applies `change`; returns the new item when `returning`.
  RecordWrite update(Expected expected, const WriteMark& mark, RecordChange change, bool returning = false) const;
  /// Returns the old item when `returning`: the one way to tell a removal from a record that was gone already.
  RecordWrite remove(Expected expected, bool returning = false) const;
  /// Removes the record whatever it has become; returns the old item.
  RecordWrite remove_any(const std::string& id) const;

 private:
  std::string_view table_;
};

/// The changes that make up a message's life.
RecordChange claim_change(std::uint32_t receive_count, bool mark, WallTime now, WallTime invisible_until);
RecordChange extend_change(WallTime invisible_until);
/// Also takes back received_at, by which one tells what waits for its next attempt from what is being worked on.
RecordChange put_off_change(std::optional<WallTime> invisible_until);
RecordChange dead_letter_change(WallTime now);
RecordChange redrive_change(WallTime now);

/// What operators change besides. As if sent with that delay; zero or less: now.
RecordChange delay_change(WallTime now, Duration delay);
/// As if sent at that time, visible at once.
RecordChange sent_change(WallTime sent_at);
/// As if created and sent just now.
RecordChange reset_change(WallTime now);

}  // namespace sluice::queue::dynamomq
