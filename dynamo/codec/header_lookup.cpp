#include "dynamo/codec/header_lookup.hpp"

#include <algorithm>

namespace sluice::dynamo {

namespace {
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
}  // namespace

const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (std::equal(key.begin(), key.end(), name.begin(), name.end(),
                   [](char a, char b) { return lower(a) == lower(b); })) {
      return &value;
    }
  }
  return nullptr;
}

}  // namespace sluice::dynamo
