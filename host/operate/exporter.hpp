#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/store.hpp"

namespace sluice::operate {

/// Writes a queue as lines, see record_line.hpp. A step function over pages, in the memory of one page; one thread.
///
/// The queue goes on living meanwhile: a record that moves behind the place that was read comes a second time, and one
/// that moves before it is missed. A queue that nobody works on is copied whole.
class Exporter {
 public:
  struct Options {
    std::string queue;
    std::vector<queue::QueueType> halves;                     ///< in this order
    std::function<bool(const queue::StoredMessage&)> wanted;  ///< empty: all
    std::uint64_t limit = 0;                                  ///< most lines; 0: no limit
  };

  /// The store must outlive it.
  Exporter(queue::Store& store, Options options) : store_(store), options_(std::move(options)) {}

  /// Appends the next page's lines to `out`. False: that was the end.
  Result<bool> step(std::string& out, Deadline deadline);

  std::uint64_t exported() const { return exported_; }
  std::uint64_t looked_at() const { return looked_at_; }

 private:
  void append(std::string& out, const queue::ListPage& page);
  void adapt(std::size_t bytes);

  queue::Store& store_;
  const Options options_;
  std::size_t half_ = 0;
  std::string cursor_;
  std::size_t page_size_ = 16;
  std::uint64_t exported_ = 0;
  std::uint64_t looked_at_ = 0;
};

}  // namespace sluice::operate
