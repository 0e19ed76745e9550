#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// The texts, with `between` between two of them.
template <typename Texts>
std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string all;
  for (const auto& text : texts) {
    all.append(all.empty() ? std::string_view() : between).append(text);
  }
  return all;
}

}  // namespace sluice
