#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dynamo/client.hpp"
#include "host/queue/dynamomq/record.hpp"

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
  std::optional<QueueType> type{};  ///< the half of the queue; nothing: either
};

/// What every UPDATE leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

/// What one UPDATE writes. Assignments are separated by commas; repeated SET is not understood everywhere.
struct RecordChange {
  std::vector<std::pair<std::string_view, dynamo::AttributeValue>> set;
  std::vector<std::string_view> removed;  ///< attributes that are to go
};

/// Writes the statements of one table. A value; thread-safe.
///
/// Every UPDATE and DELETE carries a condition on the version, every UPDATE raises it and leaves a nonce. Items are
/// only ever updated, never put again, so that attributes which we do not know stay.
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
  /// Removes the record if it still lies in that half of the queue, whatever its version.
  KeyedStatement remove_from(const std::string& id, QueueType type) const;

 private:
  std::string table_;  // quoted
};

/// The changes that make up a message's life.
RecordChange claim_change(std::uint32_t receive_count, WallTime now, WallTime invisible_until);
RecordChange extend_change(WallTime invisible_until);
/// Also takes back received_at, by which one tells what waits for its next attempt from what is being worked on.
RecordChange put_off_change(std::optional<WallTime> invisible_until);
RecordChange dead_letter_change(WallTime now);
RecordChange redrive_change(WallTime now);

}  // namespace sluice::queue::dynamomq
