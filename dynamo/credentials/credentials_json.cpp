#include "dynamo/credentials/credentials_json.hpp"

#include <boost/json.hpp>

#include "base/timestamp.hpp"
#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 8;

json::value parse(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code failure;
  auto value = json::parse(json::string_view(text.data(), text.size()), failure, json::storage_ptr(), options);
  return failure ? json::value() : value;
}

std::string as_text(const json::value& value) {
  if (const auto* text = value.if_string()) {
    return std::string(text->data(), text->size());
  }
  if (const auto* number = value.if_int64()) {
    return std::to_string(*number);
  }
  if (const auto* number = value.if_uint64()) {
    return std::to_string(*number);
  }
  return {};
}

/// RFC 3339 text, or milliseconds since 1970 as Identity Center gives them.
std::optional<WallTime> expiry(const json::value& value) {
  if (const auto* milliseconds = value.if_int64()) {
    constexpr std::int64_t kMost = 9'000'000'000'000;  // the year 2255; nanoseconds end soon after
    if (*milliseconds < 0) {
      return std::nullopt;
    }
    return *milliseconds > kMost ? kEndOfTime : WallTime(std::chrono::milliseconds(*milliseconds));
  }
  return parse_timestamp_or_end(as_text(value));
}

}  // namespace

Result<Credentials> credentials_from_json(std::string_view text, std::string_view member, const std::string& source) {
  const auto unusable = [&](const std::string& what) {
    return Error(ErrorKind::no_credentials, source + " gave an answer that cannot be used: " + what);
  };
  const json::value document = parse(text);
  const json::object* object = document.if_object();
  if (object != nullptr && !member.empty()) {
    const json::value* inner = object->if_contains(json::string_view(member.data(), member.size()));
    object = inner == nullptr ? nullptr : inner->if_object();
  }
  if (object == nullptr) {
    return unusable("it is not the JSON that was expected");
  }
  Credentials out;
  out.source = source;
  for (const auto& [key, value] : *object) {
    const std::string name = lower_case(std::string_view(key.data(), key.size()));
    if (name == "accesskeyid") {
      out.access_key_id = as_text(value);
    } else if (name == "secretaccesskey") {
      out.secret_access_key = as_text(value);
    } else if (name == "sessiontoken" || name == "token") {
      out.session_token = as_text(value);
    } else if (name == "accountid") {
      out.account_id = as_text(value);
    } else if (name == "expiration" && !value.is_null()) {
      out.expires_at = expiry(value);
      if (!out.expires_at) {
        return unusable("its expiration is not a time");
      }
    }
  }
  if (out.access_key_id.empty() || out.secret_access_key.empty()) {
    return unusable("it has no access key");
  }
  return out;
}

std::string json_member(std::string_view text, std::string_view name) {
  const json::value document = parse(text);
  const json::object* object = document.if_object();
  const json::value* value =
      object == nullptr ? nullptr : object->if_contains(json::string_view(name.data(), name.size()));
  return value == nullptr ? std::string() : as_text(*value);
}

}  // namespace sluice::dynamo
