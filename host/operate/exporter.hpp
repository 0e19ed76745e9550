#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// Writes a queue as lines, see record_line.hpp. A step function in the memory of one page and the lines of one step;
/// one thread.
///
/// The queue goes on living meanwhile: a record that moves behind the place that was read comes a second time, and one
/// that moves before it is missed. A queue that nobody works on is copied whole.
class Exporter {
 public:
  struct Options {
    std::vector<queue::Half> halves;                          ///< in this order
    std::function<bool(const queue::StoredMessage&)> wanted;  ///< empty: all
    std::uint64_t limit = 0;                                  ///< most lines; 0: no limit
    bool consistent = false;                                  ///< as ListRequest's
  };

  /// `queue` must outlive it.
  Exporter(queue::Operator& queue, Options options) : queue_(queue), options_(std::move(options)) {}

  /// Appends some lines to `out`: of a page as much as kStepBytes hold, at least one record. False: that was the end.
  Result<bool> step(std::string& out, Deadline deadline);

  static constexpr std::size_t kStepBytes = 1024UL * 1024;

  std::uint64_t exported() const { return exported_; }
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  Result<void> list(Deadline deadline);
  void append(std::string& out);
  void adapt(std::size_t bytes);
  bool enough() const { return options_.limit != 0 && exported_ >= options_.limit; }

  queue::Operator& queue_;
  const Options options_;
  std::size_t half_ = 0;
  std::string cursor_;
  std::size_t page_size_ = 16;
  std::vector<queue::StoredMessage> page_;
  std::size_t next_ = 0;  // in page_
  std::uint64_t exported_ = 0;
  std::uint64_t looked_at_ = 0;
};

}  // namespace sluice::operate
