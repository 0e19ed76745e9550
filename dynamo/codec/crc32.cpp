#include "dynamo/codec/crc32.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "dynamo/codec/header_lookup.hpp"

namespace sluice::dynamo {

std::uint32_t crc32(std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::optional<Error> check_crc32(const Headers& headers, std::string_view body) {
  const std::string* header = find_header(headers, "x-amz-crc32");
  if (header == nullptr) {
    return std::nullopt;
  }
  std::uint32_t announced = 0;
  const char* end = header->data() + header->size();
  const auto [stop, problem] = std::from_chars(header->data(), end, announced);
  const std::uint32_t actual = crc32(body);
  if (problem == std::errc() && stop == end && announced == actual) {
    return std::nullopt;
  }
  Error error(ErrorKind::malformed_response, "the response is damaged: its CRC-32 is " + std::to_string(actual) +
                                                 ", announced was " + header->substr(0, 20));
  error.outcome_unknown = true;
  return error;
}

}  // namespace sluice::dynamo
