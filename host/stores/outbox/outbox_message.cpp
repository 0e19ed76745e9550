#include "host/stores/outbox/outbox_message.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice::queue::outbox {

Message message_of(Row&& row, const std::string& producer, WallTime now) {
  Message message;
  message.id = std::to_string(row.id);
  message.body = std::move(row.payload);
  message.content_type = kJson;
  message.attributes = std::move(row.attributes);
  message.attributes["event"] = std::move(row.event);
  message.attributes["aggregate_type"] = std::move(row.group.type);
  message.attributes["aggregate_id"] = row.group.id;
  message.attributes["producer"] = producer;
  message.group = std::move(row.group.id);
  message.attempt = row.retries + 1;
  message.sent_at = row.created_at.value_or(now);
  return message;
}

std::optional<std::int64_t> id_of(const std::string& message_id) {
  std::int64_t id = 0;
  const char* const end = message_id.data() + message_id.size();
  const auto [rest, code] = std::from_chars(message_id.data(), end, id);
  return code == std::errc() && rest == end ? std::optional(id) : std::nullopt;
}

std::optional<Mark> mark_of(const Completion& completion, std::int64_t id, std::uint32_t retry_limit) {
  // A receipt's version is the retry_count that the row was handed out with.
  const auto tried = static_cast<std::uint32_t>(completion.receipt.version) + 1;
  switch (completion.action) {
    case CompletionAction::remove:
      return Mark{.id = id, .kind = MarkKind::sent};
    case CompletionAction::retry:
      return Mark{.id = id,
                  .kind = MarkKind::retry,
                  .retries = tried,
                  .wait = completion.delay,
                  .error = completion.failure.error};
    case CompletionAction::dead_letter:
      return Mark{
          .id = id, .kind = MarkKind::dead, .retries = std::max(tried, retry_limit), .error = completion.failure.error};
    case CompletionAction::release:
      break;
  }
  return std::nullopt;
}

Fate fate_of(const Completion& completion) {
  switch (completion.action) {
    case CompletionAction::remove:
      return {Fate::Kind::sent};
    case CompletionAction::dead_letter:
      return {Fate::Kind::dead};
    case CompletionAction::retry:
    case CompletionAction::release:
      break;
  }
  return {Fate::Kind::put_back, completion.delay};
}

}  // namespace sluice::queue::outbox
