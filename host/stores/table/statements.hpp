#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/client.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::table {

/// How a layout names what a write is about. The views are of literals.
struct RecordNames {
  std::string_view hash;     ///< the attribute of the partition key
  std::string_view range{};  ///< of the sort key; empty: the table has none
  std::string_view version;
  // Of what else a write may expect; empty in a layout whose writes expect no such thing.
  std::string_view half{};
  std::string_view sent_at{};
  std::string_view hidden_until{};
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
  std::string sort{};  ///< the sort key, where the layout has one
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
  std::string_view table;              ///< outlives the write
  Expected expected;                   ///< of an insert only the id, which must not be there yet
  bool whatever_it_is = false;         ///< only the id of `expected` counts
  dynamo::Item item{};                 ///< of an insert: the whole record
  RecordChange change{};               ///< of an update
  bool returning = false;              ///< an update its new item, a removal the old one
  bool alone = false;                  ///< no statement can spell it
  const RecordNames* names = nullptr;  ///< always given; outlives the write

  const std::string& id() const { return expected.id; }
  dynamo::Item key() const;
};

/// The PartiQL statement that makes the write.
dynamo::Statement statement_of(const RecordWrite& write);

/// The request that makes this write alone, under the same conditions as its statement would: PutItem, UpdateItem or
/// DeleteItem. What the statement returns comes as the answer's item.
dynamo::ItemWrite request_of(const RecordWrite& write);

/// The same as one action of a transaction.
dynamo::TransactAction action_of(const RecordWrite& write);
dynamo::TransactAction action_of(dynamo::ItemWrite request);

}  // namespace sluice::queue::table
