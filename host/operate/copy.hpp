#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/operate/filter.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"

/// Copies of a queue, as lines of JSON.
namespace sluice::operate {

/// Writes a queue as lines. A step function in the memory of one page and the lines of one step;
/// one thread.
///
/// The queue goes on living meanwhile: a record that moves behind the place that was read comes a second time, and one
/// that moves before it is missed. A queue that nobody works on is copied whole.
class Exporter {
 public:
  struct Options {
    std::vector<queue::Half> halves;  ///< in this order
    Filter filter{};
    std::uint64_t limit = 0;  ///< most lines; 0: no limit
    bool consistent = false;  ///< as ListRequest's
  };

  /// The references must outlive it.
  Exporter(queue::Operator& queue, const Clock& clock, Options options)
      : queue_(queue), clock_(clock), options_(std::move(options)) {}

  /// Appends some lines to `out`: of a page as much as kStepBytes hold, at least one record. False: that was the end.
  Result<bool> step(std::string& out, Deadline deadline);

  static constexpr std::size_t kStepBytes = 1024UL * 1024;

  std::uint64_t exported() const { return exported_; }

 private:
  Result<void> list(Deadline deadline);
  void append(std::string& out);
  bool enough() const { return options_.limit != 0 && exported_ >= options_.limit; }

  queue::Operator& queue_;
  const Clock& clock_;
  const Options options_;
  std::size_t half_ = 0;
  std::string cursor_;
  std::size_t page_size_ = 16;
  std::vector<queue::StoredMessage> page_;
  std::size_t next_ = 0;  // in page_
  std::uint64_t exported_ = 0;
};

/// Reads a queue from lines, and writes the records in batches. A step function, in the memory of
/// one batch; one thread.
///
/// A record whose id the queue has already stays as it is there, so that a run that was broken off is repeated without
/// harm. A record in flight comes in visible, since nobody who works on it can settle it here; its version grows by
/// one, so that nobody settles it in the queue that it came from, either.
class Importer {
 public:
  struct Options {
    bool keep_leases = false;  ///< a record in flight stays hidden until its time
  };
  struct Counts {
    std::uint64_t imported = 0;
    std::uint64_t existing = 0;
    std::uint64_t refused = 0;
  };
  /// A line that is not imported, and why.
  struct Refusal {
    std::uint64_t line = 0;
    std::string reason;
  };

  /// The references must outlive it.
  Importer(queue::Operator& queue, const Clock& clock, Options options)
      : queue_(queue), clock_(clock), options_(options) {}

  /// Takes one line; an empty one is passed over. A refusal when it is no record.
  std::optional<Refusal> add(std::uint64_t line, std::string_view text);
  /// Counts a line as refused, for this reason.
  Refusal refuse(std::uint64_t line, std::string reason);
  /// True when the batch should be written before the next line.
  bool full() const;
  /// Writes the batch. Returns the records that the store does not take. An error when the store cannot go on: what is
  /// written is counted, the rest of the batch is not known to be there, and the same lines can be imported again.
  Result<std::vector<Refusal>> flush(Deadline deadline);

  const Counts& counts() const { return counts_; }
  /// The first line of what has been added and is not written yet; 0: there is none.
  std::uint64_t unwritten_line() const { return lines_.empty() ? 0 : lines_.front().number; }

 private:
  /// Where a record of the batch stood.
  struct Line {
    std::uint64_t number = 0;
    bool may_be_there = false;  ///< the answer to a try of ours was lost, and so what is there is taken for ours
  };

  void take(std::uint64_t line, queue::StoredMessage record);
  std::optional<Error> write_once(std::vector<Refusal>& refusals, Deadline deadline);
  void release(queue::StoredMessage& record) const;

  queue::Operator& queue_;
  const Clock& clock_;
  const Options options_;
  std::vector<queue::StoredMessage> batch_;
  std::vector<Line> lines_;  ///< of the batch
  std::unordered_set<std::string> ids_;
  /// A record whose id is in the batch already: it waits for the next one.
  std::optional<queue::StoredMessage> second_;
  std::uint64_t second_line_ = 0;
  std::size_t bytes_ = 0;
  Counts counts_;
};

}  // namespace sluice::operate
