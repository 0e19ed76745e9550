#include "host/stores/table/transaction_draft.hpp"

#include <map>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "host/stores/table/key_items.hpp"
#include "host/stores/table/mark_items.hpp"
#include "host/stores/table/single_writes.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {
namespace {

// DynamoDB takes 36 characters.
constexpr std::size_t kTokenCharacters = 32;
constexpr const char* kMendJson = "; mend what the handler stages";

using dynamo::TransactAction;

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

}  // namespace

bool TransactionDrafter::add_message(TransactionDraft& draft, const EmittedMessage& emitted,
                                     const std::string& void_mark, WallTime now) const {
  using Kind = TransactionDraft::Name::Kind;
  const auto layout = layouts_(emitted.queue);
  const NewMessage& message = emitted.message;
  const std::string name = "message " + message.id + " to queue " + emitted.queue;
  if (const auto refused = refused_send_keys(message)) {
    return draft.refuse(refused->code(), name + " was refused: " + refused->message());
  }
  const std::string token = parts_.nonces.anonymous();
  auto actions = layout->put(emitted, message.unique_key.empty() ? std::string() : token, now);
  if (!actions) {
    return draft.refuse(actions.error().code(), name + " was refused: " + actions.error().message());
  }
  const auto add = [&draft](TransactAction action, Kind kind, std::string text) {
    draft.request.actions.push_back(std::move(action));
    draft.names.push_back({kind, std::move(text)});
  };
  for (TransactAction& action : *actions) {
    add(std::move(action), Kind::message, name);
  }
  if (!message.dedup_id.empty()) {
    add(layout->dedup_mark(message, token, now), Kind::mark, "the deduplication id of " + name);
  }
  if (!message.unique_key.empty()) {
    add(layout->unique_mark(message, token, void_mark, now), Kind::mark, "the unique key of " + name);
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

bool TransactionDrafter::add_writes(TransactionDraft& draft, const Effects& effects) const {
  // Whatever else is in the transaction so far lies in tables of queues.
  std::set<std::string> tables{place_.table};
  for (const TransactAction& action : draft.request.actions) {
    tables.insert(action.table);
  }
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
    if (tables.contains(wanted->table.substr(wanted->table.rfind('/') + 1))) {  // also where an ARN names it
      return draft.refuse(ErrorCode::invalid,
                          name +
                              " was refused: queues lie in that table; keep items of your own in another one, and "
                              "stage a message to put one into a queue",
                          reject);
    }
    auto item = dynamo::decode_item(wanted->item);
    if (!item) {
      return draft.refuse(
          ErrorCode::invalid,
          name + " was refused: its item or key is no DynamoDB JSON: " + item.error().message + kMendJson, reject);
    }
    auto values =
        wanted->values.empty() ? dynamo::Result<dynamo::Item>(dynamo::Item()) : dynamo::decode_item(wanted->values);
    if (!values) {
      return draft.refuse(ErrorCode::invalid,
                          name + " was refused: its values are no DynamoDB JSON: " + values.error().message + kMendJson,
                          reject);
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
  if (draft.own != nullptr) {
    draft.request.actions = *draft.own;
    draft.names.resize(draft.own->size());
  }
  if (draft.completion->effects) {
    const Effects& effects = *draft.completion->effects;
    if (auto refused = refused_effects(effects)) {
      draft.refuse(refused->code(), refused->message());
      return;
    }
    if (!add_messages(draft, effects, now) || !add_writes(draft, effects)) {
      return;
    }
    if (effects.key) {
      draft.request.actions.push_back(
          layouts_(place_.queue)->key_record(*effects.key, draft.completion->receipt.id, now));
      draft.names.push_back({TransactionDraft::Name::Kind::key, "its idempotency key"});
    }
  }
  if (draft.request.actions.size() > dynamo::kMostActions) {
    draft.refuse(ErrorCode::invalid, "its effects come to " + std::to_string(draft.request.actions.size()) +
                                         " actions with what the queue itself needs, and a transaction has " +
                                         std::to_string(dynamo::kMostActions) + " at most; stage fewer");
    return;
  }
  draft.request.token = token_of(place_.queue, draft.completion->receipt, draft.request);
}

std::optional<dynamo::Error> TransactionDrafter::leave_out_duplicates(TransactionDraft& draft,
                                                                      Deadline deadline) const {
  const auto& messages = draft.completion->effects->messages;
  std::map<std::string, std::vector<std::size_t>> by_queue;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!draft.left_out.contains(i) && has_send_keys(messages[i].message)) {
      by_queue[messages[i].queue].push_back(i);
    }
  }
  const std::string own_scope = layouts_(place_.queue)->scope();
  const std::string now = format_timestamp(parts_.clock.wall_now());
  for (const auto& [queue, numbers] : by_queue) {
    const auto layout = layouts_(queue);
    std::vector<const NewMessage*> asked;
    for (const std::size_t number : numbers) {
      asked.push_back(&messages[number].message);
    }
    const auto standings = layout->look(asked, deadline);
    if (!standings && standings.error().kind == dynamo::ErrorKind::access_denied) {
      draft.refuse(ErrorCode::denied, "a message to queue " + queue +
                                          " was refused: whether it is a duplicate cannot be told: " +
                                          store_error(layout->place(), standings.error()).message());
      return std::nullopt;
    }
    SLUICE_PASS_ON(standings);
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      const EffectLayout::SentBefore& standing = (*standings)[k];
      // The message that ends with this transaction gives its key back by it.
      const bool own = layout->scope() == own_scope && standing.unique.first == draft.completion->receipt.id;
      draft.void_marks[numbers[k]] = standing.unique.token;
      if ((standing.dedup.there() && standing.dedup.until > now) ||
          (standing.unique.there() && !own && standing.held)) {
        draft.left_out.insert(numbers[k]);
      }
    }
  }
  return std::nullopt;
}

}  // namespace sluice::queue::table
