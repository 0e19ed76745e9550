#include "settings.hpp"

#include <algorithm>

#include "dynamo/signing/uri.hpp"
#include "publishing/routes.hpp"
#include "publishing/text.hpp"

namespace sns {
namespace {

using publishing::bounded;
using publishing::refuse;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

bool is_attribute_name(const std::string& text) {
  constexpr std::size_t kMaxLength = 256;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= kMaxLength && text.front() != '.' && text.back() != '.' &&
         text.find("..") == std::string::npos && std::all_of(text.begin(), text.end(), fits);
}

std::vector<std::string> attributes_option(const sluice::Options& options) {
  // Ten are the most that SNS hands to a queue with the bare message; two are ours.
  constexpr std::size_t kMost = 8;
  auto names = options.list("attributes");
  for (const std::string& name : names) {
    if (!is_attribute_name(name) || name == "Event" || name == "Producer") {
      refuse("attributes", "has \"" + publishing::one_line(name) + "\", which cannot be the name of an attribute");
    }
  }
  if (names.size() > kMost) {
    refuse("attributes", "has " + std::to_string(names.size()) + " names; 8 are the most");
  }
  return names;
}

void read_access(const sluice::Options& options, AccessSettings& access) {
  access.region = options.get("region", "");
  access.endpoint = options.get("endpoint", "");
  access.access_key_id = options.get("access_key_id", "");
  access.secret_access_key = options.get("secret_access_key", "");
  access.session_token = options.get("session_token", "");
  if (options.has("endpoint") && !sluice::dynamo::parse_url(access.endpoint)) {
    refuse("endpoint", "must be an address such as \"http://127.0.0.1:4566\"");
  }
  if (options.has("region") && !is_region(access.region)) {
    refuse("region", "must be a region such as \"eu-west-1\"");
  }
  if (options.has("access_key_id") != options.has("secret_access_key")) {
    refuse("access_key_id", "and \"secret_access_key\" belong together; set both, or neither");
  }
}

}  // namespace

Settings Settings::read(const sluice::Options& options) {
  constexpr std::int64_t kMostAttempts = 10;
  Settings settings;
  read_access(options, settings.access);
  settings.directory.allowed = options.list("allow_topics");
  settings.directory.denied = options.list("deny_topics");
  settings.directory.unreadable = options.list("ignore_unreadable_topics");
  settings.directory.refetch = bounded(options, "refetch_interval", 1ms, 24h * 365);
  settings.entries.hash_groups = publishing::one_of(options, "group_id", {"hash", "reject"}) == "hash";
  settings.entries.group_on_standard = options.get<bool>("group_on_standard");
  settings.attributes = attributes_option(options);
  settings.retried_errors = options.list("retry_errors");
  settings.snooze_outages = publishing::one_of(options, "outage", {"retry", "snooze"}) == "snooze";
  settings.snooze_time = bounded(options, "snooze_time", 1ms, 24h);
  settings.timeout = bounded(options, "timeout", 1ms, 1h);
  settings.queue.linger = bounded(options, "linger", 0ms, 1h);
  settings.queue.longest_wait =
      std::max<sluice::Duration>(bounded(options, "linger_max", 0ms, 1h), settings.queue.linger);
  const auto attempts = options.get<std::int64_t>("attempts");
  if (attempts < 1 || attempts > kMostAttempts) {
    refuse("attempts", "must be from 1 to 10");
  }
  settings.queue.attempts = static_cast<int>(attempts);
  return settings;
}

}  // namespace sns
