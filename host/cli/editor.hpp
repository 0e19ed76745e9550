#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::cli {

/// A text in a file that only this user may read, for an editor. The file goes with the object unless it is kept.
class EditorFile {
 public:
  static Result<EditorFile> create(const std::string& text);
  ~EditorFile();
  EditorFile(EditorFile&& other) noexcept;
  EditorFile& operator=(EditorFile&&) = delete;

  const std::string& path() const { return path_; }
  Result<std::string> read() const;
  /// Leaves the file where it is, for its author to take up.
  void keep() { kept_ = true; }

 private:
  explicit EditorFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  bool kept_ = false;
};

/// $VISUAL, $EDITOR, or vi where there is a terminal; empty when there is none.
std::string editor_command(bool terminal);

/// Opens the file with that command, which may have options, and waits for its end. An error when it cannot be run or
/// ends with another code than 0. Ctrl-C is the editor's meanwhile.
Result<void> run_editor(const std::string& command, const std::string& path);

}  // namespace sluice::cli
