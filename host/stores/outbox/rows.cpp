#include "host/stores/outbox/rows.hpp"

#include <algorithm>
#include <utility>

#include "base/text/number.hpp"
#include "base/text/utf8.hpp"

namespace sluice::queue::outbox {

Origin origin_of(const std::string& producer, const SourceId& source) {
  if (producer.empty()) {
    return {source.id, source.id};
  }
  return {producer, source.doubt.empty() ? source.id : std::string()};
}

Message message_of(Row&& row, const Origin& origin, WallTime now) {
  Message message;
  message.id = to_string(row.key());
  message.body = std::move(row.payload);
  message.content_type = row.tombstone ? kTextPlain : kJson;
  message.attributes = std::move(row.attributes);
  message.attributes["event"] = std::move(row.event);
  message.attributes["aggregate_type"] = std::move(row.group.type);
  message.attributes["aggregate_id"] = row.group.id;
  message.attributes["producer"] = origin.producer;
  if (row.tombstone) {
    message.attributes["tombstone"] = "true";
  }
  if (!origin.source_id.empty()) {
    message.attributes["source_id"] = origin.source_id;
  }
  message.group = std::move(row.group.id);
  message.attempt = row.retries + 1;
  message.sent_at = row.created_at.value_or(now);
  return message;
}

std::string to_string(const RowKey& key) {
  if (!key.text.empty()) {
    return key.text;
  }
  const std::string id = std::to_string(key.id);
  return key.part == RowKey::kWhole ? id : std::to_string(key.part) + "/" + id;
}

std::optional<RowKey> row_key_of(std::string_view text, bool texts) {
  if (texts) {
    return text.empty() ? std::nullopt : std::optional(RowKey{.text = std::string(text)});
  }
  const auto slash = text.find('/');
  const auto id = parse_number<std::int64_t>(slash == std::string_view::npos ? text : text.substr(slash + 1));
  const auto part = slash == std::string_view::npos ? std::optional(RowKey::kWhole)
                                                    : parse_number<std::uint32_t>(text.substr(0, slash));
  return id && part ? std::optional(RowKey{*id, *part}) : std::nullopt;
}

std::string cursor_of(const RowKey& key) {
  return key.text.empty() ? to_string(key) : std::to_string(key.id) + "/" + key.text;
}

std::optional<RowKey> key_of_cursor(std::string_view cursor, bool texts) {
  if (!texts) {
    return row_key_of(cursor);
  }
  const auto slash = std::min(cursor.find('/'), cursor.size());
  const auto place = parse_number<std::int64_t>(cursor.substr(0, slash));
  auto key = row_key_of(cursor.substr(std::min(slash + 1, cursor.size())), true);
  if (!place || !key) {
    return std::nullopt;
  }
  key->id = *place;
  return key;
}

std::string reason_of(std::string_view error) {
  std::string reason = clean_utf8(error, kLongestReason, "?");
  std::replace(reason.begin(), reason.end(), '\0', '?');  // PostgreSQL has no text with it
  return reason;
}

using Value = RowEdit::Value;

RowEdit sent_mark(const RowKey& key) { return {.key = key, .sent = true, .reason = Value::clear}; }

RowEdit retry_mark(const RowKey& key, std::uint32_t retries, Duration wait, std::string error) {
  RowEdit mark = dead_mark(key, retries, std::move(error));
  mark.gives_up = false;
  mark.due = Value::set;
  mark.after = wait;
  return mark;
}

RowEdit dead_mark(const RowKey& key, std::uint32_t retries, std::string error) {
  return {.key = key,
          .gives_up = true,
          .tries = Value::set,
          .retries = retries,
          .due = Value::clear,
          .reason = error.empty() ? Value::clear : Value::set,
          .error = std::move(error)};
}

std::optional<Error> reason_to_wait(MarkStatus status) {
  switch (status) {
    case MarkStatus::locked:
      return Error(ErrorCode::conflict, "a transaction of the application has the row");
    case MarkStatus::throttled:
      return Error(ErrorCode::throttled, "the database takes no more writes at the moment");
    case MarkStatus::written:
    case MarkStatus::gone:
      break;
  }
  return std::nullopt;
}

std::optional<RowEdit> mark_of(const Completion& completion, const RowKey& key, std::uint32_t retry_limit) {
  // A receipt's version is the retry_count that the row was handed out with.
  const auto tried = static_cast<std::uint32_t>(completion.receipt.version) + 1;
  switch (completion.action) {
    case CompletionAction::remove:
      return sent_mark(key);
    case CompletionAction::retry:
      return retry_mark(key, tried, completion.delay, reason_of(completion.failure.error));
    case CompletionAction::dead_letter:
      return dead_mark(key, std::max(tried, retry_limit), reason_of(completion.failure.error));
    case CompletionAction::release:
    case CompletionAction::keep:  // nobody asks for it (SourceTraits::checkpoints)
      break;
  }
  return std::nullopt;
}

RowEdit edit_of(const RowKey& key, const Change& change, std::uint32_t retry_limit) {
  RowEdit edit{.key = key};
  if (change.version && *change.version > 0) {
    edit.only_if = static_cast<std::uint32_t>(*change.version - 1);
  }
  switch (change.action) {
    case ChangeAction::redrive:
    case ChangeAction::reset:
      edit.dead_only = change.action == ChangeAction::redrive;
      edit.tries = edit.due = edit.reason = Value::clear;
      break;
    case ChangeAction::set_visibility:
    case ChangeAction::delay:
      edit.due = Value::set;
      edit.after = std::max(change.after, Duration::zero());
      break;
    case ChangeAction::dead_letter:
      edit.gives_up = true;
      edit.tries = Value::set;
      edit.retries = retry_limit;
      edit.at_least = true;
      edit.due = Value::clear;
      edit.error = reason_of(change.failure.error);
      edit.reason = edit.error.empty() ? Value::keep : Value::set;
      break;
    case ChangeAction::remove:
      edit.sent = true;
      break;
    case ChangeAction::move_to_front:
      break;
  }
  return edit;
}

bool takes_effect(const RowEdit& edit, std::uint32_t retries, bool dead) {
  return (dead || !edit.dead_only) && edit.only_if.value_or(retries) == retries;
}

std::optional<std::uint32_t> retries_after(const RowEdit& edit, std::uint32_t retries) {
  switch (edit.tries) {
    case Value::keep:
      return retries;
    case Value::clear:
      return std::nullopt;
    case Value::set:
      break;
  }
  return edit.at_least ? std::max(edit.retries, retries) : edit.retries;
}

}  // namespace sluice::queue::outbox
