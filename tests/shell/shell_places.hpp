#pragma once

#include <functional>
#include <memory>
#include <string>

#include "host/cli/command.hpp"

namespace sluice::test {

/// A queue that a shell can be opened on.
class ShellPlace {
 public:
  ShellPlace() = default;
  ShellPlace(const ShellPlace&) = delete;
  ShellPlace& operator=(const ShellPlace&) = delete;
  virtual ~ShellPlace() = default;

  /// The options that name it.
  virtual cli::Arguments arguments() const = 0;
  virtual bool is_table() const = 0;
};

struct ShellPlaceKind {
  std::string name;
  /// Null where there is no emulator.
  std::function<std::unique_ptr<ShellPlace>()> make;
};

ShellPlaceKind sqlite_place();
ShellPlaceKind dynamo_place();
/// A table that does not exist: every request fails.
ShellPlaceKind missing_table_place();

}  // namespace sluice::test
