#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

/// The lines of former dialogues, in a file that only its owner can read. A value that names the file.
///
/// History is a comfort: what cannot be read or written is passed over in silence.
class HistoryFile {
 public:
  /// $XDG_STATE_HOME/sluice/NAME, else ~/.local/state/sluice/NAME; nothing when the environment names no such place.
  static std::optional<HistoryFile> at_usual_place(const std::string& name);

  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// The newest lines, at most 1000, oldest first. Cuts a file that has grown well beyond that.
  std::vector<std::string> load() const;
  /// Adds one line at the end; two dialogues at once do not mix their lines up. A line with a line break in it is
  /// passed over. Makes the file (mode 0600) and its folder (0700) where they are missing.
  void append(const std::string& line) const;

 private:
  std::string path_;
};

}  // namespace sluice::cli
