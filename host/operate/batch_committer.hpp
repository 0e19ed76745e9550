#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "host/operate/send_run.hpp"
#include "host/queue/sender.hpp"

namespace sluice::operate {

/// Sends batches of messages on a thread of its own, one after the other, while the next one is read; gives the
/// messages their ids, prints the id of each once it is durable, in their order, and remembers every line that was not
/// stored. A message that is there already, by its id, is one that an earlier try has stored.
///
/// Everything here is for one caller's thread. The listener hears from the committer's own until `drain` or `finish`
/// has returned.
class BatchCommitter {
 public:
  struct Options {
    bool keep_going = false;  ///< a refused line is named and passed over; otherwise its batch is the last
  };
  struct Refusal {
    std::uint64_t line = 0;
    std::string why;
  };
  struct Batch {
    std::vector<queue::NewMessage> messages;  ///< without ids
    std::vector<std::uint64_t> lines;         ///< where each of them stood
    std::vector<Refusal> refusals;            ///< lines that are no message
    std::uint64_t last_line = 0;              ///< up to which the input was read

    bool empty() const { return messages.empty() && refusals.empty(); }
  };

  /// Who is told of it.
  struct Listener {
    std::function<void(const std::string& ids)> stored;  ///< a line each
    std::function<void(const Refusal& refusal)> passed_over;
    std::function<void(std::uint64_t sent, double seconds)> progress;  ///< a few times a second
    std::function<bool()> listens;                                     ///< false: nobody reads the ids any more
    std::function<std::string(const Error& error)> explained;
  };

  /// The references outlive it.
  BatchCommitter(Options options, const SendRun& input, queue::Sender& sender, const Clock& clock, Listener listener);
  /// Waits for the batch that is being sent; one that waits is not sent.
  ~BatchCommitter();
  BatchCommitter(const BatchCommitter&) = delete;
  BatchCommitter& operator=(const BatchCommitter&) = delete;

  /// Hands over a batch; blocks while another one waits, so that at most two are here. False when nothing more is to be
  /// sent: a line was refused, or nobody reads the ids any more.
  bool pass_on(Batch batch);
  /// Waits until everything is sent; false as above.
  bool drain();
  /// Ends it; what waits is sent before, or thrown away.
  void finish(bool send_rest);

  // Once `finish` has returned.

  std::uint64_t sent() const { return sent_; }
  /// Of those, how many an earlier try had stored.
  std::uint64_t existing() const { return existing_; }
  std::uint64_t refused() const { return refused_; }
  /// With which the same input is sent again for what was not stored. `at_end`: nothing comes behind the lines up to
  /// `committed`.
  std::string token(bool at_end) const;
  /// All lines that were not stored.
  LineRanges missing(bool at_end) const;
  /// The last line of the last batch that was sent.
  std::uint64_t committed() const { return committed_; }
  /// Why lines were refused in the batch that ended it, one text for the lines with the same reason; empty when none
  /// has.
  std::vector<std::string> stopped_by() const;

 private:
  void run();
  bool commit(Batch batch);
  /// What became of its messages. Those that may have been stored before are looked for, the others are new.
  std::vector<queue::SendResult> send(std::vector<queue::NewMessage> messages, const std::vector<std::uint64_t>& lines);
  std::vector<queue::SendResult> send(std::vector<queue::NewMessage> messages, bool fresh);
  Result<std::string> id_of(const queue::NewMessage& message, std::uint64_t line) const;
  bool may_be_stored(std::uint64_t line) const;
  void note(std::uint64_t line, queue::SendResult& result, std::vector<Refusal>& refusals);
  bool refuse(const Refusal& refusal);
  bool too_many() const;
  void show_progress();
  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(30)); }

  // Fixed after construction.
  const Options options_;
  const SendRun& run_;
  queue::Sender& sender_;
  const Clock& clock_;
  const Listener listener_;

  // Touched only by the thread, while it runs.
  std::string ids_;
  std::uint64_t sent_ = 0;
  std::uint64_t existing_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t committed_ = 0;
  LineRanges missing_;
  UnsureLines unsure_;
  std::string moment_;  ///< of the ids of the current batch; empty where they are made of none
  /// In the order of their first lines.
  std::vector<std::pair<std::string, LineRanges>> reasons_;
  const SteadyTime started_;
  SteadyTime shown_;

  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  std::optional<Batch> waiting_ SLUICE_GUARDED_BY(mutex_);
  bool sending_ SLUICE_GUARDED_BY(mutex_) = false;
  bool closed_ SLUICE_GUARDED_BY(mutex_) = false;   ///< nothing comes any more
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;  ///< nothing is sent any more

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace sluice::operate
