#include "host/cli/message_template.hpp"

#include <optional>
#include <utility>

#include "base/text/json_check.hpp"
#include "base/text/json_pointer.hpp"
#include "base/text/utf8.hpp"
#include "config/config.hpp"
#include "host/queue/message.hpp"

namespace sluice::cli {

namespace {

Exit read_attributes(const Arguments& arguments, queue::Attributes& attributes) {
  for (const std::string& pair : arguments.all("attr")) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Exit::usage("--attr " + pair + ": write --attr name=value");
    }
    const std::string name = pair.substr(0, equals);
    if (!attributes.emplace(name, pair.substr(equals + 1)).second) {
      return Exit::usage("--attr " + name + " is given twice; give each name once");
    }
  }
  return Exit::ok();
}

constexpr std::string_view kFromBody = "body:";

/// The JSON pointer to a member of the body itself.
std::string pointer_to(const std::string& member) {
  std::string pointer = "/";
  for (const char c : member) {
    pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

/// A key as it is given: its own text, or "body:" and the member or JSON pointer at which each body has it.
Exit read_key(const Arguments& arguments, const std::string& flag, std::string& key, std::string& pointer) {
  if (!arguments.has(flag)) {
    return Exit::ok();
  }
  const std::string given = arguments.get(flag);
  if (given.empty()) {
    return Exit::usage("--" + flag + " is empty; leave it out, or name something");
  }
  if (given.starts_with(kFromBody)) {
    const std::string where = given.substr(kFromBody.size());
    if (where.empty()) {
      return Exit::usage("--" + flag + " " + given +
                         ": after body: comes a member of the body or a JSON pointer, as in body:order_id or "
                         "body:/order/id");
    }
    pointer = where.front() == '/' ? where : pointer_to(where);
    return Exit::ok();
  }
  if (arguments.reads_stdin()) {
    return Exit::usage("--" + flag + " " + given +
                       " would make all lines but one duplicates; take it from each line, " + "as in --" + flag +
                       " body:order_id");
  }
  key = given;
  return Exit::ok();
}

Exit read_window(const Arguments& arguments, queue::NewMessage& shared) {
  if (!arguments.has("dedup-window")) {
    return Exit::ok();
  }
  const auto window = config::parse_duration(arguments.get("dedup-window"));
  if (!window || *window < queue::kLeastDedupWindow || *window > queue::kLongestDedupWindow) {
    return Exit::usage("--dedup-window " + arguments.get("dedup-window") +
                       " is no duration from 1s to 366d; write 30s, 15m, 2h or 1d");
  }
  shared.dedup_window = *window;
  return Exit::ok();
}

Exit read_unique(const Arguments& arguments, queue::NewMessage& shared) {
  if (!arguments.has("unique")) {
    return Exit::ok();
  }
  const std::string until = arguments.get("unique");
  if (until != "while-queued" && until != "until-done") {
    return Exit::usage("--unique " + until + ": write while-queued or until-done");
  }
  if (!arguments.has("unique-key")) {
    return Exit::usage("--unique goes with --unique-key; say by what the message is unique");
  }
  shared.unique_until = until == "while-queued" ? queue::UniqueUntil::claimed : queue::UniqueUntil::done;
  return Exit::ok();
}

/// What a JSON body has at that place, as text; nothing where it has no text, number or truth value there.
std::optional<std::string> value_at(const std::string& body, const std::string& pointer) {
  auto found = json_problem(body) ? std::nullopt : json_at(body, pointer);
  return found && !found->text.empty() ? std::optional(std::move(found->text)) : std::nullopt;
}

}  // namespace

OrExit<MessageTemplate> MessageTemplate::from(const Arguments& arguments) {
  MessageTemplate made;
  if (Exit wrong = read_attributes(arguments, made.shared_.attributes); wrong.code() != kExitOk) {
    return wrong;
  }
  if (arguments.has("delay")) {
    const auto delay = config::parse_duration(arguments.get("delay"));
    if (!delay) {
      return Exit::usage("--delay " + arguments.get("delay") + " is no duration; write 1500ms, 30s, 15m, 2h or 1d");
    }
    made.shared_.delay = *delay;
  }
  for (Exit wrong : {read_key(arguments, "dedup-id", made.shared_.dedup_id, made.dedup_from_),
                     read_key(arguments, "unique-key", made.shared_.unique_key, made.unique_from_),
                     read_window(arguments, made.shared_), read_unique(arguments, made.shared_)}) {
    if (wrong.code() != kExitOk) {
      return wrong;
    }
  }
  made.shared_.group = arguments.get("group");
  if (arguments.has("priority")) {
    const auto priority = queue::priority_named(arguments.get("priority"));
    if (!priority) {
      return Exit::usage("--priority " + arguments.get("priority") +
                         " is no priority; write critical, high, normal or low");
    }
    made.shared_.priority = *priority;
  }
  made.content_type_ = arguments.get("content-type");
  return made;
}

queue::NewMessage MessageTemplate::make(std::string body, std::string_view content_type) const {
  queue::NewMessage message = shared_;
  message.body = std::move(body);
  message.content_type = content_type_.empty() ? content_type : content_type_;
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_json(std::string_view json) {
  const std::string_view text = json_trimmed(json);
  if (const auto problem = json_problem(text)) {
    return Error(ErrorCode::invalid, *problem);
  }
  if (text.front() == '"') {
    return keyed(make(*json_string(text), queue::kTextPlain));
  }
  return keyed(make(std::string(text), queue::kJson));
}

Result<queue::NewMessage> MessageTemplate::keyed(queue::NewMessage message) const {
  if (dedup_from_.empty() && unique_from_.empty()) {
    return message;
  }
  for (const auto& [pointer, key] :
       {std::pair(&dedup_from_, &message.dedup_id), {&unique_from_, &message.unique_key}}) {
    if (pointer->empty()) {
      continue;
    }
    auto found = value_at(message.body, *pointer);
    if (!found || found->empty()) {
      return Error(ErrorCode::invalid,
                   "the body has no text or number at " + *pointer + ", where its key is taken from");
    }
    *key = std::move(*found);
  }
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_text(std::string text) const {
  return keyed(make(std::move(text), queue::kTextPlain));
}

Result<queue::NewMessage> MessageTemplate::from_file(const std::string& name, std::string bytes) {
  constexpr std::string_view kSuffix = ".json";
  const bool named_json = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  if (named_json && !json_problem(json_trimmed(bytes))) {
    return keyed(make(std::string(json_trimmed(bytes)), queue::kJson));
  }
  const auto type = is_utf8(bytes) ? queue::kTextPlain : queue::kOctetStream;
  return keyed(make(std::move(bytes), type));
}

}  // namespace sluice::cli
