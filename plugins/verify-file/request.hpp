#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

/// What a message asks for. Hashes are in lower-case hexadecimal; at least one is there.
struct Request {
  std::string path;
  std::optional<std::string> md5;
  std::optional<std::string> sha256;
};

/// The body is no request; the text says what is wrong with it.
class BadRequest : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Reads `{"path": ..., "md5": ... or "sha256": ...}`; other members are ignored. Throws BadRequest.
Request parse_request(std::string_view body);
