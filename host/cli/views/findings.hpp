#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "host/cli/arguments.hpp"
#include "host/cli/console.hpp"

namespace sluice::cli {

/// What a look has found, in each way to show it. Only the one that was asked for is made.
struct Findings {
  bool none = false;
  std::string_view nothing;  ///< what people are told then; programs get an empty list
  std::function<std::string()> json;
  std::function<std::string(bool colours)> text;
};

void show(const Findings& found, Output output, Console& console);

}  // namespace sluice::cli
