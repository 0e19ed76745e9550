#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/shell/shell.hpp"

namespace sluice::cli {

/// What somebody typed.
struct TypedLine {
  enum class Kind {
    text,
    dropped,   ///< Ctrl-C: the line is as if it had never been begun
    too_long,  ///< beyond the limit of a line; the whole of it was passed over
    end,
  };
  Kind kind = Kind::end;
  std::string text;
};

/// Where a shell's lines come from. One thread.
class LineSource {
 public:
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  virtual ~LineSource() = default;

  /// Shows the prompt and waits for a line, which comes without its line break.
  virtual TypedLine read(const std::string& prompt) = 0;
  /// Puts a line into the history that the arrow keys go through.
  virtual void remember(const std::string& line) = 0;
};

/// Reads a descriptor byte by byte, so that what follows a line is left to the command on it. `show` gets the prompts.
std::unique_ptr<LineSource> make_plain_lines(int descriptor, std::function<void(const std::string& prompt)> show);

struct EditedLinesOptions {
  std::vector<std::string> history;  ///< oldest first
  std::function<Completion(std::string_view before_cursor)> complete;
};

/// Edits lines on the terminal that standard input and output are: history, completion, the user's own ~/.editrc.
/// Takes SIGINT's key off the terminal while a line is edited. Null when the terminal cannot be used. At most one at a
/// time.
std::unique_ptr<LineSource> make_edited_lines(EditedLinesOptions options);

}  // namespace sluice::cli
