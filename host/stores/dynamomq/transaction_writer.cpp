#include "host/stores/dynamomq/transaction_writer.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/guard.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/signing/digest.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/effect_checks.hpp"
#include "host/stores/dynamomq/key_items.hpp"
#include "host/stores/dynamomq/single_writes.hpp"
#include "host/stores/dynamomq/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

// DynamoDB takes 36 characters.
constexpr std::size_t kTokenCharacters = 32;
// It lives for ten minutes at DynamoDB; a little less is sure.
constexpr Duration kTokenLife = std::chrono::minutes(9);

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

// Names a table at its end, or before anything that is no part of a name.
bool names_table(const std::string& text, const std::string& table) {
  const std::string arn_end = ":table/" + table;
  for (std::size_t at = text.find(arn_end); at != std::string::npos; at = text.find(arn_end, at + 1)) {
    const std::size_t after = at + arn_end.size();
    const bool more = after < text.size() && (std::isalnum(static_cast<unsigned char>(text[after])) != 0 ||
                                              text[after] == '_' || text[after] == '-' || text[after] == '.');
    if (!more) {
      return true;
    }
  }
  return false;
}

TransactionWriter::Outcome refusal(ErrorCode code, std::string text, bool reject) {
  TransactionWriter::Outcome outcome;
  outcome.refused = SettleResult{SettleStatus::refused, Error(code, std::move(text)), reject};
  return outcome;
}

TransactionWriter::Outcome failure(const dynamo::Error& error) {
  TransactionWriter::Outcome outcome;
  outcome.outcome.error = error;
  outcome.outcome.fate = outcome_unknown(error) ? StatementFate::unknown : StatementFate::failed;
  return outcome;
}

}  // namespace

/// A transaction on its way.
struct TransactionWriter::Draft {
  /// What one action is called where it is refused.
  struct Name {
    enum class Kind { own, message, write, key } kind = Kind::own;
    std::string text{};
    bool reject = false;
  };

  std::size_t place = 0;
  const Completion* completion = nullptr;
  dynamo::TransactWriteRequest request{};
  OpenTransactions::Asked kept{};  ///< that is made again, if it was made before
  std::vector<Name> names{};       ///< of the actions
  std::optional<SettleResult> refused{};

  bool refuse(ErrorCode code, std::string text, bool reject = false) {
    refused = SettleResult{SettleStatus::refused, Error(code, std::move(text)), reject};
    return false;
  }
};

bool TransactionWriter::add_messages(Draft& draft, const Effects& effects, WallTime now) const {
  for (const EmittedMessage& emitted : effects.messages) {
    const QueueTable place = parts_.locate(emitted.queue);
    std::string name = "message " + emitted.message.id + " to queue " + emitted.queue;
    if (!emitted.message.dedup_id.empty() || !emitted.message.unique_key.empty()) {
      return draft.refuse(ErrorCode::invalid,
                          name +
                              " was refused: on DynamoDB a message that is an effect has no deduplication id and no "
                              "unique key; derive its id from what makes it one, for a taken id is refused");
    }
    auto item =
        encode_record(emitted.message, {emitted.message.id, now, emitted.message.delay, parts_.nonces.anonymous()});
    if (!item) {
      return draft.refuse(item.error().code(), name + " was refused: " + item.error().message());
    }
    const WriteBuilder build(place.table);
    draft.request.actions.push_back(action_of(build.insert(emitted.message.id, std::move(*item))));
    draft.names.push_back({Draft::Name::Kind::message, std::move(name)});
  }
  return true;
}

bool TransactionWriter::add_writes(Draft& draft, const Effects& effects) {
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
    draft.names.push_back({Draft::Name::Kind::write, std::move(name), reject});
  }
  return true;
}

TransactionWriter::Draft TransactionWriter::draft(const Wanted& wanted, WallTime now) const {
  Draft draft;
  draft.completion = wanted.completion;
  const Effects& effects = *wanted.completion->effects;
  if (auto refused = refused_effects(effects)) {
    draft.refuse(refused->code(), refused->message());
    return draft;
  }
  if (wanted.record != nullptr) {
    draft.request.actions.push_back(action_of(*wanted.record));
    draft.names.push_back({});
  }
  if (add_messages(draft, effects, now) && add_writes(draft, effects)) {
    if (effects.key) {
      draft.request.actions.push_back(
          action_of(record_request(place_.table, *effects.key, wanted.completion->receipt.id, now)));
      draft.names.push_back({Draft::Name::Kind::key, "its idempotency key"});
    }
    draft.request.token = token_of(place_.queue, wanted.completion->receipt, draft.request);
  }
  return draft;
}

std::vector<TransactionWriter::Outcome> TransactionWriter::write(std::span<const Wanted> wanted, Deadline deadline) {
  std::vector<Outcome> outcomes(wanted.size());
  if (wanted.empty()) {
    return outcomes;
  }
  // What is sent is dated.
  if (const auto sure = parts_.clock.be_sure(place_, kTimeTolerance, deadline); !sure) {
    for (Outcome& outcome : outcomes) {
      outcome.outcome.error = dynamo::Error(dynamo::ErrorKind::server, sure.error().message());
    }
    return outcomes;
  }
  const WallTime now = parts_.clock.wall_now();
  std::vector<Draft> drafts;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Draft one = draft(wanted[i], now);
    one.place = i;
    one.kept = open_.take(wanted[i].completion->receipt);
    if (one.kept.request && !one.refused) {
      one.request = *one.kept.request;
    }
    if (one.refused) {
      outcomes[i].refused = std::move(one.refused);
    } else {
      drafts.push_back(std::move(one));
    }
  }
  for (std::size_t from = 0; from < drafts.size(); from += kMaxAtOnce) {
    send(std::span(drafts).subspan(from, std::min(kMaxAtOnce, drafts.size() - from)), outcomes, deadline);
  }
  return outcomes;
}

void TransactionWriter::send(std::span<Draft> drafts, std::vector<Outcome>& outcomes, Deadline deadline) {
  std::vector<dynamo::TransactWriteRequest> requests;
  requests.reserve(drafts.size());
  for (Draft& one : drafts) {
    requests.push_back(std::move(one.request));
  }
  const SteadyTime asked_at = parts_.clock.steady_now();
  const auto answers = parts_.client.transact_each(requests, deadline);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    drafts[i].request = std::move(requests[i]);
    Outcome& outcome = outcomes[drafts[i].place];
    if (!answers[i].error) {
      outcome.outcome.fate = StatementFate::done;
      continue;
    }
    outcome = outcome_of(drafts[i], answers[i], deadline);
    const bool again = drafts[i].kept.request != nullptr;
    const SteadyTime first_at = again ? drafts[i].kept.first_at : asked_at;
    if (outcome.outcome.fate == StatementFate::unknown) {
      open_.remember(drafts[i].completion->receipt,
                     {std::make_shared<const dynamo::TransactWriteRequest>(std::move(drafts[i].request)), first_at});
    }
    outcome.never_applied =
        again && parts_.clock.steady_now() - first_at < kTokenLife && SLUICE_GUARD(transaction_token);
  }
}

TransactionWriter::Outcome TransactionWriter::outcome_of(const Draft& draft, const dynamo::TransactResult& answer,
                                                         Deadline deadline) {
  using dynamo::ErrorKind;
  const dynamo::Error& error = *answer.error;
  if (outcome_unknown(error)) {
    return failure(error);
  }
  if (!answer.reasons.empty()) {
    return cancelled(draft, answer);
  }
  if (error.kind == ErrorKind::resource_not_found || error.kind == ErrorKind::access_denied) {
    const auto blamed = blamed_table(draft, error, deadline);
    if (blamed) {
      const auto& name = draft.names[*blamed];
      const std::string& table = draft.request.actions[*blamed].table;
      const bool missing = error.kind == ErrorKind::resource_not_found;
      return refusal(missing ? ErrorCode::queue_missing : ErrorCode::denied,
                     name.text + " was refused: " +
                         (missing ? "table " + table + " does not exist in this region; create it, or mend its name"
                                  : error.message + "; let the role write table " + table),
                     name.reject);
    }
    return failure(error);
  }
  if (error.kind == ErrorKind::validation) {
    // DynamoDB does not say which action it dislikes unless its words do.
    std::string names;
    bool reject = false;
    for (const auto& name : draft.names) {
      if (name.kind == Draft::Name::Kind::write) {
        names += (names.empty() ? "" : ", or ") + name.text;
        reject = reject || name.reject;
      }
    }
    return refusal(ErrorCode::invalid, (names.empty() ? "its messages" : names) + " was refused: " + error.message,
                   reject);
  }
  return failure(error);
}

TransactionWriter::Outcome TransactionWriter::cancelled(const Draft& draft, const dynamo::TransactResult& answer) {
  const auto& reasons = answer.reasons;
  const auto kind = [&](std::size_t i) { return dynamo::error_kind(reasons[i].code, 0); };
  const std::size_t count = std::min(reasons.size(), draft.names.size());
  const auto failed = [&](std::size_t i, dynamo::ErrorKind wanted) {
    return reasons[i].code != "None" && !reasons[i].code.empty() && kind(i) == wanted;
  };
  // The fence before all: whoever has lost the message has no say.
  if (count > 0 && failed(0, dynamo::ErrorKind::conditional_check_failed)) {
    Outcome lost;
    lost.outcome.fate = StatementFate::refused;
    return lost;
  }
  for (std::size_t i = 1; i < count; ++i) {
    const auto& name = draft.names[i];
    if (failed(i, dynamo::ErrorKind::conditional_check_failed) && name.kind == Draft::Name::Kind::key) {
      return refusal(ErrorCode::conflict,
                     name.text + " is held by another message by now; the next attempt finds it done", false);
    }
    if (failed(i, dynamo::ErrorKind::conditional_check_failed)) {
      return name.kind == Draft::Name::Kind::message
                 ? refusal(ErrorCode::duplicate_id,
                           name.text +
                               " was refused: a message of that id is there already; give it another id, or "
                               "leave it out",
                           false)
                 : refusal(ErrorCode::conflict, name.text + " was refused: its condition does not hold", name.reject);
    }
  }
  for (std::size_t i = 1; i < count; ++i) {
    if (failed(i, dynamo::ErrorKind::validation)) {
      return refusal(
          ErrorCode::invalid,
          draft.names[i].text + " was refused: " + (reasons[i].message.empty() ? reasons[i].code : reasons[i].message),
          draft.names[i].reject);
    }
  }
  return failure(*answer.error);
}

/// The action on a table other than the message's own that is missing, or that the role may not write.
std::optional<std::size_t> TransactionWriter::blamed_table(const Draft& draft, const dynamo::Error& error,
                                                           Deadline deadline) {
  std::map<std::string, std::size_t> others;  // each table with its first action
  for (std::size_t i = 1; i < draft.names.size() && i < draft.request.actions.size(); ++i) {
    if (const std::string& table = draft.request.actions[i].table; table != place_.table) {
      others.emplace(table, i);
    }
  }
  for (const auto& [table, action] : others) {
    if (error.kind == dynamo::ErrorKind::access_denied) {
      if (names_table(error.message, table)) {
        return action;
      }
      continue;
    }
    if (others.size() == 1) {
      return action;
    }
    // DynamoDB does not say which. A role that may not look has to be told of the first one it may be.
    const auto described = parts_.client.describe_table(table, deadline);
    if (!described && (described.error().kind == dynamo::ErrorKind::resource_not_found ||
                       described.error().kind == dynamo::ErrorKind::access_denied)) {
      return action;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::queue::dynamomq
