#include <chrono>
#include <map>
#include <utility>

#include "base/uuid.hpp"
#include "host/observe/log_encoder.hpp"
#include "host/observe/log_format.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

constexpr std::size_t kMostItemBytes = std::size_t{512} << 10;  // Rollbar's

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

class RollbarEncoder final : public LogEncoder {
 public:
  RollbarEncoder(config::LogSender sender, LogIdentity identity, Random& random)
      : sender_(std::move(sender)), identity_(std::move(identity)), random_(random) {}

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
      json.member("server", std::map<std::string, std::string>{{"host", identity_.host}});
    }
    auto custom = sender_.tags;
    if (const TraceContext* trace = TraceScope::current()) {
      custom["trace_id"] = hex_of(trace->trace);
      custom["span_id"] = hex_of(trace->span);
    }
    if (!custom.empty()) {
      json.member("custom", custom);
    }
    json.member("notifier", std::map<std::string, std::string>{{"name", "sluice"}, {"version", identity_.version}});
    json.end_object();
    json.end_object();
    return json.take_text();
  }

 private:
  const config::LogSender sender_;
  const LogIdentity identity_;
  Random& random_;
};

/// One item a request: its API has no other.
class Rollbar final : public Collector {
 public:
  explicit Rollbar(const config::LogSender& sender) : url_(sender.endpoint + "/api/1/item/"), token_(sender.secret) {}

  const std::string& name() const override { return name_; }
  ShipLimits limits() const override {
    ShipLimits limits;
    limits.items = 1'000;
    limits.batch_items = 1;
    limits.batch_bytes = kMostItemBytes;
    limits.linger = Duration::zero();
    return limits;
  }
  dynamo::HttpRequest request(std::span<const std::string> items, WallTime) const override {
    return {.method = "POST",
            .url = url_,
            .headers = {{"Content-Type", "application/json"}, {"X-Rollbar-Access-Token", token_}},
            .body = items.empty() ? std::string() : items.front()};
  }
  Judgement judge(const dynamo::HttpResult& result) const override {
    return judge_status(result, {408, 429, 500, 502, 503, 504}, "token in [log.rollbar]");
  }

 private:
  const std::string name_ = "rollbar";
  const std::string url_;
  const std::string token_;
};

}  // namespace

LogDestination make_rollbar(const config::LogSender& sender, const LogIdentity& identity, Random& random) {
  return {std::make_unique<RollbarEncoder>(sender, identity, random), std::make_unique<Rollbar>(sender)};
}

}  // namespace sluice::observe
