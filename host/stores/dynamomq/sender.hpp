#pragma once

#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/stores/dynamomq/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Sends messages to one queue. Thread-safe.
///
/// An INSERT fails by itself when the id is there, so that no read comes first. One whose answer was lost is repeated;
/// when the repeat finds the id taken, the record tells whether it is our own.
class Sender {
 public:
  Sender(StoreParts parts, const QueueTable& place, Random& random)
      : parts_(parts), place_(place), random_(random), build_(place.table) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline);

 private:
  struct Draft;

  std::vector<Draft> draft(std::span<const NewMessage> messages, std::vector<SendResult>& results);
  void recognise_own(const std::vector<Draft>& drafts, const std::vector<StatementOutcome>& outcomes,
                     std::vector<SendResult>& results, Deadline deadline);

  StoreParts parts_;
  const QueueTable& place_;
  Random& random_;
  StatementBuilder build_;
};

}  // namespace sluice::queue::dynamomq
