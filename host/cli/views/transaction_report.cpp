#include "host/cli/views/transaction_report.hpp"

#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <charconv>
#include <cmath>
#include <variant>

#include "base/text/base64.hpp"
#include "base/text/hex.hpp"
#include "base/text/visible.hpp"
#include "config/config.hpp"
#include "host/cli/views/output.hpp"
#include "host/queue/effects.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/work/in_flight_table.hpp"

namespace sluice::cli {
namespace {

using queue::Effects;
using queue::EffectWrite;
using queue::EmittedMessage;
using queue::ItemAction;
using queue::ItemWrite;
using queue::SqlValue;
using queue::SqlWrite;

/// The member of TransactItems.
std::string_view operation(ItemAction action) {
  return action == ItemAction::put      ? "Put"
         : action == ItemAction::update ? "Update"
         : action == ItemAction::remove ? "Delete"
                                        : "ConditionCheck";
}

std::string real_text(double value) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return std::string(digits.data(), end.ptr);
}

/// As SQL writes it.
std::string literal(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return real_text(*real);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return "'" + boost::replace_all_copy(*text, "'", "''") + "'";
  }
  if (const auto* blob = std::get_if<queue::SqlBlob>(&value)) {
    return "x'" + to_hex(blob->bytes) + "'";
  }
  return "NULL";
}

/// What follows a line of a write: its label, and what becomes of the message when it is refused.
std::string remarks(const EffectWrite& write) {
  return (write.label.empty() ? "" : "  -- " + write.label) +
         (write.on_refusal == queue::OnRefusal::reject ? std::string(write.label.empty() ? "  -- " : ", ") + "or reject"
                                                       : "");
}

/// A line below an action; none where there is nothing to say.
void add_line(std::string& text, std::string_view what, std::string_view value) {
  if (!value.empty()) {
    text += "       " + visible(what) + " " + visible(value) + "\n";
  }
}

std::string item_text(const ItemWrite& item, const std::string& remark) {
  std::string text = std::string(operation(item.action)) + " " + visible(item.table) + " " + visible(item.item) +
                     visible(remark) + "\n";
  add_line(text, "UpdateExpression:", item.update);
  add_line(text, "ConditionExpression:", item.condition);
  for (const auto& [name, attribute] : item.names) {
    add_line(text, name + " =", attribute);
  }
  add_line(text, "Values:", item.values);
  return text;
}

std::string sql_text(const SqlWrite& sql, const std::string& remark) {
  std::string text = visible(sql.statement) + visible(remark) + "\n";
  for (std::size_t i = 0; i < sql.parameters.size(); ++i) {
    text += "       ?" + std::to_string(i + 1) + " = " + visible(literal(sql.parameters[i])) + "\n";
  }
  return text + (sql.rows ? "       rows: " + std::to_string(*sql.rows) + "\n" : "");
}

std::string message_text(const EmittedMessage& emitted) {
  const queue::NewMessage& message = emitted.message;
  std::string text = "send to " + visible(emitted.queue) + ": " + visible(message.body) + "\n";
  add_line(text, "id:", message.id);
  add_line(text, "group:", message.group);
  add_line(text, "delay:", message.delay > Duration::zero() ? config::format_duration(message.delay) : "");
  add_line(text, "priority:", message.priority == queue::Priority::normal ? "" : to_string(message.priority));
  add_line(text, "dedup id:", message.dedup_id);
  for (const auto& [name, value] : message.attributes) {
    add_line(text, name + ":", value);
  }
  return text;
}

/// What duplicates would see.
std::string result_of(const DryRun& run) {
  const bool given = run.keeps_key && run.outcome.effects && run.outcome.effects->key;
  return given ? run.outcome.effects->key->result : std::string();
}

/// Sends, then writes, then what the host adds, as numbered paragraphs.
std::string actions_text(const DryRun& run, const Effects& effects) {
  std::string text;
  std::size_t number = 0;
  const auto add = [&](const std::string& action) {
    const std::string count = std::to_string(++number);
    text += std::string(count.size() < 4 ? 4 - count.size() : 0, ' ') + count + "  " + action;
  };
  for (const EmittedMessage& message : effects.messages) {
    add(message_text(message));
    if (!message.message.dedup_id.empty()) {
      add("remember the deduplication id " + visible(message.message.dedup_id) + " in " + visible(message.queue) +
          "; where it is remembered already, the message is not stored\n");
    }
  }
  for (const EffectWrite& write : effects.writes) {
    const auto* item = std::get_if<ItemWrite>(&write.write);
    add(item != nullptr ? item_text(*item, remarks(write)) : sql_text(std::get<SqlWrite>(write.write), remarks(write)));
  }
  if (run.keeps_key) {
    const std::string result = result_of(run);
    add("remember the message's idempotency key" + (result.empty() ? "" : " with the result: " + visible(result)) +
        "\n");
  }
  add((run.store == SLUICE_STORE_NONE ? "mark row " + std::string(run.id) + " of " + std::string(run.queue) + " as sent"
                                      : "remove message " + std::string(run.id) + " from " + std::string(run.queue)) +
      ", if it is still ours\n");
  return text;
}

std::size_t actions_of(const DryRun& run, const Effects& effects) {
  // A result without a key to keep it by is not written.
  return queue::effect_actions(effects) - (effects.key ? 1 : 0) + (run.keeps_key ? 1 : 0);
}

const Effects& effects_of(const DryRun& run) {
  static const Effects kNone;
  return run.outcome.effects ? *run.outcome.effects : kNone;
}

/// Text that is JSON already.
auto raw(const std::string& text) {
  return [&text](JsonWriter& json) { json.raw(text); };
}

void write_item(JsonWriter& json, const ItemWrite& item) {
  json.key(operation(item.action));
  put_object(json, "TableName", item.table, item.action == ItemAction::put ? "Item" : "Key", raw(item.item),
             member_if(!item.update.empty(), "UpdateExpression", item.update),
             member_if(!item.condition.empty(), "ConditionExpression", item.condition),
             member_if(!item.names.empty(), "ExpressionAttributeNames", item.names),
             member_if(!item.values.empty(), "ExpressionAttributeValues", raw(item.values)));
}

void write_value(JsonWriter& json, const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    json.value(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    std::isfinite(*real) ? json.word(real_text(*real)) : json.value(real_text(*real));  // JSON has no infinity
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    json.value(*text);
  } else if (const auto* blob = std::get_if<queue::SqlBlob>(&value)) {
    put_object(json, "base64", base64(blob->bytes));
  } else {
    json.null();
  }
}

void write_effect(JsonWriter& json, const EffectWrite& write) {
  const auto deed = [&write](JsonWriter& members) {
    if (const auto* item = std::get_if<ItemWrite>(&write.write)) {
      return write_item(members, *item);
    }
    const auto& sql = std::get<SqlWrite>(write.write);
    put_members(members, "sql", sql.statement, "parameters", array_of(sql.parameters, write_value),
                member_if(sql.rows.has_value(), "rows", sql.rows));
  };
  put_object(json, member_if(!write.label.empty(), "label", write.label), "on_refusal",
             write.on_refusal == queue::OnRefusal::reject ? "reject" : "retry", deed);
}

void write_message(JsonWriter& json, const EmittedMessage& emitted) {
  const queue::NewMessage& message = emitted.message;
  put_object(json, "queue", emitted.queue, "id", message.id, "body", message.body, "content_type", message.content_type,
             "group", message.group, "delay", config::format_duration(message.delay), "priority",
             to_string(message.priority), "dedup_id", message.dedup_id, "attributes", message.attributes);
}

}  // namespace

std::string refused_sends(const config::HostConfig& host, runtime::HostQueues* queues, const std::string& queue,
                          const plugin::Outcome& outcome) {
  if (!outcome.effects) {
    return {};
  }
  const Deadline deadline = Deadline::after(SystemClock(), std::chrono::seconds(30));
  for (const queue::EmittedMessage& emitted : outcome.effects->messages) {
    auto why = runtime::beyond_store(host, queue, emitted.queue);
    if (!why && queues != nullptr) {
      why = queues->unknown_to_handlers(emitted.queue, deadline);
    }
    if (why) {
      return "message " + emitted.message.id + " to queue " + emitted.queue + ": " + why->message();
    }
  }
  return {};
}

std::string dry_run_text(const DryRun& run) {
  const plugin::Outcome& outcome = run.outcome;
  const std::string text = "message " + visible(run.id) + " of " + std::string(run.queue) + ", job " +
                           std::string(run.job) + ": " + std::string(queue::core::rule_of(outcome.status).name) +
                           (outcome.delay ? " after " + config::format_duration(*outcome.delay) : "") +
                           (outcome.reason.empty() ? "" : ": " + visible(outcome.reason)) + "\n";
  return text + transaction_text(run);
}

std::string transaction_text(const DryRun& run) {
  if (run.outcome.status != plugin::OutcomeStatus::done) {
    return "nothing would be committed with it\n";
  }
  const Effects& effects = effects_of(run);
  const char* const how = run.store == SLUICE_STORE_SQLITE     ? "one transaction in SQLite"
                          : run.store == SLUICE_STORE_DYNAMODB ? "one transaction in DynamoDB"
                                                               : "one after the other, at least once";
  return std::string(how) + ", " + std::to_string(actions_of(run, effects)) + " of at most " +
         std::to_string(queue::kMostEffects) + " actions:\n" + actions_text(run, effects) +
         (run.refused.empty() ? "" : "it would be refused: " + visible(run.refused) + "\n");
}

void write_transaction(const DryRun& run, JsonWriter& json) {
  if (run.outcome.status != plugin::OutcomeStatus::done) {
    return json.null();
  }
  const Effects& effects = effects_of(run);
  const char* const store = run.store == SLUICE_STORE_SQLITE     ? "sqlite"
                            : run.store == SLUICE_STORE_DYNAMODB ? "dynamodb"
                                                                 : "none";
  put_object(json, "store", store, "actions", actions_of(run, effects), "messages",
             array_of(effects.messages, write_message), "writes", array_of(effects.writes, write_effect),
             "remembers_key", run.keeps_key, "result", result_of(run), "remove", run.id, "refused",
             or_null(!run.refused.empty(), run.refused));
}

void write_dry_run(const DryRun& run, JsonWriter& json) {
  const plugin::Outcome& outcome = run.outcome;
  put_object(json, "job", run.job, "queue", run.queue, "id", run.id, "outcome",
             queue::core::rule_of(outcome.status).name, "reason", outcome.reason, "delay",
             or_null(outcome.delay.has_value(), config::format_duration(outcome.delay.value_or(Duration::zero()))),
             "transaction", [&run](JsonWriter& member) { write_transaction(run, member); });
}

}  // namespace sluice::cli
