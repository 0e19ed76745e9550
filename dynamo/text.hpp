#pragma once

#include <algorithm>
#include <string>
#include <string_view>

/// Small readings of ASCII text; the locale has no say. Pure.
namespace sluice::dynamo {

/// Without white space at both ends.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// An origin without the slashes at its end.
inline std::string without_slash(std::string origin) {
  while (origin.ends_with('/')) {
    origin.pop_back();
  }
  return origin;
}

}  // namespace sluice::dynamo
