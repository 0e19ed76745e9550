#pragma once

#include <string>
#include <vector>

namespace sluice::queue {

/// Which messages of its queue a job takes, and whose they are then: all hosts that run this job share them. Of a queue
/// that can be chosen from (an outbox); empty lists: all. A value.
struct Selection {
  std::string job;
  std::vector<std::string> types;
  std::vector<std::string> deny_types;
  std::vector<std::string> events;
  std::vector<std::string> skip_events;
  bool hold_dead = false;  ///< a dead letter's group waits for an operator
};

}  // namespace sluice::queue
