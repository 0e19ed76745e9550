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

/// A file to write, by its path below the output folder.
struct NewFile {
  std::string path;
  std::string text;
};

/// What a configuration of outbox-worker comes to. A value.
struct Conversion {
  std::vector<NewFile> files;
  std::vector<Remark> remarks;
  std::string complaints;  ///< what is wrong with its fields, in its own format; then there are no files
};

/// Reads the YAML of n-creativesystem/outbox-worker; `name` is what the outbox is called in the new files.
Conversion convert_worker_file(const std::string& text, const std::string& name,
                               const config::Environment& environment);

/// Copies a string where it stands; `needed`: blank is a complaint.
void copy(Fields& fields, const std::string& path, TomlText& toml, std::string_view key, bool needed = false);

/// The jobs of it.
std::vector<NewFile> write_jobs(Fields& fields, const std::string& name);

}  // namespace sluice::cli::convert
