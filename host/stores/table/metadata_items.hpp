#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"

/// Items of a queue's table that are no messages: notices, idempotency keys, marks. Each is found by an id of its own.
namespace sluice::queue::table {

/// How a layout keys them. A value; the views are of literals.
struct LoneNames {
  std::string_view hash;
  std::string_view range{};  ///< empty: the table has no sort key; otherwise theirs is `alone`
  std::string_view alone{};
  std::string_view expires;  ///< N, s since 1970: the table's attribute for TTL

  /// The primary key of the item with this id.
  dynamo::Item key(std::string id) const {
    dynamo::Item key{{std::string(hash), std::move(id)}};
    if (!range.empty()) {
      key.emplace(range, alone);
    }
    return key;
  }
  /// The id of an item; empty: it has none.
  std::string id_of(const dynamo::Item& item) const {
    const auto* id = dynamo::find<std::string>(item, hash);
    return id == nullptr ? std::string() : *id;
  }
};

// Notices among the items of a DynamoMQ table. They have no `queue_type`, so that no index holds them, and none of
// DynamoMQ's attributes but `id`: a Go program that scans the whole table sees a message without anything in it.

/// What the ids of notices begin with. No message of ours has such an id.
inline constexpr std::string_view kNoticePrefix = "sluice:fleet/";

/// True for the id of an item that is no message.
constexpr bool is_notice_id(std::string_view id) { return id.substr(0, kNoticePrefix.size()) == kNoticePrefix; }

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
/// key. No message of ours has such an id.
inline constexpr std::string_view kKeyPrefix = "sluice:key/";
constexpr bool is_key_id(std::string_view id) { return id.substr(0, kKeyPrefix.size()) == kKeyPrefix; }

inline constexpr std::string_view kDedupPrefix = "sluice:dedup/";
inline constexpr std::string_view kUniquePrefix = "sluice:unique/";

/// True for the id of an item that is no message.
constexpr bool is_mark_id(std::string_view id) { return id.starts_with(kDedupPrefix) || id.starts_with(kUniquePrefix); }
std::string dedup_mark_id(const std::string& dedup_id);
std::string unique_mark_id(const std::string& key);

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
  const LoneNames& names;
  std::string queue{};  ///< empty: the table has but one

  std::string dedup_id(const std::string& dedup_id) const { return dedup_mark_id(within(dedup_id)); }
  std::string unique_id(const std::string& key) const { return unique_mark_id(within(key)); }
  /// What the ids of its idempotency keys begin with; of one job's, where one is named.
  std::string keys_prefix(const std::string& job = {}) const {
    return std::string(kKeyPrefix) + within(job.empty() ? job : job + "/");
  }

 private:
  std::string within(const std::string& name) const { return queue.empty() ? name : queue + "/" + name; }
};

/// Puts a message that must not be there yet.
dynamo::TransactAction put_message(const std::string& table, const dynamo::Item& item, const LoneNames& names);

}  // namespace sluice::queue::table
