#pragma once

#include <cstddef>
#include <string>

#include "base/clock.hpp"

namespace sluice::queue::outbox {

/// Is told what becomes of an outbox's rows. Thread-safe; a call costs next to nothing, for there is one for each row.
class OutboxObserver {
 public:
  OutboxObserver() = default;
  OutboxObserver(const OutboxObserver&) = delete;
  OutboxObserver& operator=(const OutboxObserver&) = delete;
  virtual ~OutboxObserver() = default;

  /// A row of this aggregate type is marked as sent; `latency`: since its created_at, or since it was fetched first.
  virtual void published(const std::string& type, Duration latency) = 0;
  /// One is marked as failed, for this reason.
  virtual void failed(const std::string& type, const std::string& reason) = 0;
  /// So many rows were marked in one transaction.
  virtual void marked(std::size_t rows) = 0;
};

}  // namespace sluice::queue::outbox
