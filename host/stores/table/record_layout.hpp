#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

/// What a look by a message's id has found. A value.
struct FoundRecord {
  dynamo::Item item{};                  ///< empty: there is no such message
  std::optional<dynamo::Item> alias{};  ///< the key that an alias of the id names, whether the message is there or not
  bool there() const { return !item.empty(); }
};
/// By id.
using FoundRecords = std::map<std::string, FoundRecord>;

/// How the table of one queue holds its messages, the marks of what was sent, and idempotency keys. Senders, operators
/// and transactions are written against this; each layout on DynamoDB has one, so that a completion may send to a queue
/// of another layout. Thread-safe.
class RecordLayout : boost::noncopyable {
 public:
  /// `names` outlives it, as what `parts` refer to. `queue`: empty where the table has but one.
  RecordLayout(StoreParts parts, QueueTable place, const LayoutNames& names, std::string queue)
      : parts_(parts), place_(std::move(place)), marks_{.names = names, .queue = std::move(queue)} {}
  virtual ~RecordLayout() = default;

  const StoreParts& parts() const { return parts_; }
  const QueueTable& place() const { return place_; }
  const LayoutNames& names() const { return marks_.names; }
  const ItemScope& marks() const { return marks_; }
  /// What its marks are told apart by: two queues of one scope have them in common.
  std::string scope() const { return marks_.queue.empty() ? place_.table : place_.table + '/' + marks_.queue; }

  // Messages.

  /// Consistent. There is an entry for each id.
  virtual dynamo::Result<FoundRecords> find(const std::set<std::string>& ids, Deadline deadline) const = 0;
  /// Whether a message of this id can be there.
  virtual bool is_storable_id(std::string_view id) const = 0;
  /// Reads any item whatever. Never fails.
  virtual StoredMessage decode(const dynamo::Item& item) const = 0;
  /// The same without the content.
  virtual StoredMessage decode_state(const dynamo::Item& item) const = 0;
  virtual VersionMark version_of(const dynamo::Item& item) const = 0;
  /// Empty: none.
  std::string nonce_of(const dynamo::Item& item) const { return dynamo::text_of(item, names().nonce); }

  // Sends.

  /// The actions that put a message, itself first; ErrorCode::invalid where it cannot be stored. `token` is that of its
  /// unique key, and empty without one.
  virtual Result<std::vector<dynamo::TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                                          WallTime now) const = 0;
  /// What a unique key's mark and its message keep of the token of their send.
  virtual std::string unique_token(const NewMessage& /*message*/, std::string token) const { return token; }
  /// Whether a message has the unique key still whose mark names it.
  bool holds_key(const dynamo::Item& item, const Mark& mark) const;
  /// Puts the marks of a message: of its deduplication id where there is none whose window is not over, of its unique
  /// key in the place of the one with token `before`; empty: in the place of none.
  std::vector<dynamo::TransactAction> put_marks(const NewMessage& message, const std::string& id,
                                                const std::string& token, const std::string& before,
                                                WallTime now) const;

  /// What stands in the way of sends.
  struct Seen {
    std::map<std::string, dynamo::Item> marks;  ///< by id; those that are there
    FoundRecords records;                       ///< what was asked for, and the messages that unique marks name
  };
  /// A consistent look at the marks of these messages, and at the messages of these ids.
  dynamo::Result<Seen> see(std::span<const NewMessage* const> messages, std::set<std::string> ids,
                           Deadline deadline) const;
  /// What was sent before with the keys of a message, where it has such.
  struct SentBefore {
    Mark dedup;
    Mark unique;
    bool held = false;  ///< the message that the unique mark names has the key still

    /// The message because of which the other one is not stored; null: it is. `now` as marks spell times.
    const std::string* first(const std::string& now) const {
      return dedup.there() && dedup.until > now ? &dedup.first : held ? &unique.first : nullptr;
    }
  };
  SentBefore sent_before(const NewMessage& message, const Seen& seen) const;

 private:
  /// Puts a mark that is void after `until`, where there is none.
  dynamo::TransactAction put_mark(std::string id, const Mark& mark, WallTime until) const;

  const StoreParts parts_;
  const QueueTable place_;
  const ItemScope marks_;
};

/// A token for a transaction on that table.
std::string transaction_token(const QueueTable& table, NonceSource& nonces);

/// Why a message is not sent whose id is there already.
Error duplicate_id(const QueueTable& place, const std::string& id);

/// Of a message whose item, with all that its life may add, is larger than DynamoDB's limit: why it is not taken.
std::optional<Error> too_large(const dynamo::Item& item, std::size_t life_bytes);

/// What a sender determines of a message that is there.
NewMessage content_of(const Message& message);

}  // namespace sluice::queue::table
