#include "headers.hpp"

#include <strings.h>

#include <algorithm>
#include <new>

#include "signature.hpp"

namespace {

bool same_name(const std::string& a, const std::string& b) { return ::strcasecmp(a.c_str(), b.c_str()) == 0; }

std::string safe_value(std::string_view value) {
  std::string safe(value);
  std::replace_if(
      safe.begin(), safe.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return safe;
}

/// An attribute's name as part of a header's: what may not stand there becomes '-'.
std::string safe_name(std::string_view name) {
  std::string safe(name);
  for (char& c : safe) {
    c = is_token(std::string(1, c)) ? c : '-';
  }
  return safe;
}

/// Adds headers unless the job's own `headers` have them.
class HeaderWriter {
 public:
  explicit HeaderWriter(const Settings& settings) : settings_(settings) {
    for (const auto& [name, value] : settings.headers) {
      list_.add(name, value);
    }
  }

  void add(const std::string& name, std::string_view value) {
    const bool taken = std::any_of(settings_.headers.begin(), settings_.headers.end(),
                                   [&](const auto& header) { return same_name(header.first, name); });
    if (!taken) {
      list_.add(name, value);
    }
  }
  HeaderList take() { return std::move(list_); }

 private:
  const Settings& settings_;
  HeaderList list_;
};

}  // namespace

void HeaderList::add(std::string_view name, std::string_view value) {
  const std::string safe = safe_value(value);
  const bool blank = safe.find_first_not_of(' ') == std::string::npos;
  // For curl "Name:" means a header to leave out, and "Name;" one without a value.
  const std::string line = blank ? std::string(name) + ";" : std::string(name) + ": " + safe;
  append(line);
}

void HeaderList::suppress(const std::string& name) { append(name + ":"); }

void HeaderList::append(const std::string& line) {
  curl_slist* longer = curl_slist_append(lines_.get(), line.c_str());
  if (longer == nullptr) {
    throw std::bad_alloc();
  }
  static_cast<void>(lines_.release());
  lines_.reset(longer);
}

HeaderList request_headers(const Settings& settings, const sluice::Message& message) {
  HeaderWriter headers(settings);
  const std::string_view type = settings.content_type.empty() ? message.content_type() : settings.content_type;
  headers.add("Content-Type", type.empty() ? "application/octet-stream" : type);
  headers.add("X-Sluice-Message-Id", message.id());
  headers.add("X-Sluice-Queue", message.queue());
  headers.add("X-Sluice-Attempt", std::to_string(message.attempt()));
  headers.add("Idempotency-Key", message.id());
  if (!settings.attribute_prefix.empty()) {
    for (const auto [name, value] : message.attributes()) {
      headers.add(settings.attribute_prefix + safe_name(name), value);
    }
  }
  // By the names that W3C gives them, so that the server's spans are of the same trace.
  for (const char* const name : {"traceparent", "tracestate"}) {
    if (const auto value = message.attribute(name)) {
      headers.add(name, *value);
    }
  }
  if (!settings.bearer_token.empty()) {
    headers.add("Authorization", "Bearer " + settings.bearer_token);
  }
  if (!settings.hmac_secret.empty()) {
    headers.add(settings.hmac_header, "sha256=" + hmac_sha256(settings.hmac_secret, message.body()));
  }
  HeaderList list = headers.take();
  // curl would otherwise wait up to a second for a server's permission to send a larger body.
  list.suppress("Expect");
  return list;
}
