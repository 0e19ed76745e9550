#include <utility>

#include "base/timestamp.hpp"
#include "host/observe/log_encoder.hpp"
#include "host/observe/log_format.hpp"

namespace sluice::observe {

namespace {

/// "env:prod,version:1.0.0,team:orders": how Datadog writes tags. A comma ends one, so that none may hold another.
std::string tags_of(const std::string& environment, const std::string& version,
                    const std::map<std::string, std::string>& more) {
  std::string tags;
  const auto add = [&tags](const std::string& name, const std::string& value) {
    if (value.empty()) {
      return;
    }
    std::string tag = name + ":" + value;
    for (char& c : tag) {
      c = c == ',' ? '_' : c;
    }
    tags += (tags.empty() ? "" : ",") + tag;
  };
  add("env", environment);
  add("version", version);
  for (const auto& [name, value] : more) {
    add(name, value);
  }
  return tags;
}

class DatadogEncoder final : public LogEncoder {
 public:
  DatadogEncoder(const config::LogSender& sender, const LogIdentity& identity)
      : members_(datadog_members({sender.service, sender.environment, sender.tags}, identity)) {}

  std::string encode(const LogLine& line, WallTime now) const override {
    return R"({"timestamp":")" + format_timestamp(now) + R"(",)" + format_line(LogFormat::datadog, members_, line);
  }

 private:
  const std::string members_;
};

class Datadog final : public Collector {
 public:
  explicit Datadog(const config::LogSender& sender) : url_(sender.endpoint + "/api/v2/logs"), key_(sender.secret) {}

  const std::string& name() const override { return name_; }
  ShipLimits limits() const override {
    ShipLimits limits;
    limits.batch_items = 1'000;
    limits.batch_bytes = std::size_t{4} << 20;  // Datadog takes 5 MB
    limits.bytes = std::size_t{8} << 20;
    return limits;
  }
  dynamo::HttpRequest request(std::span<const std::string> items, WallTime) const override {
    dynamo::HttpRequest request{.method = "POST",
                                .url = url_,
                                .headers = {{"Content-Type", "application/json"}, {"DD-API-KEY", key_}},
                                .body = "["};
    for (const std::string& item : items) {
      request.body += (request.body.size() > 1 ? "," : "") + item;
    }
    request.body += ']';
    return request;
  }
  Judgement judge(const dynamo::HttpResult& result) const override {
    return judge_status(result, {408, 429, 500, 502, 503, 504}, "api_key in [log.datadog]");
  }

 private:
  const std::string name_ = "datadog";
  const std::string url_;
  const std::string key_;
};

}  // namespace

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

LogDestination make_datadog(const config::LogSender& sender, const LogIdentity& identity) {
  return {std::make_unique<DatadogEncoder>(sender, identity), std::make_unique<Datadog>(sender)};
}

}  // namespace sluice::observe
