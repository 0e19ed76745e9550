#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/timestamp.hpp"
#include "base/uuid.hpp"
#include "host/observe/log_encoder.hpp"
#include "host/observe/log_format.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

constexpr std::size_t kEventIdDigits = 32;
constexpr std::size_t kMostEventBytes = std::size_t{1} << 20;  // Sentry's

std::string_view level_of(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warn:
      return "warning";
    case LogLevel::info:
      return "info";
    default:
      return "debug";
  }
}

/// A UUID without its dashes.
std::string event_id(Random& random) {
  std::string id = make_uuid(random);
  id.erase(std::remove(id.begin(), id.end(), '-'), id.end());
  return id;
}

/// The event's id, and then the event itself: the envelope names both.
class SentryEncoder final : public LogEncoder {
 public:
  SentryEncoder(config::LogSender sender, LogIdentity identity, Random& random)
      : sender_(std::move(sender)), identity_(std::move(identity)), random_(random) {}

  std::string encode(const LogLine& line, WallTime now) const override {
    const std::string id = event_id(random_);
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
  using Texts = std::map<std::string, std::string>;

  const config::LogSender sender_;
  const LogIdentity identity_;
  Random& random_;
};

/// One event an envelope, as Sentry asks.
class Sentry final : public Collector {
 public:
  /// The DSN was checked when it was read: scheme://key[:secret]@host[/path]/project.
  Sentry(const std::string& dsn, const LogIdentity& identity) {
    const std::size_t key = dsn.find("://") + 3;
    const std::size_t at = dsn.find('@');
    const std::size_t project = dsn.rfind('/') + 1;
    const std::string credential = dsn.substr(key, at - key);
    const std::size_t colon = credential.find(':');
    url_ = dsn.substr(0, key) + dsn.substr(at + 1, project - at - 1) + "api/" + dsn.substr(project) + "/envelope/";
    auth_ = "Sentry sentry_version=7, sentry_client=sluice/" + identity.version +
            ", sentry_key=" + credential.substr(0, colon);
    if (colon != std::string::npos) {
      auth_ += ", sentry_secret=" + credential.substr(colon + 1);
    }
    JsonWriter sdk;
    sdk.value(std::map<std::string, std::string>{{"name", "sluice"}, {"version", identity.version}});
    sdk_ = sdk.take_text();
  }

  const std::string& name() const override { return name_; }
  ShipLimits limits() const override {
    ShipLimits limits;
    limits.items = 1'000;
    limits.batch_items = 1;
    limits.batch_bytes = kMostEventBytes;
    limits.linger = Duration::zero();
    return limits;
  }
  dynamo::HttpRequest request(std::span<const std::string> items, WallTime now) const override {
    dynamo::HttpRequest request{
        .method = "POST",
        .url = url_,
        .headers = {{"Content-Type", "application/x-sentry-envelope"}, {"X-Sentry-Auth", auth_}},
        .body = {}};
    for (const std::string& item : items) {
      const std::string event = item.substr(kEventIdDigits);
      request.body += R"({"event_id":")" + item.substr(0, kEventIdDigits) + R"(","sent_at":")" + format_timestamp(now) +
                      R"(","sdk":)" + sdk_ + "}\n" + R"({"type":"event","content_type":"application/json","length":)" +
                      std::to_string(event.size()) + "}\n" + event + "\n";
    }
    return request;
  }
  Judgement judge(const dynamo::HttpResult& result) const override {
    return judge_status(result, {408, 429, 500, 502, 503, 504}, "dsn in [log.sentry]");
  }

 private:
  const std::string name_ = "sentry";
  std::string url_;
  std::string auth_;
  std::string sdk_;
};

}  // namespace

LogDestination make_sentry(const config::LogSender& sender, const LogIdentity& identity, Random& random) {
  return {std::make_unique<SentryEncoder>(sender, identity, random), std::make_unique<Sentry>(sender.secret, identity)};
}

}  // namespace sluice::observe
