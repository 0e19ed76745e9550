#pragma once

#include <string>
#include <vector>

#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

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

}  // namespace sluice::cli::convert
