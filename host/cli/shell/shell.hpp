#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

/// Where a shell's text goes: standard output for what it found, standard error for why it did not.
struct ShellOutput {
  std::function<void(std::string_view text)> out;
  std::function<void(std::string_view line)> note;
};

/// What may stand at the end of a half-written line.
struct Completion {
  std::size_t replaced = 0;        ///< bytes at the end of the line that each of the words replaces
  std::vector<std::string> words;  ///< as they are typed, quoted where they must be; sorted
};

/// A dialogue with an operator, as a step function: it never reads by itself. One thread.
class Shell {
 public:
  enum class Next { go_on, end };

  Shell() = default;
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;
  virtual ~Shell() = default;

  /// Said once before the first prompt.
  virtual std::string greeting() const = 0;
  /// Stands before each line. Only its last line is edited beside.
  virtual std::string prompt() const = 0;
  /// Does what one line says. A failure is a text like any other.
  virtual Next step(const std::string& line, const ShellOutput& output) = 0;
  /// Said at the end, however it came about.
  virtual std::string farewell() const = 0;

  /// What the text before the cursor may go on with. May ask the store.
  virtual Completion complete(std::string_view before_cursor) = 0;
  /// Whether a line may be written to a file: false when it holds content of messages.
  virtual bool may_be_kept(const std::string& line) const = 0;
};

}  // namespace sluice::cli
