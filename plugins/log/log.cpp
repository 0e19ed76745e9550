// Prints messages to the host's log.

#include <algorithm>
#include <array>
#include <boost/locale/utf.hpp>
#include <chrono>
#include <cstdio>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "publishing/publishing.hpp"

namespace {

constexpr std::array<std::string_view, 8> kFields{"id",           "queue", "attempt", "sent_at",
                                                  "content_type", "group", "size",    "body"};

std::vector<std::string> known_fields(std::vector<std::string> fields) {
  for (const std::string& field : fields) {
    if (std::find(kFields.begin(), kFields.end(), field) == kFields.end()) {
      publishing::refuse("fields", "may hold " + publishing::quoted(kFields) + "; it has \"" + field + "\"");
    }
  }
  return fields;
}

/// One line for a person: control characters and bytes that are not UTF-8 as "\n", "\t" or "\x1b"; at most `limit`
/// bytes of the text, and then how many there are.
std::string printable(std::string_view text, std::size_t limit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string line;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const char* const start = at;
    const auto point = boost::locale::utf::utf_traits<char>::decode(at, end);
    const bool good = boost::locale::utf::is_valid_codepoint(point);
    at = good ? at : start + 1;
    if (static_cast<std::size_t>(at - text.data()) > limit) {
      return line + "... (" + std::to_string(text.size()) + " bytes)";
    }
    const auto byte = static_cast<unsigned char>(*start);
    if (good && point >= 0x20 && point != 0x7f) {
      line.append(start, at);
    } else if (byte == '\n' || byte == '\t' || byte == '\r') {
      line += byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : "\\r";
    } else {
      line += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return line;
}

/// 2026-11-20T23:14:00.906Z
std::string utc(std::chrono::sys_time<std::chrono::nanoseconds> time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text.data();
}

class Log {
 public:
  static constexpr const char* help = "Prints each message to the host's log.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("level", "info", "At which level: trace, debug, info, warn or error."),
      sluice::option<std::vector<std::string>>(
          "fields", R"(["body"])",
          "What to print, in this order: id, queue, attempt, sent_at, content_type, group, size, body."),
      sluice::option<bool>("attributes", "false", "Whether to print the attributes, in front of the body."),
      sluice::option<std::int64_t>("body_limit", "1024", "At most so many bytes of the body, from 0 to 65536."),
  };

  explicit Log(const sluice::Options& values)
      : level_(*publishing::log_level(values, "level", false)),
        fields_(known_fields(values.list("fields"))),
        attributes_(values.get<bool>("attributes")),
        body_limit_(static_cast<std::size_t>(publishing::number_in(values, "body_limit", 0, 65536))) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    std::string line;
    bool attributes_left = attributes_;
    for (const std::string& field : fields_) {
      if (field == "body" && attributes_left) {
        append_attributes(line, message);
        attributes_left = false;
      }
      append(line, field, value(message, field));
    }
    if (attributes_left) {
      append_attributes(line, message);
    }
    context.log(level_, line);
    return sluice::done();
  }

 private:
  static constexpr std::size_t kValueLimit = 1024;

  /// A body that is printed alone needs no name.
  void append(std::string& line, std::string_view name, const std::string& text) const {
    line += line.empty() ? "" : " ";
    if (fields_.size() > 1 || attributes_) {
      line += std::string(name) + "=";
    }
    line += text;
  }

  static void append_attributes(std::string& line, const sluice::Message& message) {
    for (const auto [name, value] : message.attributes()) {
      line += (line.empty() ? "" : " ") + printable(name, kValueLimit) + "=" + printable(value, kValueLimit);
    }
  }

  std::string value(const sluice::Message& message, std::string_view field) const {
    if (field == "id") return printable(message.id(), kValueLimit);
    if (field == "queue") return printable(message.queue(), kValueLimit);
    if (field == "attempt") return std::to_string(message.attempt());
    if (field == "sent_at") return utc(message.sent_at());
    if (field == "content_type") return printable(message.content_type(), kValueLimit);
    if (field == "group") return printable(message.group(), kValueLimit);
    if (field == "size") return std::to_string(message.body().size());
    return printable(message.body(), body_limit_);
  }

  sluice_log_level level_;
  std::vector<std::string> fields_;
  bool attributes_;
  std::size_t body_limit_;
};

}  // namespace

SLUICE_PLUGIN("log", "1.0.0", Log)
