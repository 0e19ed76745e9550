#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"

/// What a handler wants committed together with the end of its message. Values.
namespace sluice::queue {

/// What one transaction carries at most: DynamoDB's limits, which hold on every store, so that a handler that works on
/// a laptop works in the cloud.
inline constexpr std::size_t kMostEffects = 100;
inline constexpr std::size_t kMostEffectBytes = std::size_t{4} * 1024 * 1024;

/// A message to a queue of the same store.
struct EmittedMessage {
  std::string queue;
  NewMessage message;
  /// The host made its id up: no other message can have it, and no store needs to look.
  bool made_id = false;
};

/// What becomes of a message whose effect was refused: its condition failed, or the store would not have it.
enum class OnRefusal : std::uint8_t { retry, reject };

enum class ItemAction : std::uint8_t { put, update, remove, check };
std::string_view to_string(ItemAction action);  // "put", "update", "delete", "check"

/// A write to an item of the user's, or a check of one, in DynamoDB's own words.
struct ItemWrite {
  ItemAction action = ItemAction::put;
  std::string table;
  std::string item;      ///< DynamoDB JSON: the whole item for put, its key otherwise
  std::string update{};  ///< update expression
  std::string condition{};
  std::map<std::string, std::string> names{};  ///< "#n" to the attribute's name
  std::string values{};                        ///< DynamoDB JSON of the expressions' values, "{}" or empty: none
};

/// What SQLite knows as a value; text and blobs are both bytes.
struct SqlBlob {
  std::string bytes;
  friend bool operator==(const SqlBlob&, const SqlBlob&) = default;
};
using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string, SqlBlob>;
/// A few lie where they are, in room that a write of an item takes anyway.
using SqlValues = boost::container::small_vector<SqlValue, 3>;

/// A statement on the user's tables in the embedded store's file.
struct SqlWrite {
  std::string statement;
  SqlValues parameters{};              ///< in the order of ?1, ?2, ...
  std::optional<std::int64_t> rows{};  ///< how many rows it has to change; nothing: any number
};
static_assert(sizeof(SqlWrite) <= sizeof(ItemWrite), "parameters make no effect larger");

/// A write of the handler's own, with the name by which its author knows it.
struct EffectWrite {
  std::variant<ItemWrite, SqlWrite> write;
  std::string label{};  ///< empty: it is named by its number
  OnRefusal on_refusal = OnRefusal::retry;
};

/// That a key is done with: kept as long as its job says, so that a message of the same key is known as a duplicate.
struct KeyRecord {
  std::string job;
  std::string key;
  std::string result{};  ///< what the handler gave back; shown to duplicates that run all the same
  Duration ttl{};
  /// The key is the id of the message itself, whose lease keeps everybody else from it: nothing has to be looked up,
  /// and `key` is not read.
  bool own_id = false;

  /// With the message of that id.
  std::string_view key_of(std::string_view id) const { return own_id ? id : std::string_view(key); }
};

// Most handlers stage one of each, which then lies in the Effects itself: they are made on one thread and freed on
// another, where every piece of memory costs.
using EmittedMessages = boost::container::small_vector<EmittedMessage, 1>;
using EffectWrites = boost::container::small_vector<EffectWrite, 1>;

struct Effects {
  EmittedMessages messages;  ///< each with an id
  EffectWrites writes;
  std::optional<KeyRecord> key;

  bool empty() const { return messages.empty() && writes.empty() && !key; }
};

// What every store refuses of effects, and how each names an effect to whoever wrote it.

/// Why no store commits these effects: more actions or more bytes than one transaction carries, a message without an id
/// or given twice. Nothing: they may be. An item that is written twice is refused by DynamoDB, which knows its key.
std::optional<Error> refused_effects(const Effects& effects);

/// Actions that count towards kMostEffects: the end of the message itself, each message with one for its deduplication
/// id and one for its unique key, each write, the key.
std::size_t effect_actions(const Effects& effects);

/// How a write is called in errors: `write "debit"`, or `write 2` where it has no label; `number` counts from 0.
std::string name_of(const EffectWrite& write, std::size_t number);
/// The same of a message: `message A-1 to queue orders`, or `the message to queue orders` where the host made its id.
std::string name_of(const EmittedMessage& emitted);

/// Why a message could not be sent: another one has its id. taken_key: another message has the idempotency key by now.
Error taken_id();
Error taken_key();

/// What is said of a write whose condition does not hold, after its name: what was found ("it changed 0 rows and had to
/// change 1"), what asked for it (the statement or the condition as the handler gave it, cut where it is long), and
/// what is to be done, by what becomes of the message. One line.
std::string refused_condition(std::string_view found, std::string_view asked, OnRefusal on_refusal);

}  // namespace sluice::queue
