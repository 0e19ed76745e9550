#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamo/client.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// A PartiQL statement and the record it is about: no batch may name a record twice.
struct KeyedStatement {
  std::string id;
  dynamo::Statement statement;
};

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
};

/// What every UPDATE leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

/// What one UPDATE writes. Assignments are separated by commas, and at most one attribute is taken away: neither
/// repeated SET nor repeated REMOVE is understood everywhere.
struct RecordChange {
  std::vector<std::pair<std::string_view, dynamo::AttributeValue>> set;
  std::string_view removed{};  ///< the attribute that is to go; empty: none
};

/// Writes the statements of one table. A value; thread-safe.
///
/// Every UPDATE carries a condition on the version, raises it and leaves a nonce; so does every DELETE but
/// `remove_any`. Items are only ever updated, never put again, so that attributes which we do not know stay.
class StatementBuilder {
 public:
  explicit StatementBuilder(std::string_view table);

  /// Fails with DuplicateItem when the id is there already.
  KeyedStatement insert(const std::string& id, const dynamo::Item& item) const;
  /// Raises the version, sets updated_at and the nonce, and applies `change`; returns the new item when `returning`.
  KeyedStatement update(const Expected& expected, const WriteMark& mark, const RecordChange& change,
                        bool returning = false) const;
  /// Returns the old item when `returning`: the one way to tell a removal from a record that was gone already.
  KeyedStatement remove(const Expected& expected, bool returning = false) const;
  /// Removes the record whatever it has become; returns the old item.
  KeyedStatement remove_any(const std::string& id) const;

 private:
  std::string table_;  // quoted
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
