#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

/// Writes a TOML file line by line.
class TomlText {
 public:
  TomlText() = default;

  void comment(std::string_view line);
  /// An empty line and "[name]".
  void table(std::string_view name);
  void string(std::string_view key, std::string_view value);
  void number(std::string_view key, std::int64_t value);
  void fraction(std::string_view key, double value);
  void flag(std::string_view key, bool value);
  void duration(std::string_view key, config::Duration value);
  void strings(std::string_view key, const std::vector<Text>& values);
  const std::string& text() const { return text_; }

 private:
  void line(std::string_view key, std::string_view value);

  std::string text_;
};

}  // namespace sluice::cli::convert
