#include "host/stores/table/transaction_writer.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/guard.hpp"
#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/responses.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/writes.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::table {

namespace {

constexpr const char* kMend = "; mend what the handler stages";

using dynamo::TransactAction;

// By the order of both.
static_assert(static_cast<int>(ItemAction::check) == static_cast<int>(TransactAction::Kind::check));
TransactAction::Kind kind_of(ItemAction action) { return static_cast<TransactAction::Kind>(action); }

// A token lives for ten minutes at DynamoDB; a little less is sure.
constexpr Duration kTokenLife = std::chrono::minutes(9);

// As the end of an ARN: what follows is no part of a name.
bool names_table(const std::string& text, const std::string& table) {
  constexpr std::string_view kOfNames = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  const std::string name = ":table/" + table;
  std::size_t at = text.find(name);
  while (at != std::string::npos && text.find_first_of(kOfNames, at + name.size()) == at + name.size()) {
    at = text.find(name, at + 1);
  }
  return at != std::string::npos;
}

/// The transaction that one completion with effects comes to. A value.
struct Draft {
  struct Name : core::EffectPart {
    core::TransactionPart part = core::TransactionPart::end;
    bool mark = false;  ///< of a message that is sent with a deduplication id or a unique key
  };

  DeliveryWrite& write;
  dynamo::TransactWriteRequest request{};
  OpenTransaction kept{};     ///< that is made again, if it was made before
  std::vector<Name> names{};  ///< of the actions
  /// Messages, by their number, that are duplicates of ones sent before: accepted, and not stored.
  std::set<std::size_t> left_out{};
  std::vector<std::string> void_marks{};  ///< by message: the token of a mark that is to be replaced
  /// A message of it may be a duplicate of one that was sent before: it has to be left out.
  bool met_mark = false;

  const Receipt& receipt() const { return write.in_transaction->receipt; }
  const Effects& effects() const {
    static const Effects kNone;  // a dead letter that moves is a transaction, too
    return write.in_transaction->effects ? *write.in_transaction->effects : kNone;
  }
  /// The effects cannot be committed. False.
  bool refuse(SettleResult result) {
    write.outcome = {};
    write.decided = std::move(result);
    return false;
  }
  void fail(const dynamo::Error& error) {
    write.outcome = {};
    write.outcome.error = error;
    write.outcome.fate = outcome_unknown(error) ? StatementFate::unknown : StatementFate::failed;
  }
  void add(TransactAction action, Name name) {
    request.actions.push_back(std::move(action));
    names.push_back(std::move(name));
  }
};

/// Made for one call. Not thread-safe.
class TransactionWriter {
 public:
  static constexpr std::size_t kMaxAtOnce = 100;  ///< the transport has fewer under way at a time
  static constexpr int kMaxRounds = 4;            ///< of one transaction, each with the duplicates left out that it met

  TransactionWriter(const RecordLayout& layout, OpenTransactions& open)
      : parts_(layout.parts()), place_(layout.place()), layout_(layout), open_(open) {}

  void write(std::span<DeliveryWrite* const> writes, Deadline deadline) {
    // What is sent is dated.
    if (const auto sure = parts_.clock.be_sure(place_, kTimeTolerance, deadline); !sure) {
      for (DeliveryWrite* one : writes) {
        one->outcome.error = dynamo::Error(dynamo::ErrorKind::server, sure.error().message());
      }
      return;
    }
    const WallTime now = parts_.clock.wall_now();
    std::vector<Draft> drafts;
    for (DeliveryWrite* wanted : writes) {
      Draft one{.write = *wanted};
      // What has come of a checkpoint is told by the fence of whatever follows it.
      if (auto kept = open_.about(one.receipt());
          !kept.empty() && kept.back().action == wanted->in_transaction->action) {
        one.kept = std::move(kept.back());
        open_.clear(one.receipt());
      }
      one.left_out = one.kept.left_out;
      fill(one, now);
      if (wanted->decided) {
        continue;
      }
      if (one.kept.request) {
        one.request = *one.kept.request;
      }
      drafts.push_back(std::move(one));
    }
    for (int round = 1; !drafts.empty(); ++round) {
      std::vector<Draft> duplicates;
      for (std::size_t from = 0; from < drafts.size(); from += kMaxAtOnce) {
        send(std::span(drafts).subspan(from, std::min(kMaxAtOnce, drafts.size() - from)), duplicates, deadline);
      }
      drafts = round < kMaxRounds ? without_duplicates(std::move(duplicates), deadline) : std::vector<Draft>();
    }
  }

 private:
  /// Fills in request and names by the write, left_out and void_marks, or refuses it.
  void fill(Draft& draft, WallTime now) const {
    draft.request = {};
    draft.names.clear();
    if (auto refused = core::refused_at_once(draft.effects(), core::WriteKind::item)) {
      draft.refuse(std::move(*refused));
      return;
    }
    for (const core::TransactionPart part : core::kTransactionOrder) {
      if (!add(draft, part, now)) {
        return;
      }
    }
    if (draft.request.actions.size() > dynamo::kMostActions) {
      draft.refuse({SettleStatus::refused,
                    Error(ErrorCode::invalid, "its effects come to " + std::to_string(draft.request.actions.size()) +
                                                  " actions with what the queue itself needs, and a transaction has " +
                                                  std::to_string(dynamo::kMostActions) + " at most; stage fewer")});
      return;
    }
    draft.request.token = transaction_token(place_, parts_.nonces);
  }

  bool add(Draft& draft, core::TransactionPart part, WallTime now) const {
    const Effects& effects = draft.effects();
    switch (part) {
      case core::TransactionPart::end:
        draft.add(request_of(draft.write.record), {});
        for (const TransactAction& action : draft.write.beside) {
          draft.add(action, {});
        }
        return true;
      case core::TransactionPart::key:
        if (effects.key) {
          draft.add(record_request(place_.table, *effects.key, draft.receipt().id, now, layout_.marks()),
                    {{"its idempotency key"}, part});
        }
        return true;
      case core::TransactionPart::writes:
        return add_writes(draft, effects);
      case core::TransactionPart::messages:
        return add_messages(draft, effects, now);
    }
    return true;
  }

  bool add_messages(Draft& draft, const Effects& effects, WallTime now) const {
    // An item can be in a transaction once, and the second of two with one mark would be a duplicate of the first.
    std::set<std::string> marked;
    draft.void_marks.resize(effects.messages.size());
    for (std::size_t i = 0; i < effects.messages.size(); ++i) {
      const EmittedMessage& emitted = effects.messages[i];
      const RecordLayout& layout = parts_.layouts(emitted.queue);
      const auto marks = mapped(layout.marks().mark_ids(emitted.message),
                                [&](const std::string& id) { return layout.place().table + '/' + id; });
      const auto is_marked = [&marked](const std::string& mark) { return marked.contains(mark); };
      if (draft.left_out.contains(i) || std::any_of(marks.begin(), marks.end(), is_marked)) {
        continue;
      }
      marked.insert(marks.begin(), marks.end());
      if (!add_message(draft, layout, emitted, draft.void_marks[i], now)) {
        return false;
      }
    }
    return true;
  }

  bool add_message(Draft& draft, const RecordLayout& layout, const EmittedMessage& emitted,
                   const std::string& void_mark, WallTime now) const {
    const NewMessage& message = emitted.message;
    const std::string token = parts_.nonces.anonymous();
    auto actions = layout.put(emitted, message.unique_key.empty() ? std::string() : token, now);
    if (!actions) {
      return draft.refuse(core::refused_message(emitted, actions.error()));
    }
    constexpr auto kPart = core::TransactionPart::messages;
    const std::string name = name_of(emitted);
    for (TransactAction& action : *actions) {
      draft.add(std::move(action), {{name}, kPart});
    }
    for (TransactAction& mark : layout.put_marks(message, message.id, token, void_mark, now)) {
      const bool unique = mark.item.contains(attribute::kMarkMode);
      draft.add(std::move(mark), {{(unique ? "the unique key of " : "the deduplication id of ") + name}, kPart, true});
    }
    return true;
  }

  bool add_writes(Draft& draft, const Effects& effects) const {
    if (effects.writes.empty()) {
      return true;
    }
    std::set<std::string> tables{place_.table};  // of queues that the transaction has to do with
    for (const EmittedMessage& emitted : effects.messages) {
      tables.insert(parts_.layouts(emitted.queue).place().table);
    }
    for (std::size_t i = 0; i < effects.writes.size(); ++i) {
      const auto& wanted = std::get<ItemWrite>(effects.writes[i].write);
      core::EffectPart part = core::part_of(effects.writes[i], i, wanted.table);
      if (tables.contains(wanted.table.substr(wanted.table.rfind('/') + 1))) {  // also where an ARN names it
        return draft.refuse(
            core::refused(part, ErrorCode::invalid,
                          "queues lie in that table; keep items of your own in another one, and stage a "
                          "message to put one into a queue"));
      }
      const auto no_json = [&](const char* what, const dynamo::Error& error) {
        return draft.refuse(
            core::refused(part, ErrorCode::invalid, what + (" no DynamoDB JSON: " + error.message) + kMend));
      };
      auto item = dynamo::decode_item(wanted.item);
      if (!item) {
        return no_json("its item or key is", item.error());
      }
      auto values =
          wanted.values.empty() ? dynamo::Result<dynamo::Item>(dynamo::Item()) : dynamo::decode_item(wanted.values);
      if (!values) {
        return no_json("its values are", values.error());
      }
      draft.add({.kind = kind_of(wanted.action),
                 .table = wanted.table,
                 .item = std::move(*item),
                 .update = wanted.update,
                 .condition = wanted.condition,
                 .names = wanted.names,
                 .values = std::move(*values)},
                {std::move(part), core::TransactionPart::writes});
    }
    return true;
  }

  /// Reads what stands in the way of the marks of its messages, and leaves out those that are duplicates; or refuses
  /// the draft. An error: the tables could not be read.
  std::optional<dynamo::Error> leave_out_duplicates(Draft& draft, Deadline deadline) const {
    const auto& messages = draft.effects().messages;
    std::map<std::string, std::vector<std::size_t>> by_queue;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (!draft.left_out.contains(i) && has_send_keys(messages[i].message)) {
        by_queue[messages[i].queue].push_back(i);
      }
    }
    const std::string now = format_timestamp(parts_.clock.wall_now());
    for (const auto& [queue, numbers] : by_queue) {
      const RecordLayout& layout = parts_.layouts(queue);
      std::vector<const NewMessage*> asked;
      for (const std::size_t number : numbers) {
        asked.push_back(&messages[number].message);
      }
      const auto seen = layout.see(asked, {}, deadline);
      if (!seen && seen.error().kind == dynamo::ErrorKind::access_denied) {
        draft.refuse(core::refused(
            {"a message to queue " + queue}, ErrorCode::denied,
            "whether it is a duplicate cannot be told: " + store_error(layout.place(), seen.error()).message()));
        return std::nullopt;
      }
      SLUICE_PASS_ON(seen);
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        RecordLayout::SentBefore before = layout.sent_before(*asked[k], *seen);
        // The message that ends with this transaction gives its key back by it.
        const bool own = layout.scope() == layout_.scope() && before.unique.first == draft.receipt().id;
        before.held = before.held && !own;
        draft.void_marks[numbers[k]] = before.unique.token;
        if (before.first(now) != nullptr) {
          draft.left_out.insert(numbers[k]);
        }
      }
    }
    return std::nullopt;
  }

  void send(std::span<Draft> drafts, std::vector<Draft>& duplicates, Deadline deadline) {
    auto requests = mapped(drafts, [](Draft& one) { return std::move(one.request); });
    const SteadyTime asked_at = parts_.clock.steady_now();
    const auto answers = parts_.client.transact_each(requests, deadline);
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      Draft& draft = drafts[i];
      draft.request = std::move(requests[i]);
      StatementOutcome& outcome = draft.write.outcome;
      if (answers[i]) {
        outcome = {};
        outcome.fate = StatementFate::done;
        continue;
      }
      judge(draft, answers[i].error(), deadline);
      const bool again = draft.kept.request != nullptr;
      const SteadyTime first_at = again ? draft.kept.first_at : asked_at;
      draft.write.never_applied =
          again && parts_.clock.steady_now() - first_at < kTokenLife && SLUICE_GUARD(transaction_token);
      // One that may have been applied before stays in question until an answer tells: being refused a connection, a
      // conflict or a throttled partition tells nothing about it.
      const bool in_question =
          again && outcome.fate == StatementFate::failed && !draft.write.decided && !draft.met_mark;
      if (outcome.fate == StatementFate::unknown || in_question) {
        open_.remember(draft.receipt(), {std::make_shared<const dynamo::TransactWriteRequest>(std::move(draft.request)),
                                         std::move(draft.left_out), first_at, draft.write.in_transaction->action});
      } else if (draft.met_mark) {
        duplicates.push_back(std::move(draft));
      }
    }
  }
  /// What of them can be made again; the others have their outcome.
  std::vector<Draft> without_duplicates(std::vector<Draft> drafts, Deadline deadline) {
    std::vector<Draft> again;
    for (Draft& one : drafts) {
      if (const auto unread = leave_out_duplicates(one, deadline)) {
        one.fail(*unread);
        continue;
      }
      one.kept = {};  // it met a mark, and so was not applied
      one.met_mark = false;
      if (!one.write.decided) {
        fill(one, parts_.clock.wall_now());
      }
      if (!one.write.decided) {
        again.push_back(std::move(one));
      }
    }
    return again;
  }

  /// Tells what became of it by the error that it was answered with.
  void judge(Draft& draft, const dynamo::Error& error, Deadline deadline) {
    using dynamo::ErrorKind;
    draft.fail(error);
    if (outcome_unknown(error)) {
      return;
    }
    if (!error.cancellation_reasons.empty()) {
      judge_cancelled(draft, error);
    } else if (error.kind == ErrorKind::resource_not_found || error.kind == ErrorKind::access_denied) {
      if (const auto blamed = blamed_table(draft, error, deadline)) {
        const auto& name = draft.names[*blamed];
        const std::string& table = draft.request.actions[*blamed].table;
        const bool missing = error.kind == ErrorKind::resource_not_found;
        draft.refuse(
            core::refused(name, missing ? ErrorCode::queue_missing : ErrorCode::denied,
                          missing ? "table " + table + " does not exist in this region; create it, or mend its name"
                                  : error.message + "; let the role write table " + table));
      }
    } else if (error.kind == ErrorKind::validation && draft.write.in_transaction->effects != nullptr) {
      // DynamoDB does not say which action it dislikes unless its words do.
      core::EffectPart any;
      for (const auto& name : draft.names) {
        if (name.part == core::TransactionPart::writes) {
          any.name += (any.name.empty() ? "" : ", or ") + name.name;
          any.reject = any.reject || name.reject;
        }
      }
      any.name = any.name.empty() ? "its messages" : any.name;
      draft.refuse(core::refused(any, ErrorCode::invalid, error.message + kMend));
    }
  }

  /// Its actions are in the order in which it counts that one is refused.
  static void judge_cancelled(Draft& draft, const dynamo::Error& error) {
    using core::TransactionPart;
    const auto& reasons = error.cancellation_reasons;
    const std::size_t count = std::min({reasons.size(), draft.names.size(), draft.request.actions.size()});
    const auto failed = [&](std::size_t i, dynamo::ErrorKind wanted) {
      return reasons[i].stood_in_the_way() && dynamo::error_kind(reasons[i].code, 0) == wanted;
    };
    std::optional<SettleResult> taken;
    for (std::size_t i = 0; i < count; ++i) {
      if (!failed(i, dynamo::ErrorKind::conditional_check_failed)) {
        continue;
      }
      const Draft::Name& name = draft.names[i];
      switch (name.part) {
        case TransactionPart::end:
          draft.write.outcome = {};
          draft.write.outcome.fate = StatementFate::refused;
          return;
        case TransactionPart::key:
          draft.refuse({SettleStatus::refused, taken_key()});
          return;
        case TransactionPart::writes:
          draft.refuse(
              core::refused_condition(name, "its condition does not hold", draft.request.actions[i].condition));
          return;
        case TransactionPart::messages:
          draft.met_mark = draft.met_mark || name.mark;
          if (!taken && !name.mark) {
            taken = core::refused(name, ErrorCode::duplicate_id, taken_id().message());
          }
          break;
      }
    }
    if (draft.met_mark) {
      draft.fail(dynamo::Error(dynamo::ErrorKind::throttled,
                               "others send with the same deduplication ids or unique keys at the same time"));
      return;
    }
    if (taken) {
      draft.refuse(*std::move(taken));
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (!failed(i, dynamo::ErrorKind::validation)) {
        continue;
      }
      if (draft.names[i].part == TransactionPart::end) {  // the message's own record has become too large
        draft.fail(dynamo::Error(dynamo::ErrorKind::validation, reasons[i].message));
      } else {
        draft.refuse(core::refused(draft.names[i], ErrorCode::invalid,
                                   (reasons[i].message.empty() ? reasons[i].code : reasons[i].message) + kMend));
      }
      return;
    }
  }

  /// The action on a table other than the message's own that is missing, or that the role may not write.
  std::optional<std::size_t> blamed_table(const Draft& draft, const dynamo::Error& error, Deadline deadline) {
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

  const StoreParts& parts_;
  const QueueTable& place_;
  const RecordLayout& layout_;
  OpenTransactions& open_;
};

}  // namespace

void commit_transactions(const RecordLayout& layout, OpenTransactions& open, std::span<DeliveryWrite* const> writes,
                         Deadline deadline) {
  if (!writes.empty()) {
    TransactionWriter(layout, open).write(writes, deadline);
  }
}

}  // namespace sluice::queue::table
