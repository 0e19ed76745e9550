#pragma once

/// What plugins, handlers and options may be called: the compiler checks it where a plugin is made with this SDK, and
/// the host in every file.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace sluice::detail {

inline constexpr std::size_t kWordLimit = 64;
/// What may be in one besides letters and digits.
inline constexpr std::string_view kInNames = "-_.";
inline constexpr std::string_view kInVersions = "-_.+~:";
inline constexpr std::string_view kInOptionNames = "-_";

constexpr bool is_word(std::string_view text, std::string_view besides) {
  return !text.empty() && text.size() <= kWordLimit && std::all_of(text.begin(), text.end(), [besides](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           besides.find(c) != std::string_view::npos;
  });
}

}  // namespace sluice::detail
