// A request in lines: method, path, query, then "name:value" headers, then an empty line and the body.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamo/signing/signer.hpp"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace dynamo = sluice::dynamo;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  dynamo::Headers headers;
  dynamo::SignableRequest request{.headers = headers};
  request.method = take_line(rest);
  request.path = take_line(rest);
  request.query = take_line(rest);
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (line.empty()) {
      break;
    }
    const std::size_t colon = line.find(':');
    headers.emplace_back(line.substr(0, colon),
                         colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1));
  }
  request.body = rest;
  if (const auto canonical = dynamo::canonical_request(request)) {
    // Nothing in a request may forge a line: the count of lines follows from the signed headers alone.
    std::size_t lines = 6;
    for (const char c : canonical->signed_headers) {
      lines += c == ';' ? 1 : 0;
    }
    std::size_t newlines = 0;
    for (const char c : canonical->text) {
      newlines += c == '\n' ? 1 : 0;
    }
    require(newlines == lines);
  }
  const dynamo::Signer signer(dynamo::SigningOptions{});
  const dynamo::Credentials credentials{.access_key_id = "AKID", .secret_access_key = "secret", .session_token = "t"};
  const sluice::WallTime time{std::chrono::hours(24 * 365 * 50)};
  static_cast<void>(signer.sign(request, credentials, time));
  dynamo::HttpRequest http;
  http.url = std::string(request.path);
  static_cast<void>(signer.sign(http, credentials, time));
  return 0;
}
