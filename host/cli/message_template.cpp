#include "host/cli/message_template.hpp"

#include <utility>

#include "config/config.hpp"
#include "host/queue/message.hpp"

namespace sluice::cli {

namespace {

OrExit<void> read_attributes(const Arguments& arguments, queue::Attributes& attributes) {
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
  return {};
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
OrExit<void> read_key(const Arguments& arguments, const std::string& flag, std::string& key, std::string& pointer) {
  if (!arguments.has(flag)) {
    return {};
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
    return {};
  }
  if (arguments.reads_stdin()) {
    return Exit::usage("--" + flag + " " + given +
                       " would make all lines but one duplicates; take it from each line, " + "as in --" + flag +
                       " body:order_id");
  }
  key = given;
  return {};
}

OrExit<void> read_window(const Arguments& arguments, queue::NewMessage& shared) {
  if (!arguments.has("dedup-window")) {
    return {};
  }
  const auto window = config::parse_duration(arguments.get("dedup-window"));
  if (!window || *window < queue::kLeastDedupWindow || *window > queue::kLongestDedupWindow) {
    return Exit::usage("--dedup-window " + arguments.get("dedup-window") +
                       " is no duration from 1s to 366d; write 30s, 15m, 2h or 1d");
  }
  shared.dedup_window = *window;
  return {};
}

OrExit<void> read_unique(const Arguments& arguments, queue::NewMessage& shared) {
  if (!arguments.has("unique")) {
    return {};
  }
  const std::string until = arguments.get("unique");
  if (until != "while-queued" && until != "until-done") {
    return Exit::usage("--unique " + until + ": write while-queued or until-done");
  }
  if (!arguments.has("unique-key")) {
    return Exit::usage("--unique goes with --unique-key; say by what the message is unique");
  }
  shared.unique_until = until == "while-queued" ? queue::UniqueUntil::claimed : queue::UniqueUntil::done;
  return {};
}

}  // namespace

OrExit<operate::MessageTemplate> read_template(const Arguments& arguments) {
  operate::MessageTemplate made;
  queue::NewMessage& shared = made.shared;
  SLUICE_PASS_ON(read_attributes(arguments, shared.attributes));
  SLUICE_TRY(delay, arguments.duration("delay", shared.delay));
  shared.delay = *delay;
  SLUICE_PASS_ON(read_key(arguments, "dedup-id", shared.dedup_id, made.dedup_from));
  SLUICE_PASS_ON(read_key(arguments, "unique-key", shared.unique_key, made.unique_from));
  SLUICE_PASS_ON(read_window(arguments, shared));
  SLUICE_PASS_ON(read_unique(arguments, shared));
  shared.group = arguments.get("group");
  if (arguments.has("priority")) {
    const auto priority = queue::priority_named(arguments.get("priority"));
    if (!priority) {
      return Exit::usage("--priority " + arguments.get("priority") +
                         " is no priority; write critical, high, normal or low");
    }
    shared.priority = *priority;
  }
  made.content_type = arguments.get("content-type");
  return made;
}

}  // namespace sluice::cli
