#pragma once

#include <chrono>
#include <map>
#include <sluice/handler.hpp>
#include <string>

/// The options of a webhook job, checked. A value.
struct Settings {
  std::string url;
  std::string method;
  std::map<std::string, std::string> headers;
  std::string content_type;
  std::string attribute_prefix;
  std::string bearer_token;  ///< empty: none
  std::string hmac_secret;   ///< empty: no signature
  std::string hmac_header;
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds timeout{};
  std::chrono::nanoseconds retry_after_max{};
  std::size_t response_limit = 0;
  long redirects = 0;
  std::string ca_file;

  /// Throws std::invalid_argument with a sentence for the user.
  static Settings read(const sluice::Options& options);
};

/// True for the characters that a header's name consists of.
bool is_token(const std::string& text);
