#include <algorithm>

#include "host/cli/convert/conversion.hpp"
#include "host/cli/convert/toml_text.hpp"

namespace sluice::cli::convert {

namespace {

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// debug, info, warn or error; nothing when absent or, with a complaint, another word.
std::optional<std::string> level(Fields& fields, const std::string& path) {
  if (!fields.has(path)) {
    return std::nullopt;
  }
  std::string word = lowered(fields.meaning(path));
  if (word != "debug" && word != "info" && word != "warn" && word != "error") {
    fields.complain(path, "must be a valid value");
    return std::nullopt;
  }
  return word;
}

/// One word, or a list of them.
std::vector<std::string> handlers(Fields& fields) {
  std::vector<std::string> words;
  const std::string one = fields.meaning("logging.handler");
  if (!one.empty()) {
    words.push_back(one);
  } else if (fields.has("logging.handler")) {
    for (const Text& item : fields.list("logging.handler")) {
      words.push_back(item.text);
    }
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto known = {"text", "json", "rollbar", "sentry", "datadog"};
    if (std::find(known.begin(), known.end(), words[i]) == known.end()) {
      fields.complain("logging.handlers." + std::to_string(i), "must be a valid value");
    }
  }
  return words;
}

bool has(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Who it is to the services: outbox-worker took both from [tracking], whether that was enabled or not.
struct Identity {
  std::string service = "outbox-worker";
  std::string environment = "prod";
};

Identity read_identity(Fields& fields) {
  Identity identity;
  if (const auto service = fields.text("tracking.serviceName")) {
    identity.service = service->text;
  }
  if (const auto environment = fields.text("tracking.environment")) {
    identity.environment = environment->text;
  }
  return identity;
}

/// The handlers as a host has them, whose standard error has one format.
std::vector<Text> one_format(Fields& fields, const std::vector<std::string>& words) {
  const char* format = has(words, "datadog") ? "datadog"
                       : has(words, "json")  ? "json"
                       : has(words, "text")  ? "text"
                                             : nullptr;
  std::vector<Text> kept;
  for (const std::string& word : words) {
    const bool is_format = word == "text" || word == "json" || word == "datadog";
    if (!is_format || word == format) {
      kept.push_back({word, false});
    } else {
      fields.remark("logging.handler", word + " left out: standard error has one format, which is " + format);
    }
  }
  return kept;
}

void write_rollbar(Fields& fields, const Identity& identity, TomlText& host) {
  if (!fields.has("logging.rollbar")) {
    fields.complain("logging.rollbar", "is required");
    return;
  }
  host.table("log.rollbar");
  if (const auto token = fields.text("logging.rollbar.token", true)) {
    host.string("token", token->text);
  }
  host.string("level", level(fields, "logging.rollbar.level").value_or("warn"));
  host.string("environment", identity.environment);
}

void write_sentry(Fields& fields, const Identity& identity, TomlText& host) {
  if (!fields.has("logging.sentry")) {
    fields.complain("logging.sentry", "is required");
    return;
  }
  host.table("log.sentry");
  // The program reads dsn, its documentation says DSN.
  const std::string dsn = fields.has("logging.sentry.DSN") ? "logging.sentry.DSN" : "logging.sentry.dsn";
  if (const auto text = fields.text(dsn, true)) {
    host.string("dsn", text->text);
  }
  host.string("level", level(fields, "logging.sentry.level").value_or("warn"));
  host.string("environment", identity.environment);
  if (const auto rate = fields.fraction("logging.sentry.sampleRate")) {
    host.fraction("sample_rate", *rate);
  }
  if (const auto personal = fields.flag("logging.sentry.sendDefaultPII")) {
    host.flag("send_default_pii", *personal);
  }
  if (const auto ignored = fields.list("logging.sentry.ignoreErrors"); !ignored.empty()) {
    host.strings("ignore", ignored);
    fields.remark("logging.sentry.ignoreErrors",
                  "there they were patterns; here lines that contain one of them are not sent");
  }
}

void write_tracking(Fields& fields, const Identity& identity, TomlText& host) {
  if (!fields.flag("tracking.enabled").value_or(false)) {
    fields.leave_out("tracking.agentAddr", "tracking is not enabled");
    return;
  }
  host.table("tracing");
  if (const auto address = fields.text("tracking.agentAddr", true)) {
    host.string("endpoint", address->text);
  }
  host.string("service", identity.service);
  host.string("environment", identity.environment);
}

}  // namespace

void write_observation(Fields& fields, TomlText& host) {
  const Identity identity = read_identity(fields);
  const std::vector<std::string> words = handlers(fields);
  const auto least = level(fields, "logging.level");
  if (least || !words.empty()) {
    host.table("log");
  }
  if (least) {
    host.string("level", *least);
  }
  if (!words.empty()) {
    host.strings("handler", one_format(fields, words));
  }
  if (has(words, "rollbar")) {
    write_rollbar(fields, identity, host);
  }
  if (has(words, "sentry")) {
    write_sentry(fields, identity, host);
  }
  if (has(words, "datadog")) {
    host.table("log.datadog");
    host.string("service", identity.service);
    host.string("environment", identity.environment);
  }
  for (const char* sender : {"rollbar", "sentry"}) {
    if (!has(words, sender)) {
      fields.leave_out(std::string("logging.") + sender, "it is none of the handlers");
    }
  }
  write_tracking(fields, identity, host);
}

}  // namespace sluice::cli::convert
