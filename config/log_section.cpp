#include "config/log_section.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/plain_reads.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::array<Choice<LogLevel>, 5> kLogLevels{{{"trace", LogLevel::trace},
                                                      {"debug", LogLevel::debug},
                                                      {"info", LogLevel::info},
                                                      {"warn", LogLevel::warn},
                                                      {"error", LogLevel::error}}};
constexpr std::array<Choice<LogFormat>, 2> kLogFormats{{{"text", LogFormat::text}, {"json", LogFormat::json}}};
const std::vector<std::string> kHandlers{"text", "json", "rollbar", "sentry", "datadog"};

const char* url_complaint(const std::string& text) {
  return is_http_url(text, false) ? nullptr : "an address such as \"https://collector.example.com\"";
}

const char* site_complaint(const std::string& text) {
  const bool good = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-';
  });
  return good ? nullptr : "a Datadog site, such as \"datadoghq.com\" or \"datadoghq.eu\"";
}

/// "https://KEY@host[:port][/path]/PROJECT".
const char* dsn_complaint(const std::string& text) {
  constexpr const char* kExpected = "a DSN, \"https://KEY@HOST/PROJECT\", as Sentry shows it";
  const std::size_t scheme = text.find("://");
  const std::size_t at = text.find('@');
  if (scheme == std::string::npos || at == std::string::npos || at < scheme + 4) {
    return kExpected;
  }
  const std::string plain = text.substr(0, scheme + 3) + text.substr(at + 1);
  const std::size_t slash = text.rfind('/');
  const std::string_view key = std::string_view(text).substr(scheme + 3, at - scheme - 3);
  const auto is_word = [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_'; };
  const bool key_is_good = std::all_of(key.begin(), key.end(), [&](char c) { return is_word(c) || c == ':'; });
  const bool project_is_good = slash > at && slash + 1 < text.size() &&
                               std::all_of(text.begin() + static_cast<std::ptrdiff_t>(slash) + 1, text.end(), is_word);
  return is_http_url(plain, true) && key_is_good && project_is_good ? nullptr : kExpected;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

struct Handlers {
  std::vector<std::string> words;
  bool sound = true;  ///< all of them could be read
};

/// Of `handler`, which may be one or a list.
Handlers read_handlers(Section& log, Reader& reader) {
  const Member* member = log.find("handler");
  Handlers read;
  if (member == nullptr) {
    return read;
  }
  const auto take = [&](const Value& value) {
    const auto* text = std::get_if<std::string>(&value.content);
    if (std::holds_alternative<BrokenValue>(value.content)) {
      read.sound = false;
      return;
    }
    const bool known = text != nullptr && std::find(kHandlers.begin(), kHandlers.end(), *text) != kHandlers.end();
    const bool twice = known && has(read.words, *text);
    if (!known) {
      read.sound = false;
      const auto meant = text == nullptr ? std::nullopt : nearest(*text, kHandlers);
      reader.error(value.place, log.naming("handler") +
                                    "must be one, or a list, of \"text\", \"json\", \"rollbar\", \"sentry\" and "
                                    "\"datadog\"; " +
                                    (text == nullptr ? std::string("it has ") + kind_of(value)
                                                     : "it has \"" + abridged(*text) + "\"") +
                                    (meant ? ": did you mean \"" + *meant + "\"?" : ""));
    } else if (twice) {
      reader.error(value.place, log.naming("handler") + "has \"" + *text + "\" twice");
    } else {
      read.words.push_back(*text);
    }
  };
  if (const auto* list = std::get_if<Array>(&member->value.content)) {
    std::for_each(list->begin(), list->end(), take);
  } else {
    take(member->value);
  }
  return read;
}

/// What the senders have in common.
void read_common(Section& section, Reader& reader, LogSender& sender) {
  section.read("level", sender.level, kLogLevels);
  section.read("environment", sender.environment, label_complaint);
  read_texts(section, reader, "tags", sender.tags);
  read_share(section, reader, "sample_rate", sender.sample_rate);
  section.read("ignore", sender.ignore, label_complaint);
}

LogSender read_rollbar(Section& section, Reader& reader) {
  LogSender sender{.kind = SenderKind::rollbar, .endpoint = "https://api.rollbar.com", .environment = "production"};
  read_common(section, reader, sender);
  section.require("token", "give a token with the scope post_server_item, as in token = \"${ROLLBAR_TOKEN}\"");
  read_secret(section, reader, "token", sender.secret, token_complaint);
  read_url(section, reader, "endpoint", sender.endpoint, url_complaint);
  read_flag(section, reader, "send_default_pii", sender.send_default_pii);
  return sender;
}

LogSender read_sentry(Section& section, Reader& reader) {
  LogSender sender{.kind = SenderKind::sentry};
  read_common(section, reader, sender);
  section.require("dsn", "give the project's DSN, as in dsn = \"${SENTRY_DSN}\"");
  read_secret(section, reader, "dsn", sender.secret, dsn_complaint);
  read_flag(section, reader, "send_default_pii", sender.send_default_pii);
  return sender;
}

/// Nothing where no key is given: then it is a format alone.
std::optional<LogSender> read_datadog(Section& section, Reader& reader, HostConfig& config) {
  LogSender sender{.kind = SenderKind::datadog, .level = config.log_level, .service = config.datadog.service};
  read_common(section, reader, sender);
  section.read("service", sender.service, label_complaint);
  read_secret(section, reader, "api_key", sender.secret, token_complaint);
  std::string site = "datadoghq.com";
  section.read("site", site, site_complaint);
  sender.endpoint = "https://http-intake.logs." + site;
  read_url(section, reader, "endpoint", sender.endpoint, url_complaint);
  sender.send_default_pii = true;  // Datadog's own agent sends the host's name with everything
  config.datadog = {sender.service, sender.environment, sender.tags};
  if (section.find("api_key") != nullptr) {
    return sender;
  }
  for (const char* key : {"level", "sample_rate", "ignore", "site", "endpoint"}) {
    if (const Member* member = section.find(key)) {
      reader.error(member->place, section.naming(key) +
                                      "is about what is sent, and without 'api_key' nothing is: lines are written to "
                                      "standard error for Datadog's agent; give the key or leave this out");
    }
  }
  return std::nullopt;
}

/// What stands on standard error, which has one format.
void choose_format(Section& log, Reader& reader, const std::vector<std::string>& handlers, HostConfig& config) {
  const Member* handler = log.find("handler");
  const bool sends = std::any_of(config.log_senders.begin(), config.log_senders.end(),
                                 [](const LogSender& sender) { return sender.kind == SenderKind::datadog; });
  std::vector<std::string> formats;
  for (const std::string& word : handlers) {
    if (word == "text" || word == "json" || (word == "datadog" && !sends)) {
      formats.push_back(word);
    }
  }
  if (formats.size() > 1) {
    reader.error(handler->value.place, log.naming("handler") + "asks for standard error as \"" + formats[0] +
                                           "\" and as \"" + formats[1] + "\"; keep one of them" +
                                           (has(formats, "datadog") ? ", or give [log.datadog] an 'api_key', so that "
                                                                      "lines are sent there instead"
                                                                    : ""));
  }
  if (const Member* format = log.find("format"); format != nullptr && !formats.empty()) {
    reader.error(format->place, log.naming("format") + "stands beside a 'handler' that says it already; leave it out");
  }
  if (!formats.empty()) {
    config.log_format = formats.front() == "text"   ? LogFormat::text
                        : formats.front() == "json" ? LogFormat::json
                                                    : LogFormat::datadog;
  }
}

}  // namespace

void read_log(Section log, Reader& reader, HostConfig& config) {
  log.read("level", config.log_level, kLogLevels);
  log.read("format", config.log_format, kLogFormats);
  const Handlers handlers = read_handlers(log, reader);
  for (const char* kind : {"rollbar", "sentry", "datadog"}) {
    Section section = log.section(kind);
    const bool wanted = has(handlers.words, kind);
    if (section.present() && !wanted && handlers.sound) {
      reader.error(section.place(), section.title() + " is used by nobody: put \"" + kind +
                                        "\" into 'handler' of [log], or take the section away");
    }
    if (!wanted && !section.present()) {
      continue;
    }
    if (std::string_view(kind) == "rollbar") {
      config.log_senders.push_back(read_rollbar(section, reader));
    } else if (std::string_view(kind) == "sentry") {
      config.log_senders.push_back(read_sentry(section, reader));
    } else if (auto sender = read_datadog(section, reader, config)) {
      config.log_senders.push_back(std::move(*sender));
    }
  }
  choose_format(log, reader, handlers.words, config);
}

}  // namespace sluice::config
