#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/shell/shell.hpp"
#include "host/cli/words.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::cli {

/// What DynamoMQ's interactive mode says and asks of its surroundings.
struct DynamoMqSurroundings {
  std::string region;  ///< these three are shown in the welcome, empty ones empty
  std::string table;
  std::string endpoint;
  bool embedded = false;                                   ///< there is no AWS, and the endpoint is a file
  std::function<bool(std::string_view question)> confirm;  ///< none where nobody can be asked
  std::function<bool()> interrupted;                       ///< asked between the batches of a purge; none: never
};

/// DynamoMQ's interactive mode: its commands, prompts and texts.
///
/// What differs are defects there: `ls` gives one entry a line, `purge` removes every message and asks first where
/// somebody can be asked, `redrive` resets the receive count, and the selected message is read anew after a command
/// that changes it, or dropped when it is gone.
class DynamoMqShell final : public Shell {
 public:
  /// The references must outlive the shell.
  DynamoMqShell(DynamoMqOperations& operations, const Clock& clock, DynamoMqSurroundings surroundings)
      : operations_(operations), clock_(clock), surroundings_(std::move(surroundings)) {}

  std::string greeting() const override;
  std::string prompt() const override;
  Next step(const std::string& line, const ShellOutput& output) override;
  std::string farewell() const override { return "... Interactive is ending\n\n\n"; }
  Completion complete(std::string_view before_cursor) override;
  bool may_be_kept(const std::string&) const override { return true; }

 private:
  /// Text for standard output, or why there is none.
  using Answer = Result<std::string>;
  using Parameters = std::vector<std::string>;
  /// The commands, each a function that is given the shell.
  struct Commands;

  Answer answer(const TypedCommand& typed);
  /// What happened, and the statistics below it.
  Answer with_stats(std::string_view text, std::string_view headline);
  /// Selects the message as it is after a change of it.
  Result<void> keep_selected(Result<queue::StoredMessage> changed);
  /// Reads the selected message anew; drops it when it is gone.
  void refresh();

  DynamoMqOperations& operations_;
  const Clock& clock_;
  DynamoMqSurroundings surroundings_;
  std::optional<queue::StoredMessage> selected_;
};

}  // namespace sluice::cli
