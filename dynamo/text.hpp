#pragma once

#include <string>
#include <string_view>

#include "base/text/lower_case.hpp"

/// Small readings of ASCII text; the locale has no say. Pure.
namespace sluice::dynamo {

/// Without white space at both ends.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// An origin without the slashes at its end.
inline std::string without_slash(std::string origin) {
  while (origin.ends_with('/')) {
    origin.pop_back();
  }
  return origin;
}

}  // namespace sluice::dynamo
