#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/cli/console.hpp"
#include "host/cli/line_reader.hpp"
#include "host/cli/message_template.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

/// Sends one message for each line of input, in batches, in constant memory. Prints the id of each message once it is
/// durable. One thread; for one use.
///
/// A batch goes off when it is full or when the input pauses, so that a slow producer's lines do not wait.
class BulkSender {
 public:
  struct Options {
    std::string queue;
    bool keep_going = false;  ///< a bad line or a refused message is reported and passed over
  };

  BulkSender(Options options, QueueSession& session, MessageTemplate& messages, Console& console)
      : options_(std::move(options)), session_(session), messages_(messages), console_(console) {}

  /// Until the end of input, the first error, an interruption, or nobody reads the ids any more.
  Exit run(int input);
  /// How many messages are stored so far.
  std::uint64_t sent() const { return sent_; }

 private:
  /// Adds a line to the batch; false when the line ends the command.
  bool add(std::string_view line);
  /// Sends the batch; false when that ends the command.
  bool flush();
  bool refuse(std::uint64_t line, const std::string& why);
  Exit finish(LineReader::Status last, bool interrupted);
  std::string so_far() const;
  void show_progress();

  const Options options_;
  QueueSession& session_;
  MessageTemplate& messages_;
  Console& console_;
  std::vector<queue::NewMessage> batch_;
  std::vector<std::uint64_t> batch_lines_;  ///< where each message of the batch stood
  std::string ids_;
  std::uint64_t line_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t refused_ = 0;
  std::string stopped_by_;  ///< the error that ended it
  SteadyTime started_{};
  SteadyTime shown_{};
};

}  // namespace sluice::cli
