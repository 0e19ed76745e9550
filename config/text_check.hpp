#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"

namespace sluice::config {

/// What makes the bytes no text that a TOML parser should see, if anything does: not UTF-8, a zero byte, a line beyond
/// the limit, or a character outside ASCII that stands neither in a string nor in a comment.
std::optional<ConfigError> check_text(const std::string& text, const std::string& file);

}  // namespace sluice::config
