#include "host/observe/log_senders.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "base/text/joined.hpp"
#include "base/timestamp.hpp"
#include "base/uuid.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

using Texts = std::map<std::string, std::string>;

/// As Sentry and Rollbar name it.
std::string_view level_of(LogLevel level) {
  constexpr std::array<std::string_view, 6> kNames{"debug", "debug", "info", "warning", "error", "error"};
  return kNames.at(static_cast<std::size_t>(level));
}

/// The fields that may go out, as members. A message's id is often a customer's or an order's number: without `pii` it
/// stays here.
void write_public_fields(JsonWriter& json, std::span<const LogField> fields, bool pii) {
  for (const LogField& field : fields) {
    if (pii || field.name() != "id") {
      write_fields(json, {&field, 1});
    }
  }
}

const std::vector<int> kAgain{408, 429, 500, 502, 503, 504};
constexpr const char* kJson = "application/json";

/// One item a request, at once.
ShipLimits singly(std::size_t most_bytes) {
  return {.items = 1'000, .batch_items = 1, .batch_bytes = most_bytes, .linger = Duration::zero()};
}

/// An item is the event's id, and then the event itself: the envelope names both. One event an envelope, as Sentry
/// asks.
class Sentry final : public LogService {
 public:
  Sentry(const config::LogSender& sender, const LogIdentity& identity, Random& random)
      : LogService(settings_of(sender.secret, identity), sender, identity), random_(random) {
    JsonWriter sdk;
    sdk.value(Texts{{"name", "sluice"}, {"version", identity.version}});
    sdk_ = sdk.take_text();
  }

  std::string encode(const LogLine& line, WallTime now) const override {
    std::string id = make_uuid(random_);
    std::erase(id, '-');
    JsonWriter json;
    json.begin_object();
    json.member("event_id", id);
    json.member("timestamp", now);
    json.member("platform", "other");
    json.member("logger", "sluice");
    json.member("level", level_of(line.level));
    json.member("logentry", Texts{{"formatted", std::string(line.message)}});
    json.member("release", "sluice@" + identity_.version);
    if (!sender_.environment.empty()) {
      json.member("environment", sender_.environment);
    }
    if (sender_.send_default_pii) {
      json.member("server_name", identity_.host);
    }
    if (const TraceContext* trace = TraceScope::current()) {
      json.member("contexts", std::map<std::string, Texts>{
                                  {"trace", {{"trace_id", hex_of(trace->trace)}, {"span_id", hex_of(trace->span)}}}});
    }
    // Those of the configuration, and the job, by which people look for their events.
    auto tags = sender_.tags;
    for (const LogField& field : line.fields) {
      if (field.name() == "job") {
        tags.emplace("job", field.value());
      }
    }
    if (!tags.empty()) {
      json.member("tags", tags);
    }
    json.key("extra");
    json.begin_object();
    write_public_fields(json, line.fields, sender_.send_default_pii);
    json.end_object();
    json.end_object();
    return id + json.take_text();
  }

 private:
  static constexpr std::size_t kEventIdDigits = 32;

  /// The DSN was checked when it was read: scheme://key[:secret]@host[/path]/project.
  static Settings settings_of(const std::string& dsn, const LogIdentity& identity) {
    const std::size_t key = dsn.find("://") + 3;
    const std::size_t at = dsn.find('@');
    const std::size_t project = dsn.rfind('/') + 1;
    const std::string credential = dsn.substr(key, at - key);
    const std::size_t colon = credential.find(':');
    std::string auth = "Sentry sentry_version=7, sentry_client=sluice/" + identity.version +
                       ", sentry_key=" + credential.substr(0, colon);
    if (colon != std::string::npos) {
      auth += ", sentry_secret=" + credential.substr(colon + 1);
    }
    return {
        .name = "sentry",
        .url = dsn.substr(0, key) + dsn.substr(at + 1, project - at - 1) + "api/" + dsn.substr(project) + "/envelope/",
        .headers = {{"Content-Type", "application/x-sentry-envelope"}, {"X-Sentry-Auth", auth}},
        .credential = "dsn in [log.sentry]",
        .again = kAgain,
        .limits = singly(std::size_t{1} << 20)};  // Sentry's limit
  }

  std::string body_of(std::span<const std::string> items, WallTime now) const override {
    std::string body;
    for (const std::string& item : items) {
      const std::string event = item.substr(kEventIdDigits);
      body += R"({"event_id":")" + item.substr(0, kEventIdDigits) + R"(","sent_at":")" + format_timestamp(now) +
              R"(","sdk":)" + sdk_ + "}\n" + R"({"type":"event","content_type":"application/json","length":)" +
              std::to_string(event.size()) + "}\n" + event + "\n";
    }
    return body;
  }

  Random& random_;
  std::string sdk_;
};

/// One item a request: its API has no other.
class Rollbar final : public LogService {
 public:
  Rollbar(const config::LogSender& sender, const LogIdentity& identity, Random& random)
      : LogService({.name = "rollbar",
                    .url = sender.endpoint + "/api/1/item/",
                    .headers = {{"Content-Type", kJson}, {"X-Rollbar-Access-Token", sender.secret}},
                    .credential = "token in [log.rollbar]",
                    .again = kAgain,
                    .limits = singly(std::size_t{512} << 10)},  // Rollbar's limit
                   sender, identity),
        random_(random) {}

  std::string encode(const LogLine& line, WallTime now) const override {
    JsonWriter json;
    json.begin_object();
    json.key("data");
    json.begin_object();
    json.member("environment", sender_.environment);
    json.key("body");
    json.begin_object();
    json.key("message");
    json.begin_object();
    json.member("body", line.message);
    write_public_fields(json, line.fields, sender_.send_default_pii);
    json.end_object();
    json.end_object();
    json.member("level", level_of(line.level));
    json.member("timestamp", std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
    json.member("platform", "linux");
    json.member("language", "c++");
    json.member("code_version", identity_.version);
    json.member("uuid", make_uuid(random_));
    if (sender_.send_default_pii) {
      json.member("server", Texts{{"host", identity_.host}});
    }
    auto custom = sender_.tags;
    if (const TraceContext* trace = TraceScope::current()) {
      custom["trace_id"] = hex_of(trace->trace);
      custom["span_id"] = hex_of(trace->span);
    }
    if (!custom.empty()) {
      json.member("custom", custom);
    }
    json.member("notifier", Texts{{"name", "sluice"}, {"version", identity_.version}});
    json.end_object();
    json.end_object();
    return json.take_text();
  }

 private:
  std::string body_of(std::span<const std::string> items, WallTime) const override {
    return items.empty() ? std::string() : items.front();
  }

  Random& random_;
};

/// "env:prod,version:1.0.0,team:orders": how Datadog writes tags. A comma ends one, so that none may hold another.
std::string tags_of(const std::string& environment, const std::string& version,
                    const std::map<std::string, std::string>& more) {
  std::vector<std::string> tags;
  const auto add = [&tags](const std::string& name, const std::string& value) {
    if (!value.empty()) {
      std::string& tag = tags.emplace_back(name + ":" + value);
      std::replace(tag.begin(), tag.end(), ',', '_');
    }
  };
  add("env", environment);
  add("version", version);
  for (const auto& [name, value] : more) {
    add(name, value);
  }
  return joined(tags, ",");
}

class Datadog final : public LogService {
 public:
  Datadog(const config::LogSender& sender, const LogIdentity& identity)
      : LogService(
            {.name = "datadog",
             .url = sender.endpoint + "/api/v2/logs",
             .headers = {{"Content-Type", kJson}, {"DD-API-KEY", sender.secret}},
             .credential = "api_key in [log.datadog]",
             .again = kAgain,
             // Datadog takes 5 MB.
             .limits = {.bytes = std::size_t{8} << 20, .batch_items = 1'000, .batch_bytes = std::size_t{4} << 20}},
            sender, identity),
        members_(datadog_members({sender.service, sender.environment, sender.tags}, identity)) {}

  std::string encode(const LogLine& line, WallTime now) const override {
    return R"({"timestamp":")" + format_timestamp(now) + R"(",)" + format_line(LogFormat::datadog, members_, line);
  }

 private:
  std::string body_of(std::span<const std::string> items, WallTime) const override {
    return "[" + joined(items, ",") + "]";
  }

  const std::string members_;
};

LogLevel least_of(const config::LogSender& sender) { return static_cast<LogLevel>(sender.level); }

bool ignores(const config::LogSender& sender, const LogLine& line) {
  const auto within = [](std::string_view text, const std::string& part) {
    return text.find(part) != std::string_view::npos;
  };
  return std::any_of(sender.ignore.begin(), sender.ignore.end(), [&](const std::string& part) {
    return within(line.message, part) ||
           std::any_of(line.fields.begin(), line.fields.end(),
                       [&](const LogField& field) { return within(field.value(), part); });
  });
}

}  // namespace

std::unique_ptr<LogService> make_log_service(const config::LogSender& sender, const LogIdentity& identity,
                                             Random& random) {
  switch (sender.kind) {
    case config::SenderKind::rollbar:
      return std::make_unique<Rollbar>(sender, identity, random);
    case config::SenderKind::sentry:
      return std::make_unique<Sentry>(sender, identity, random);
    case config::SenderKind::datadog:
      break;
  }
  return std::make_unique<Datadog>(sender, identity);
}

std::string datadog_members(const config::DatadogFormat& format, const LogIdentity& identity) {
  JsonWriter json;
  json.begin_object();
  const auto add = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) {
      json.member(name, value);
    }
  };
  add("ddsource", "sluice");
  add("service", format.service);
  add("hostname", identity.host);
  add("ddtags", tags_of(format.environment, identity.version, format.tags));
  add("dd.service", format.service);
  add("dd.env", format.environment);
  add("dd.version", identity.version);
  json.end_object();
  const std::string object = json.take_text();
  return object.substr(1, object.size() - 2);
}

LogSenders::LogSenders(Shipper& shipper, const Clock& clock, Random& random, std::vector<Member> members)
    : shipper_(shipper), clock_(clock), random_(random), members_(std::move(members)) {
  for (const Member& member : members_) {
    level_ = std::min(level_, least_of(member.service->sender()));
  }
}

void LogSenders::take(const LogLine& line) {
  for (const Member& member : members_) {
    const config::LogSender& settings = member.service->sender();
    if (line.level < least_of(settings) || ignores(settings, line) ||
        (settings.sample_rate < 1 && random_.unit() >= settings.sample_rate)) {
      continue;
    }
    shipper_.put(*member.destination, member.service->encode(line, clock_.wall_now()));
  }
}

}  // namespace sluice::observe
