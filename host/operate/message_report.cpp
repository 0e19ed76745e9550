#include "host/operate/message_report.hpp"

#include <algorithm>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/timestamp.hpp"
#include "host/operate/record_json.hpp"

namespace sluice::operate {

namespace {

constexpr Column kId = names("ID", 24);  // what else there is to tell is more than the middle of an id
constexpr Column kError = prose("ERROR", 33, 1);

Colour colour_of(queue::MessageState state) {
  return state == queue::MessageState::ready       ? Colour::green
         : state == queue::MessageState::in_flight ? Colour::yellow
                                                   : Colour::dim;
}

std::string ago(WallTime time, WallTime now) {
  return time > now ? "in " + short_duration(time - now) : short_duration(now - time) + " ago";
}

/// "250ms", and from a second on whole seconds or more.
std::string span_text(Duration span) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
  return span < std::chrono::seconds(1) ? std::to_string(count) + "ms" : short_duration(span);
}

std::string when(WallTime time, WallTime now) { return format_timestamp(time) + " (" + ago(time, now) + ")"; }

/// ", took 2s, to be tried again after 30s", as far as it is known.
std::string spans_text(Duration wait, Duration took) {
  std::string text = took > Duration::zero() ? ", took " + span_text(took) : std::string();
  return wait > Duration::zero() ? text + ", tried again after " + span_text(wait) : text;
}

void describe_state(const queue::StoredMessage& stored, Fields& fields) {
  const queue::MessageState state = stored.state(fields.now());
  fields.text("state", {.title = "STATE", .spare = 1}, to_string(state), colour_of(state));
}

/// As the record has it, where that is no time.
void describe_time(std::string_view key, std::string_view title, const queue::StoredMessage& stored,
                   const std::optional<WallTime>& time, Fields& fields) {
  const auto odd = stored.odd.find(key);
  if (odd != stored.odd.end() || time) {
    fields.cell({title}, odd != stored.odd.end() ? odd->second : when(*time, fields.now()));
  }
}

/// What people see of a failure.
void describe_failure(const queue::Failure& failure, Fields& fields) {
  fields.cell(kError, {failure.error, Colour::red});
  fields.cell({"ATTEMPTS"}, failure.attempts == 0 ? std::string() : std::to_string(failure.attempts));
  fields.cell({"HANDLER"}, failure.handler);
  fields.cell({"HOST"}, failure.host);
  if (failure.failed_at != WallTime{}) {
    fields.cell({"FAILED"}, when(failure.failed_at, fields.now()) + spans_text(failure.wait, failure.took));
  }
  for (const queue::FailedAttempt& attempt : failure.earlier) {
    fields.cell({"BEFORE"}, "attempt " + std::to_string(attempt.attempt) + " on " + attempt.host + ", " +
                                ago(attempt.failed_at, fields.now()) + spans_text(attempt.wait, attempt.took) + ": " +
                                attempt.error);
  }
}

/// Some stores do not know it.
void describe_failed_at(std::string_view key, const Column& column, WallTime time, Fields& fields) {
  if (time == WallTime{}) {
    fields.member(key, std::string_view());
    fields.cell(column, {"?"});
    return;
  }
  fields.member(key, time);
  fields.cell(column, short_duration(fields.now() - time));
}

std::string bytes_text(std::size_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

/// "[2, 0, 0]", on one line even where everything else has lines of its own.
template <std::size_t size>
std::string listed(const std::array<std::uint64_t, size>& counts) {
  return "[" + joined(mapped(counts, [](std::uint64_t count) { return std::to_string(count); })) + "]";
}

/// "billing" or, where there are others, "billing +2".
std::string most_frequent(const std::map<std::string, std::uint64_t>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) {
    return "-";
  }
  return most->first + (counts.size() > 1 ? " +" + std::to_string(counts.size() - 1) : "");
}

}  // namespace

std::string half_text(const queue::StoredMessage& message) {
  const auto odd = message.odd.find("queue_type");
  return odd == message.odd.end() ? std::string(queue::to_string(message.half)) : odd->second;
}

void describe(const ListedMessage& listed, Fields& fields) {
  const queue::StoredMessage& stored = listed.stored;
  fields.text("id", kId, stored.message.id);
  fields.text("queue_type", {"HALF"}, half_text(stored));
  describe_state(stored, fields);
  fields.number("receive_count", figures("RECEIVES", 3), receives_of(stored));
  fields.member("version", stored.version);
  if (JsonWriter* const json = fields.json()) {
    return write_last_members(*json, stored);
  }
  fields.cell(figures("AGE", 2),
              stored.created_at == WallTime{} ? "?" : short_duration(fields.now() - stored.created_at));
  fields.cell(kError, {stored.failure.error, Colour::red});
}

void describe(const queue::StoredMessage& stored, Fields& fields) {
  if (JsonWriter* const json = fields.json()) {
    return write_members(*json, stored, fields.now());
  }
  const queue::Message& message = stored.message;
  fields.cell(kId, message.id);
  describe_state(stored, fields);
  fields.cell({"HALF"}, half_text(stored));
  fields.number({}, figures("RECEIVES"), receives_of(stored));
  fields.number({}, figures("VERSION"), stored.version);
  describe_time("created_at", "CREATED", stored, stored.created_at, fields);
  describe_time("updated_at", "UPDATED", stored, stored.updated_at, fields);
  describe_time("sent_at", "SENT", stored, message.sent_at, fields);
  describe_time("received_at", "RECEIVED", stored, stored.received_at, fields);
  const bool over = stored.invisible_until && *stored.invisible_until < fields.now();
  describe_time("invisible_until_at", "HIDDEN UNTIL", stored, over ? std::nullopt : stored.invisible_until, fields);
  if (!message.group.empty()) {
    fields.cell({"GROUP"}, message.group);
  }
  if (message.priority != queue::Priority::normal) {
    fields.text({}, {"PRIORITY"}, to_string(message.priority));
  }
  for (const auto& [name, value] : message.attributes) {
    fields.cell({"ATTRIBUTE"}, name + " = " + value);
  }
  if (!stored.failure.empty()) {
    describe_failure(stored.failure, fields);
  }
  if (!message.checkpoint.empty()) {
    fields.cell({"CHECKPOINT"}, bytes_text(message.checkpoint.size()));
  }
  fields.cell({"CONTENT TYPE"}, message.content_type + ", " + bytes_text(message.body.size()));
}

void describe(const queue::ErrorGroup& group, Fields& fields) {
  fields.member("error", group.error);
  fields.number("count", figures("COUNT"), group.count);
  fields.text("example_id", {.title = "EXAMPLE", .spare = 4}, group.example);
  describe_failed_at("last_failed_at", figures("LAST"), group.last_failed_at, fields);
  describe_failed_at("first_failed_at", figures("FIRST", 1), group.first_failed_at, fields);
  fields.text("fingerprint", {"CAUSE"}, group.fingerprint);
  fields.member("pattern", group.pattern);
  fields.cell(prose("ERROR", 36), {group.count == 1 ? group.error : group.pattern, Colour::red});
  if (JsonWriter* const json = fields.json()) {
    json->key("per_hour");
    json->word(listed(group.per_hour));
  }
  fields.cell(figures("LAST HOUR"), std::to_string(group.per_hour.front()));
  fields.member("handlers", group.handlers);
  fields.cell(names("HANDLER", 12, 2), most_frequent(group.handlers));
  fields.member("hosts", group.hosts);
  fields.cell(names("HOST", 12, 3), most_frequent(group.hosts));
}

}  // namespace sluice::operate
