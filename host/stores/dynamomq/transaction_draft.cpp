#include "host/stores/dynamomq/transaction_draft.hpp"

#include <map>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/queue/effect_checks.hpp"
#include "host/queue/send_keys.hpp"
#include "host/stores/dynamomq/key_items.hpp"
#include "host/stores/dynamomq/mark_items.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/dynamomq/single_writes.hpp"
#include "host/stores/dynamomq/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

// DynamoDB takes 36 characters.
constexpr std::size_t kTokenCharacters = 32;

using dynamo::TransactAction;

template <typename Request>
TransactAction keyed(TransactAction::Kind kind, Request request) {
  return {.kind = kind,
          .table = std::move(request.table),
          .item_or_key = std::move(request.key),
          .condition = std::move(request.condition),
          .names = std::move(request.names),
          .values = std::move(request.values)};
}

TransactAction action_of(dynamo::PutItemRequest request) {
  return {.kind = TransactAction::Kind::put,
          .table = std::move(request.table),
          .item_or_key = std::move(request.item),
          .condition = std::move(request.condition),
          .names = std::move(request.names),
          .values = std::move(request.values)};
}

TransactAction action_of(dynamo::UpdateItemRequest request) {
  std::string update = std::move(request.update);
  TransactAction action = keyed(TransactAction::Kind::update, std::move(request));
  action.update = std::move(update);
  return action;
}

TransactAction action_of(dynamo::DeleteItemRequest request) {
  return keyed(TransactAction::Kind::remove, std::move(request));
}

TransactAction action_of(const RecordWrite& write) {
  return std::visit([](auto&& one) { return action_of(std::forward<decltype(one)>(one)); }, request_of(write));
}

TransactAction::Kind kind_of(ItemAction action) {
  switch (action) {
    case ItemAction::put:
      return TransactAction::Kind::put;
    case ItemAction::update:
      return TransactAction::Kind::update;
    case ItemAction::remove:
      return TransactAction::Kind::remove;
    case ItemAction::check:
      break;
  }
  return TransactAction::Kind::check;
}

std::string token_of(const std::string& queue, const Receipt& receipt, const dynamo::TransactWriteRequest& request) {
  const std::string named = queue + '\n' + receipt.id + '\n' + std::to_string(receipt.version) + '\n';
  return dynamo::to_hex(dynamo::sha256(named + dynamo::encode(request))).substr(0, kTokenCharacters);
}

const dynamo::Item* find(const TransactionDrafter::Records& records, const std::string& table, const std::string& id) {
  const auto in_table = records.find(table);
  if (in_table == records.end()) {
    return nullptr;
  }
  const auto found = in_table->second.find(id);
  return found == in_table->second.end() ? nullptr : &found->second;
}

}  // namespace

bool TransactionDrafter::add_message(TransactionDraft& draft, const EmittedMessage& emitted,
                                     const std::string& void_mark, WallTime now) const {
  using Kind = TransactionDraft::Name::Kind;
  const QueueTable place = parts_.locate(emitted.queue);
  const NewMessage& message = emitted.message;
  const std::string name = "message " + message.id + " to queue " + emitted.queue;
  if (message.priority != Priority::normal) {
    return draft.refuse(ErrorCode::invalid, name + " was refused: " + no_priorities(place).message());
  }
  if (const auto refused = refused_send_keys(message)) {
    return draft.refuse(refused->code(), name + " was refused: " + refused->message());
  }
  const std::string token = parts_.nonces.anonymous();
  auto item = encode_record(message, {message.id, now, message.delay, parts_.nonces.anonymous()});
  if (!item) {
    return draft.refuse(item.error().code(), name + " was refused: " + item.error().message());
  }
  if (!message.unique_key.empty()) {
    item->insert_or_assign(std::string(attribute::kUniqueToken), token);
  }
  const auto add = [&draft](TransactAction action, Kind kind, std::string text) {
    draft.request.actions.push_back(std::move(action));
    draft.names.push_back({kind, std::move(text)});
  };
  add(put_message(place.table, *item), Kind::message, name);
  if (!message.dedup_id.empty()) {
    add(put_dedup_mark(place.table, message, message.id, token, now), Kind::mark, "the deduplication id of " + name);
  }
  if (!message.unique_key.empty()) {
    add(put_unique_mark(place.table, message, message.id, token, void_mark, now), Kind::mark,
        "the unique key of " + name);
  }
  return true;
}

bool TransactionDrafter::add_messages(TransactionDraft& draft, const Effects& effects, WallTime now) const {
  // An item can be in a transaction once, and the second of two with one mark would be a duplicate of the first.
  std::set<std::pair<std::string, std::string>> marks;
  draft.void_marks.resize(effects.messages.size());
  for (std::size_t i = 0; i < effects.messages.size(); ++i) {
    const EmittedMessage& emitted = effects.messages[i];
    const std::string& dedup_id = emitted.message.dedup_id;
    const std::string& unique_key = emitted.message.unique_key;
    const std::pair dedup(emitted.queue, dedup_mark_id(dedup_id));
    const std::pair unique(emitted.queue, unique_mark_id(unique_key));
    if (draft.left_out.contains(i) || (!dedup_id.empty() && marks.contains(dedup)) ||
        (!unique_key.empty() && marks.contains(unique))) {
      continue;
    }
    marks.insert(dedup);
    marks.insert(unique);
    if (!add_message(draft, emitted, draft.void_marks[i], now)) {
      return false;
    }
  }
  return true;
}

bool TransactionDrafter::add_writes(TransactionDraft& draft, const Effects& effects) {
  for (std::size_t i = 0; i < effects.writes.size(); ++i) {
    const EffectWrite& write = effects.writes[i];
    const bool reject = write.on_refusal == OnRefusal::reject;
    const auto* wanted = std::get_if<ItemWrite>(&write.write);
    if (wanted == nullptr) {
      return draft.refuse(ErrorCode::invalid,
                          name_of(write, i) +
                              " was refused: it is an SQL statement and the message lies in DynamoDB; "
                              "write items there, or put the queue into a SQLite store",
                          reject);
    }
    std::string name = name_of(write, i) + " on table " + wanted->table;
    auto item = dynamo::decode_item(wanted->item);
    if (!item) {
      return draft.refuse(ErrorCode::invalid,
                          name + " was refused: its item or key is no DynamoDB JSON: " + item.error().message, reject);
    }
    auto values =
        wanted->values.empty() ? dynamo::Result<dynamo::Item>(dynamo::Item()) : dynamo::decode_item(wanted->values);
    if (!values) {
      return draft.refuse(ErrorCode::invalid,
                          name + " was refused: its values are no DynamoDB JSON: " + values.error().message, reject);
    }
    draft.request.actions.push_back({.kind = kind_of(wanted->action),
                                     .table = wanted->table,
                                     .item_or_key = std::move(*item),
                                     .update = wanted->update,
                                     .condition = wanted->condition,
                                     .names = wanted->names,
                                     .values = std::move(*values)});
    draft.names.push_back({TransactionDraft::Name::Kind::write, std::move(name), reject});
  }
  return true;
}

void TransactionDrafter::fill(TransactionDraft& draft, WallTime now) const {
  draft.request = {};
  draft.names.clear();
  const Effects& effects = *draft.completion->effects;
  if (auto refused = refused_effects(effects)) {
    draft.refuse(refused->code(), refused->message());
    return;
  }
  if (draft.record != nullptr) {
    draft.request.actions.push_back(action_of(*draft.record));
    draft.names.push_back({});
  }
  if (add_messages(draft, effects, now) && add_writes(draft, effects)) {
    if (effects.key) {
      draft.request.actions.push_back(
          action_of(record_request(place_.table, *effects.key, draft.completion->receipt.id, now)));
      draft.names.push_back({TransactionDraft::Name::Kind::key, "its idempotency key"});
    }
    draft.request.token = token_of(place_.queue, draft.completion->receipt, draft.request);
  }
}

/// Takes in what the marks of the queue say, and the messages that they name. False: they cannot be read; an error,
/// where that may pass.
bool TransactionDrafter::read(TransactionDraft& draft, const std::string& queue, const std::set<std::string>& marks,
                              Records& records, std::optional<dynamo::Error>& error, Deadline deadline) const {
  const QueueTable place = parts_.locate(queue);
  auto& items = records[place.table];
  std::set<std::string> wanted = marks;
  while (!wanted.empty()) {
    auto found = parts_.runner.read(place.table, {wanted.begin(), wanted.end()}, deadline);
    if (!found && found.error().kind == dynamo::ErrorKind::access_denied) {
      return draft.refuse(ErrorCode::denied, "a message to queue " + queue +
                                                 " was refused: whether it is a duplicate cannot be told: " +
                                                 store_error(place, found.error()).message());
    }
    if (!found) {
      error = found.error();
      return false;
    }
    std::set<std::string> holders;
    for (auto& [id, item] : *found) {
      if (id.starts_with(kUniquePrefix) && wanted.contains(id)) {
        holders.insert(Mark::of(&item).first);
      }
      items.insert_or_assign(id, std::move(item));
    }
    // A holder is a message, and names no other.
    wanted = marks == wanted ? std::move(holders) : std::set<std::string>();
    wanted.erase("");
  }
  return true;
}

void TransactionDrafter::leave_out(TransactionDraft& draft, std::size_t number, const Records& records,
                                   const std::string& now) const {
  const EmittedMessage& emitted = draft.completion->effects->messages[number];
  const NewMessage& message = emitted.message;
  const std::string table = parts_.locate(emitted.queue).table;
  const auto mark = [&](const std::string& key, std::string (*id_of)(const std::string&)) {
    return key.empty() ? Mark() : Mark::of(find(records, table, id_of(key)));
  };
  const Mark dedup = mark(message.dedup_id, &dedup_mark_id);
  const Mark unique = mark(message.unique_key, &unique_mark_id);
  // The message that ends with this transaction gives its key back by it.
  const bool own = table == place_.table && unique.first == draft.completion->receipt.id;
  draft.void_marks[number] = unique.token;
  if ((dedup.there() && dedup.until > now) ||
      (unique.there() && !own && holds_key(find(records, table, unique.first), unique))) {
    draft.left_out.insert(number);
  }
}

std::optional<dynamo::Error> TransactionDrafter::leave_out_duplicates(TransactionDraft& draft,
                                                                      Deadline deadline) const {
  const auto& messages = draft.completion->effects->messages;
  std::map<std::string, std::set<std::string>> marks;  // by queue
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const NewMessage& message = messages[i].message;
    if (!draft.left_out.contains(i) && !message.dedup_id.empty()) {
      marks[messages[i].queue].insert(dedup_mark_id(message.dedup_id));
    }
    if (!draft.left_out.contains(i) && !message.unique_key.empty()) {
      marks[messages[i].queue].insert(unique_mark_id(message.unique_key));
    }
  }
  Records records;
  std::optional<dynamo::Error> error;
  for (const auto& [queue, ids] : marks) {
    if (!read(draft, queue, ids, records, error, deadline)) {
      return error;
    }
  }
  const std::string now = format_timestamp(parts_.clock.wall_now());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!draft.left_out.contains(i) && has_send_keys(messages[i].message)) {
      leave_out(draft, i, records, now);
    }
  }
  return std::nullopt;
}

}  // namespace sluice::queue::dynamomq
