#pragma once

#include <string_view>

#include "sluice/abi.h"

namespace sluice::plugin {

/// A text that a plugin hands over. Empty where it has no address, whatever size it says.
inline std::string_view view(sluice_string text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

}  // namespace sluice::plugin
