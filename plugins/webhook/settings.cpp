#include "settings.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace {

using std::chrono::milliseconds;

constexpr std::chrono::hours kLongest(24);

[[noreturn]] void refuse(const std::string& option, const std::string& why) {
  throw std::invalid_argument("the option \"" + option + "\" " + why);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

std::string url_option(const sluice::Options& options) {
  auto url = options.get<std::string>("url");
  CURLU* parsed = curl_url();
  const bool good = parsed != nullptr && url.find('\0') == std::string::npos &&
                    curl_url_set(parsed, CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  char* scheme = nullptr;
  std::string word;
  if (good && curl_url_get(parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK) {
    word = scheme;
    curl_free(scheme);
  }
  curl_url_cleanup(parsed);
  if (word != "http" && word != "https") {
    refuse("url", "must be an address such as \"https://example.com/hook\"");
  }
  return url;
}

milliseconds timeout_option(const sluice::Options& options, const char* name) {
  const auto value = options.get<milliseconds>(name);
  if (value <= milliseconds::zero() || value > kLongest) {
    refuse(name, "must be from 1ms to 1d");
  }
  return value;
}

std::int64_t number_option(const sluice::Options& options, const char* name, std::int64_t least, std::int64_t most) {
  const auto value = options.get<std::int64_t>(name);
  if (value < least || value > most) {
    refuse(name, "must be from " + std::to_string(least) + " to " + std::to_string(most) + "; it is " +
                     std::to_string(value));
  }
  return value;
}

std::string method_option(const sluice::Options& options) {
  auto method = options.get<std::string>("method");
  if (method != "POST" && method != "PUT" && method != "PATCH" && method != "DELETE") {
    refuse("method", "must be POST, PUT, PATCH or DELETE; it is \"" + method + "\"");
  }
  return method;
}

std::string token_option(const sluice::Options& options, const char* name) {
  auto value = options.get<std::string>(name);
  if (!is_token(value)) {
    refuse(name, "may hold letters, digits and '-' only");
  }
  return value;
}

/// A value out of the environment variable that the option names; empty without the option. Never part of an error.
std::string secret_from_environment(const sluice::Options& options, const char* name) {
  if (!options.has(name)) {
    return {};
  }
  const auto variable = options.get<std::string>(name);
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') {
    refuse(name, "names the environment variable \"" + variable + "\", which is not set");
  }
  if (has_control(value)) {
    refuse(name, "names the environment variable \"" + variable +
                     "\", which has a control character in it, such as a "
                     "line's end");
  }
  return value;
}

std::string hmac_secret_option(const sluice::Options& options) {
  if (options.has("hmac_secret") && options.has("hmac_secret_env")) {
    refuse("hmac_secret", "and \"hmac_secret_env\" are both set; one of them is enough");
  }
  if (options.has("hmac_secret") && options.get("hmac_secret", "").empty()) {
    refuse("hmac_secret", "is empty");
  }
  return options.has("hmac_secret") ? options.get("hmac_secret", "")
                                    : secret_from_environment(options, "hmac_secret_env");
}

std::map<std::string, std::string> headers_option(const sluice::Options& options) {
  std::map<std::string, std::string> headers = options.map("headers");
  for (const auto& [name, value] : headers) {
    if (!is_token(name)) {
      refuse("headers", "has \"" + name + "\", which cannot be the name of a header");
    }
    if (has_control(value)) {
      refuse("headers", "has a control character in the value of \"" + name + "\"");
    }
  }
  return headers;
}

std::string ca_file_option(const sluice::Options& options) {
  std::string file = options.get("ca_file", "");
  if (options.has("ca_file")) {
    std::FILE* opened = std::fopen(file.c_str(), "re");
    if (opened == nullptr) {
      refuse("ca_file", "names \"" + file + "\", which cannot be read");
    }
    std::fclose(opened);
  }
  return file;
}

}  // namespace

bool is_token(const std::string& text) {
  constexpr std::string_view kSpecial = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSpecial.find(c) != std::string_view::npos;
  });
}

Settings Settings::read(const sluice::Options& options) {
  Settings settings;
  settings.url = url_option(options);
  settings.method = method_option(options);
  settings.headers = headers_option(options);
  settings.content_type = options.get("content_type", "");
  if (has_control(settings.content_type)) {
    refuse("content_type", "has a control character in it");
  }
  settings.attribute_prefix = options.get("attribute_prefix", "");
  if (!settings.attribute_prefix.empty()) {
    settings.attribute_prefix = token_option(options, "attribute_prefix");
  }
  settings.bearer_token = secret_from_environment(options, "bearer_token_env");
  settings.hmac_secret = hmac_secret_option(options);
  settings.hmac_header = token_option(options, "hmac_header");
  settings.connect_timeout = timeout_option(options, "connect_timeout");
  settings.timeout = timeout_option(options, "timeout");
  settings.retry_after_max = options.duration("retry_after_max");
  settings.response_limit = static_cast<std::size_t>(number_option(options, "response_limit", 0, 16 * 1024 * 1024));
  settings.redirects = static_cast<long>(number_option(options, "redirects", 0, 10));
  settings.ca_file = ca_file_option(options);
  return settings;
}
