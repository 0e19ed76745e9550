#pragma once

#include <cstdint>
#include <string>

#include "host/cli/batch_committer.hpp"
#include "host/cli/commands/send_run.hpp"
#include "host/cli/console.hpp"
#include "host/cli/line_reader.hpp"
#include "host/cli/message_template.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

/// Sends one message for each line of input that a run wants, in batches, in constant memory, and prints the id of each
/// message once it is durable. At the end it names every line that was not stored. A batch is sent while the next one
/// is read. For one use, by one thread.
///
/// A batch goes off when it is full or when the input pauses, so that a slow producer's lines do not wait.
class BulkSender {
 public:
  using Options = BatchCommitter::Options;

  /// The references outlive it.
  BulkSender(Options options, SendRun run, queue::Sender& sender, QueueSession& session, MessageTemplate& messages,
             Console& console);

  /// Until the end of input, the first error, an interruption, or nobody reads the ids any more.
  Exit run(int input);
  /// How many messages are stored, once `run` has returned.
  std::uint64_t sent() const { return committer_.sent(); }

 private:
  LineReader::Status read(LineReader& reader, const InterruptFlag& interrupt);
  /// Adds a line to the batch.
  void add(std::string_view line);
  /// Counts a line that no message fits in, and refuses it where the run wants it.
  void refuse_long_line();
  bool full() const;
  /// Hands the batch over; false when that ends the command.
  bool pass_on();
  Exit finish(LineReader::Status last, int failure, bool interrupted);
  std::string so_far() const;
  /// Why it ended, and how the lines that are missing are sent.
  Exit unfinished(int code, std::vector<std::string> reasons, std::string summary, bool at_end) const;

  const bool stop_at_refusal_;
  const SendRun run_;
  const std::size_t batch_size_;
  MessageTemplate& messages_;
  Console& console_;
  BatchCommitter committer_;
  BatchCommitter::Batch batch_;
  std::size_t batch_bytes_ = 0;
  std::uint64_t line_ = 0;
};

}  // namespace sluice::cli
