#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/item_reading.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"

/// How a layout names what its items have; and the items that are no messages: notices, idempotency keys, marks. Each
/// of those is found by an id of its own.
namespace sluice::queue::table {

/// How a layout names what the items of all layouts have. A value; the views are of literals.
struct LayoutNames {
  std::string_view hash;
  std::string_view range{};    ///< empty: the table has no sort key
  std::string_view alone{};    ///< the sort key of items that are no messages
  std::string_view expires{};  ///< N, s since 1970: the table's attribute for TTL

  // Of messages.
  std::string_view version{};
  std::string_view nonce{};         ///< S: of the last write by one of our hosts
  std::string_view unique_token{};  ///< S: of the unique key that it took
  std::string_view updated{};
  std::string_view receives{};  ///< N
  std::string_view received{};
  std::string_view hidden_until{};
  std::string_view marks{};       ///< N
  std::string_view failure{};     ///< M
  std::string_view checkpoint{};  ///< B
  // Empty in a layout that says it otherwise, such as by the key.
  std::string_view half{};  ///< S
  std::string_view sent_at{};
  std::string_view created{};
  /// How it spells a time, and that there is none.
  dynamo::AttributeValue (*time)(const std::optional<WallTime>& time) = nullptr;
  std::size_t life_bytes = 0;  ///< room that a message needs beyond what was sent, for all that its life may add

  /// The primary key of the item with this id that is no message.
  dynamo::Item key(std::string id) const {
    dynamo::Item key{{std::string(hash), std::move(id)}};
    if (!range.empty()) {
      key.emplace(range, alone);
    }
    return key;
  }
  /// The id of an item; empty: it has none.
  std::string id_of(const dynamo::Item& item) const { return dynamo::text_of(item, hash); }
};

// Notices among the items of a DynamoMQ table. They have no `queue_type`, so that no index holds them, and none of
// DynamoMQ's attributes but `id`: a Go program that scans the whole table sees a message without anything in it.

/// What the ids of notices begin with.
inline constexpr std::string_view kNoticePrefix = "sluice:fleet/";

namespace attribute {
inline constexpr std::string_view kNoticeText = "sluice_notice";         ///< S
inline constexpr std::string_view kNoticeVersion = "sluice_version";     ///< N
inline constexpr std::string_view kNoticePostedAt = "sluice_posted_at";  ///< S
inline constexpr std::string_view kNoticeKeys = "sluice_keys";           ///< SS: of a topic that has many
}  // namespace attribute

// What was sent lately, and who has a unique key, among the items of a queue's table. They have no `queue_type`, so
// that no index holds them, and none of DynamoMQ's attributes but `id`. DynamoDB's TTL removes them, where it is
// switched on; what is judged is what they say, and not whether they are there.

/// What the ids of key items begin with: then the queue and "/" where a table has several, job, "/" and a hash of the
/// key.
inline constexpr std::string_view kKeyPrefix = "sluice:key/";

inline constexpr std::string_view kDedupPrefix = "sluice:dedup/";
inline constexpr std::string_view kUniquePrefix = "sluice:unique/";

/// True for the id of any of these. No message of ours has such an id.
constexpr bool is_metadata_id(std::string_view id) {
  return id.starts_with(kNoticePrefix) || id.starts_with(kKeyPrefix) || id.starts_with(kDedupPrefix) ||
         id.starts_with(kUniquePrefix);
}

namespace attribute {
inline constexpr std::string_view kMarkFirst = "sluice_first";  ///< S: the id of the message that was sent
inline constexpr std::string_view kMarkToken = "sluice_token";  ///< S: of the send that left it
inline constexpr std::string_view kMarkUntil = "sluice_until";  ///< S: when the window ends, as format_timestamp
inline constexpr std::string_view kMarkMode = "sluice_mode";    ///< S: of a unique key, "claimed" or "done"
}  // namespace attribute

/// A unique key's mark stays this long after the send, and the key is free then, wherever its message is.
inline constexpr Duration kUniqueLife = std::chrono::hours(24 * 14);

/// What a mark says. Of an item that is none, and where there is no item, nothing.
struct Mark {
  std::string first;
  std::string token;
  std::string until{};  ///< of a deduplication id; otherwise empty
  UniqueUntil mode = UniqueUntil::done;

  static Mark of(const dynamo::Item* item);
  void put_into(dynamo::Item& item) const;
  bool there() const { return !token.empty(); }
};

/// Whose marks and keys: of a table of one queue, or of a queue among several of its table.
struct ItemScope {
  const LayoutNames& names;
  std::string queue{};  ///< empty: the table has but one

  std::string dedup_id(const std::string& dedup_id) const { return std::string(kDedupPrefix) + within(dedup_id); }
  std::string unique_id(const std::string& key) const { return std::string(kUniquePrefix) + within(key); }
  /// Of all marks that a message leaves.
  std::vector<std::string> mark_ids(const NewMessage& message) const;
  /// What the ids of its idempotency keys begin with; of one job's, where one is named.
  std::string keys_prefix(const std::string& job = {}) const {
    return std::string(kKeyPrefix) + within(job.empty() ? job : job + "/");
  }

 private:
  std::string within(const std::string& name) const { return queue.empty() ? name : queue + "/" + name; }
};

/// Spells the names and values of a request's expressions behind placeholders, because some names are reserved words.
/// The request outlives it.
class Placeholders {
 public:
  explicit Placeholders(dynamo::ItemWrite& request) : request_(request) {}

  std::string name(std::string_view attribute);
  std::string compared(std::string_view attribute, std::string_view comparison, dynamo::AttributeValue value);
  std::string equal(std::string_view attribute, dynamo::AttributeValue value) {
    return compared(attribute, " = ", std::move(value));
  }
  std::string absent(std::string_view attribute) { return "attribute_not_exists(" + name(attribute) + ")"; }

 private:
  dynamo::ItemWrite& request_;
};

/// Puts a message that must not be there yet.
dynamo::TransactAction put_message(const std::string& table, const dynamo::Item& item, const LayoutNames& names);

}  // namespace sluice::queue::table
