#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/cli/command.hpp"

namespace sluice::cli {

/// What may stand at the end of a half-written line.
struct Completion {
  std::size_t replaced = 0;        ///< bytes at the end of the line that each of the words replaces
  std::vector<std::string> words;  ///< as they are typed, quoted where they must be; sorted
};

/// A dialogue with an operator, as a step function: it never reads lines by itself, and says on its console what it
/// found, or why it did not. One thread.
class Shell : boost::noncopyable {
 public:
  enum class Next { go_on, end };

  virtual ~Shell() = default;

  /// Said once before the first prompt.
  virtual std::string greeting() const = 0;
  /// Stands before each line. Only its last line is edited beside.
  virtual std::string prompt() const = 0;
  /// Does what one line says. A failure is a text like any other.
  virtual Next step(const std::string& line) = 0;
  /// Said at the end, however it came about.
  virtual std::string farewell() const = 0;
  /// The exit code of the last command that failed; 0: none has.
  virtual int last_failure() const = 0;

  /// What the text before the cursor may go on with. May ask the store.
  virtual Completion complete(std::string_view before_cursor) = 0;
  /// Whether a line may be written to a file: false when it holds content of messages.
  virtual bool may_be_kept(const std::string& line) const = 0;
};

/// What the shell of `sluice` asks of its surroundings; called by `step` and `complete` only.
struct QueueShellSurroundings {
  /// Runs one command line, as run_command_line.
  std::function<int(const std::vector<std::string>& words, const RememberedOptions& remembered)> run;
  /// How a command with these options would end that only opens its queue.
  std::function<Exit(const RememberedOptions& options)> try_open;
  std::function<std::vector<std::string>()> queues;                               ///< known by name, for completion
  std::function<std::vector<std::string>(const RememberedOptions& options)> ids;  ///< the queue's first, for completion
};

/// The commands of the command line as a dialogue: options given at its start, the queue and the selected message are
/// remembered and added to each command that takes them and does not name its own. The console outlives it.
std::unique_ptr<Shell> queue_shell(RememberedOptions options, QueueShellSurroundings surroundings, Console& console);

class QueueSession;

/// DynamoMQ's interactive mode: its commands, prompts and texts. The references outlive it.
///
/// What differs are defects there: `ls` gives one entry a line, `purge` removes every message and asks first where
/// somebody can be asked, `redrive` resets the receive count, and the selected message is read anew after a command
/// that changes it, or dropped when it is gone.
std::unique_ptr<Shell> dynamomq_shell(QueueSession& session, Console& console);

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

/// Shows the prompt and waits for a line, which comes without its line break.
using ReadLine = std::function<TypedLine(const std::string& prompt)>;

/// The next line of a descriptor, read byte by byte, so that what follows it is left to the command on it.
TypedLine read_plain_line(int descriptor);

/// Edits lines on the terminal that standard input and output are: history, the oldest line first, completion, the
/// user's own ~/.editrc. Takes SIGINT's key off the terminal while a line is edited. Empty when the terminal cannot be
/// used. At most one at a time.
ReadLine edited_lines(const std::vector<std::string>& history,
                      std::function<Completion(std::string_view before_cursor)> complete);

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

// Each reads commands until the end of input: with line editing, history and completion on a terminal, line by line
// elsewhere. The arguments are those of a command with the store flags; what they say of the queue holds for the whole
// dialogue. A command that fails says so and the dialogue goes on.

/// The commands of the command line, with the queue and the selected message remembered.
Exit run_shell(const Arguments& arguments, Console& console);
/// DynamoMQ's interactive mode: its commands, prompts and texts.
Exit run_dynamomq_shell(const Arguments& arguments, Console& console);

}  // namespace sluice::cli
