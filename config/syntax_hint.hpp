#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace sluice::config {

/// What a person meant where the TOML parser stopped, at the place where it is to be mended: a text without quotes, a
/// key or a table that is there twice. Nothing for other slips. `at` is where the parser stopped, and `complaint` what
/// it said.
std::optional<ConfigError> syntax_hint(std::string_view text, const Place& at, std::string_view complaint);

}  // namespace sluice::config
