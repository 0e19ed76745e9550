#include "host/runtime/control_protocol.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"

namespace sluice::runtime {
namespace {

constexpr std::size_t kDeepest = 16;
constexpr std::array kVerbs{ControlVerb::about, ControlVerb::look, ControlVerb::reload, ControlVerb::drain,
                            ControlVerb::cancel_running};

Error unreadable(std::string_view what, const JsonReader& reader) {
  return Error(ErrorCode::invalid, std::string(what) + " is not one line of JSON as it should be: " + reader.reason());
}

JsonReader reader_of(std::string_view line) { return {line, kDeepest, JsonReader::BadText::replace}; }

bool read_verb(JsonReader& reader, ControlVerb& verb) {
  std::string name;
  if (!reader.read_string(name)) {
    return false;
  }
  const auto found =
      std::find_if(kVerbs.begin(), kVerbs.end(), [&name](ControlVerb known) { return to_string(known) == name; });
  if (found == kVerbs.end()) {
    return reader.fail("there is no command \"" + name.substr(0, 40) + "\"");
  }
  verb = *found;
  return true;
}

bool read_status(JsonReader& reader, int& status) {
  std::string_view text;
  if (!reader.read_number(text)) {
    return false;
  }
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), status);
  return (failed == std::errc() && end == text.data() + text.size()) || reader.fail("a status is a whole number");
}

bool read_ending(JsonReader& reader, ControlEnding& ending) {
  std::string_view name;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    good = name == "status"        ? read_status(reader, ending.status)
           : name == "certificate" ? reader.read_string(ending.certificate)
                                   : reader.skip();
  }
  return good && !reader.failed();
}

void append_member(std::string& text, std::string_view name, std::string_view value) {
  if (!value.empty()) {
    text += ",\"" + std::string(name) + "\":";
    append_json_string(text, value);
  }
}

}  // namespace

std::string_view to_string(ControlVerb verb) {
  switch (verb) {
    case ControlVerb::about:
      return "about";
    case ControlVerb::look:
      return "look";
    case ControlVerb::reload:
      return "reload";
    case ControlVerb::drain:
      return "drain";
    case ControlVerb::cancel_running:
      return "cancel_running";
  }
  return {};
}

std::string encode(const ControlRequest& request) {
  std::string text = "{\"command\":\"" + std::string(to_string(request.verb)) + "\"";
  append_member(text, "message", request.message);
  return text + (request.wait ? ",\"wait\":true}" : "}");
}

Result<ControlRequest> decode_request(std::string_view line) {
  ControlRequest request;
  JsonReader reader = reader_of(line);
  std::string_view name;
  bool named = false;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    if (name == "command") {
      named = true;
      good = read_verb(reader, request.verb);
    } else {
      good = name == "message" ? reader.read_string(request.message)
             : name == "wait"  ? reader.read_bool(request.wait)
                               : reader.skip();
    }
  }
  if (good && !reader.failed() && !named) {
    reader.fail("\"command\" is missing");
  }
  if (!reader.finish() || reader.failed()) {
    return unreadable("the request", reader);
  }
  return request;
}

std::string encode(const ControlAnswer& answer) {
  std::string text = answer.error.empty() ? "{\"ok\":true" : "{\"ok\":false";
  append_member(text, "error", answer.error);
  append_member(text, "text", answer.text);
  if (!answer.record.empty()) {
    text += ",\"host\":" + answer.record;
  }
  if (answer.ending) {
    text += ",\"ended\":{\"status\":" + std::to_string(answer.ending->status);
    append_member(text, "certificate", answer.ending->certificate);
    text += '}';
  }
  return text + '}';
}

Result<ControlAnswer> decode_answer(std::string_view line) {
  ControlAnswer answer;
  JsonReader reader = reader_of(line);
  std::string_view name;
  bool done = false;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    if (name == "ended") {
      good = read_ending(reader, answer.ending.emplace());
    } else if (name == "host") {
      std::string_view record;
      good = reader.read_raw(record);
      answer.record = record;
    } else {
      good = name == "ok"      ? reader.read_bool(done)
             : name == "error" ? reader.read_string(answer.error)
             : name == "text"  ? reader.read_string(answer.text)
                               : reader.skip();
    }
  }
  if (good && !reader.failed() && !done && answer.error.empty()) {
    reader.fail("it says neither that it is done nor why not");
  }
  if (!reader.finish() || reader.failed()) {
    return unreadable("the host's answer", reader);
  }
  return answer;
}

}  // namespace sluice::runtime
