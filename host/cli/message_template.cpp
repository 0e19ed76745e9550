#include "host/cli/message_template.hpp"

#include <utility>

#include "base/text/json_check.hpp"
#include "base/text/utf8.hpp"
#include "config/config.hpp"

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
  made.shared_.group = arguments.get("group");
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
    return make(*json_string(text), queue::kTextPlain);
  }
  return make(std::string(text), queue::kJson);
}

queue::NewMessage MessageTemplate::from_text(std::string text) const {
  return make(std::move(text), queue::kTextPlain);
}

queue::NewMessage MessageTemplate::from_file(const std::string& name, std::string bytes) {
  constexpr std::string_view kSuffix = ".json";
  const bool named_json = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  if (named_json && !json_problem(json_trimmed(bytes))) {
    return make(std::string(json_trimmed(bytes)), queue::kJson);
  }
  const auto type = is_utf8(bytes) ? queue::kTextPlain : queue::kOctetStream;
  return make(std::move(bytes), type);
}

}  // namespace sluice::cli
