#pragma once

#include <string>

#include "config/config.hpp"

namespace sluice::config {

/// What became of one string.
struct Expansion {
  std::string text;
  std::string error;  ///< empty when all went well
  bool from_environment = false;
};

/// Expands `${VAR}`, `${VAR:-default}` and `${VAR:?message}` as a shell does: the last two act when the variable is
/// unset or empty, and a default may itself hold expansions. `$${` stands for `${`; a `$` before anything else is a
/// `$`.
Expansion expand(const std::string& text, const Environment& environment);

}  // namespace sluice::config
