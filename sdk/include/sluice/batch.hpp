#pragma once

/// Handlers that work on several messages in one call: <sluice/handler.hpp> includes this.
///
///     std::vector<sluice::Outcome> handle(std::span<const sluice::Message> messages, sluice::BatchContext& batch);
///
/// returns an outcome for each message, in their order; `sluice::Outcome handle(...)` one for all of them. An
/// exception, or another number of outcomes, is a fault of all. How many messages come together is the job's
/// `max_batch` and `max_wait`; a suspect message comes alone.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sluice/abi.h"
#include "sluice/batch.h"
#include "sluice/context.hpp"
#include "sluice/message.hpp"
#include "sluice/outcome.hpp"

namespace sluice {

namespace detail {

/// As many objects side by side as it is made for; they need not be movable.
template <typename T>
class Row {
 public:
  explicit Row(std::size_t room) : room_(room), first_(std::allocator<T>().allocate(room)) {}
  ~Row() {
    std::destroy_n(first_, size_);
    std::allocator<T>().deallocate(first_, room_);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  template <typename... Args>
  void add(Args&&... args) {
    std::construct_at(first_ + size_, std::forward<Args>(args)...);
    ++size_;
  }
  T& operator[](std::size_t i) { return first_[i]; }
  std::span<T> all() { return {first_, size_}; }
  std::span<const T> all() const { return {first_, size_}; }

 private:
  const std::size_t room_;
  T* const first_;
  std::size_t size_ = 0;
};

}  // namespace detail

/// One call for several messages. Valid until `handle` returns.
class BatchContext {
 public:
  explicit BatchContext(std::span<Context> contexts) : contexts_(contexts) {}
  BatchContext(const BatchContext&) = delete;
  BatchContext& operator=(const BatchContext&) = delete;

  std::size_t size() const { return contexts_.size(); }
  /// Of the message at this place: its log, its stop, and what is to be committed with its end.
  Context& context(std::size_t i) { return contexts_[i]; }

  /// True once the call should finish: the host drains, it has timed out, or none of its messages is ours any more.
  bool stop_requested() const {
    return std::all_of(contexts_.begin(), contexts_.end(), [](const Context& one) { return one.stop_requested(); });
  }
  /// Until the call times out: zero once it has, `nanoseconds::max()` without a limit.
  std::chrono::nanoseconds time_left() const {
    std::chrono::nanoseconds most{};
    for (const Context& one : contexts_) {
      most = std::max(most, one.time_left());
    }
    return most;
  }

 private:
  const std::span<Context> contexts_;
};

namespace detail {

template <typename H>
concept HandlesBatchOneByOne = requires(H& handler, std::span<const Message> messages, BatchContext& batch) {
  { handler.handle(messages, batch) } -> std::same_as<std::vector<Outcome>>;
};
template <typename H>
concept HandlesBatchAtOnce = requires(H& handler, std::span<const Message> messages, BatchContext& batch) {
  { handler.handle(messages, batch) } -> std::same_as<Outcome>;
};
template <typename H>
concept HandlesBatch = HandlesBatchOneByOne<H> || HandlesBatchAtOnce<H>;

}  // namespace detail

}  // namespace sluice
