#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/cli/command.hpp"
#include "host/cli/shell/shell.hpp"

namespace sluice::cli {

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
/// remembered and added to each command that takes them and does not name its own.
class QueueShell final : public Shell {
 public:
  QueueShell(RememberedOptions options, QueueShellSurroundings surroundings)
      : options_(std::move(options)), surroundings_(std::move(surroundings)) {}

  std::string greeting() const override;
  std::string prompt() const override;
  Next step(const std::string& line, const ShellOutput& output) override;
  std::string farewell() const override { return {}; }
  Completion complete(std::string_view before_cursor) override;
  bool may_be_kept(const std::string& line) const override;
  /// The exit code of the last command that failed; 0: none has.
  int last_failure() const { return last_failure_; }

 private:
  using Words = std::vector<std::string>;

  // Each does a line, and returns its exit code.
  int help(const Words& words, const ShellOutput& output);
  int use(const Words& words, const ShellOutput& output);
  int select(const Words& words, const ShellOutput& output);
  int run_command(const Words& words, const ShellOutput& output);
  int run(const Command& command, const Words& words);
  /// What is remembered, for such a line. `here`: it is about the queue in use, as far as its options say.
  RememberedOptions remembered_for(const Arguments& line, bool here) const;
  void note_id(const std::string& id);

  /// What may stand after those words, as it is typed.
  std::vector<std::string> candidates(Words before, std::string_view typed);
  std::vector<std::string> known_ids();

  RememberedOptions options_;
  QueueShellSurroundings surroundings_;
  int last_failure_ = kExitOk;
  std::string selected_;                            // an id; empty: none
  std::vector<std::string> recent_;                 // ids that were named
  std::optional<std::vector<std::string>> listed_;  // ids that the store gave, until the next command
};

}  // namespace sluice::cli
