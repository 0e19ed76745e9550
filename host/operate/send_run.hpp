#pragma once

#include <boost/core/noncopyable.hpp>
#include <boost/icl/closed_interval.hpp>
#include <boost/icl/interval_set.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"

/// What is sent: messages made of texts, and which lines of an input, so that a sending can be repeated for those that
/// it did not store.
namespace sluice::operate {

/// Lines of an input, counted from 1, as people write them: "3,51-53,101-". The last range may have no end. A value.
class LineRanges {
 public:
  /// Nothing for a text that is not that, or whose ranges do not rise.
  static std::optional<LineRanges> parse(std::string_view text);

  void add(std::uint64_t line) { ranges_.add(line); }
  /// This line and all behind it.
  void add_from(std::uint64_t line);
  void add(const LineRanges& lines) { ranges_ += lines.ranges_; }

  bool empty() const { return ranges_.empty(); }
  /// How many ranges they are.
  std::size_t count() const { return ranges_.iterative_size(); }
  bool contains(std::uint64_t line) const { return boost::icl::contains(ranges_, line); }
  /// Those of them that come behind this one.
  LineRanges behind(std::uint64_t line) const;
  /// The same lines, or more where that takes more than `most` ranges: the last one then has no end.
  LineRanges at_most(std::size_t most) const;
  std::string text() const;

 private:
  boost::icl::interval_set<std::uint64_t, std::less, boost::icl::closed_interval<std::uint64_t>> ranges_;
};

/// Lines that may have been stored, by the moments of which their ids were made (queue::Sender). Few. A value.
class UnsureLines {
 public:
  void add(const std::string& moment, std::uint64_t line) { by_moment_[moment].add(line); }
  /// Empty for a line that is not among them.
  std::string moment_of(std::uint64_t line) const;
  /// How many ranges they are.
  std::size_t count() const;
  /// Those of them that come behind this one.
  UnsureLines behind(std::uint64_t line) const;
  void add(const UnsureLines& lines);
  /// "@MOMENT:LINES" of each.
  std::string text() const;
  /// Nothing for what is no such text; there is one for no lines, too.
  static std::optional<UnsureLines> parse(std::string_view text);

 private:
  std::map<std::string, LineRanges> by_moment_;
};

/// One sending of an input, which may be repeated for the lines that it did not store. A line that may have been stored
/// has the same message id in the repetition, so that it is not stored twice. A value.
class SendRun {
 public:
  /// More ranges of lines than a command line holds without harm.
  static constexpr std::size_t kMostRanges = 1000;

  /// A new one, of all lines.
  static SendRun begin(Random& random);
  /// From what `token` gave; nothing for a text that is none.
  static std::optional<SendRun> resume(std::string_view token);

  const std::string& name() const { return name_; }
  bool repeats() const { return repeats_; }
  bool wants(std::uint64_t line) const { return lines_.contains(line); }
  /// What it wants behind that line.
  LineRanges rest(std::uint64_t line) const { return lines_.behind(line); }
  /// What an earlier one of this input may have stored, where ids are made of moments.
  const UnsureLines& unsure() const { return unsure_; }
  /// A UUID (version 8) out of the run and the line.
  std::string id(std::uint64_t line) const;
  /// With which the same input is sent again for these lines alone.
  std::string token(const LineRanges& missing, const UnsureLines& unsure) const;

 private:
  SendRun(std::string name, LineRanges lines, UnsureLines unsure, bool repeats)
      : name_(std::move(name)), lines_(std::move(lines)), unsure_(std::move(unsure)), repeats_(repeats) {}

  std::string name_;  ///< the UUID's first four groups
  LineRanges lines_;
  UnsureLines unsure_;
  bool repeats_;
};

/// What messages are made from: what all of them share, and a body for each. A value.
struct MessageTemplate {
  queue::NewMessage shared{};  ///< delay, attributes, keys
  std::string dedup_from{};    ///< a JSON pointer into the body; empty: the id is shared's
  std::string unique_from{};   ///< likewise
  std::string content_type{};  ///< what the sender named; empty: by the body

  /// A message of a JSON text: a JSON string becomes text/plain with its characters, anything else application/json as
  /// it is written. The error says what is wrong with the JSON.
  Result<queue::NewMessage> from_json(std::string_view json) const;
  Result<queue::NewMessage> from_text(std::string text) const;
  /// JSON if it is that, else plain text.
  Result<queue::NewMessage> from_json_or_text(std::string_view text) const;
  /// application/json when the name ends in .json and the bytes are JSON, text/plain when they are UTF-8, otherwise
  /// application/octet-stream.
  Result<queue::NewMessage> from_file(const std::string& name, std::string bytes) const;

 private:
  queue::NewMessage make(std::string body, std::string_view by_body) const;
  /// Its keys, where they are taken from the body. The error says what the body lacks.
  Result<queue::NewMessage> keyed(queue::NewMessage message) const;
};

/// Sends batches of messages on a thread of its own, one after the other, while the next one is read; gives the
/// messages their ids, prints the id of each once it is durable, in their order, and remembers every line that was not
/// stored. A message that is there already, by its id, is one that an earlier try has stored.
///
/// Everything here is for one caller's thread. The listener hears from the committer's own until `drain` has returned.
class BatchCommitter : boost::noncopyable {
 public:
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

  /// `keep_going`: a refused line is named and passed over; otherwise its batch is the last. The references outlive it.
  BatchCommitter(bool keep_going, const SendRun& input, queue::Sender& sender, const Clock& clock, Listener listener);

  /// Waits until the batch before is sent, and sends this one meanwhile. False when nothing more is to be sent: a line
  /// was refused, or nobody reads the ids any more.
  bool pass_on(Batch batch);
  /// Waits until everything is sent; false as above.
  bool drain();

  // Once `drain` has returned.

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
  bool commit(Batch batch);
  /// What became of its messages. Those that may have been stored before are looked for, the others are new.
  std::vector<queue::SendResult> send(std::vector<queue::NewMessage> messages, const std::vector<std::uint64_t>& lines);
  Result<std::string> id_of(const queue::NewMessage& message, std::uint64_t line) const;
  bool may_be_stored(std::uint64_t line) const;
  void note(std::uint64_t line, queue::SendResult& result, std::vector<Refusal>& refusals);
  bool refuse(const Refusal& refusal);
  bool too_many() const;
  void show_progress();
  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(30)); }

  // Fixed after construction.
  const bool keep_going_;
  const SendRun& run_;
  queue::Sender& sender_;
  const Clock& clock_;
  const Listener listener_;

  // Touched only by the thread that sends, while it runs.
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

  bool stopped_ = false;  ///< nothing is sent any more

  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace sluice::operate
