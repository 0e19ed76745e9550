#pragma once

#include "host/queue/queues.hpp"
#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

/// What goes wrong between the hosts and the store, as chances of one call. Chosen for each run.
struct FaultMix {
  double throttled = 0;
  double unavailable = 0;
  double answer_lost = 0;  ///< the call took effect, its caller is told `unknown_outcome` or `timeout`
  double one_message = 0;  ///< of a settlement or extension, one message fails by itself
  double slow = 0;         ///< the call takes seconds
  Duration slow_call = std::chrono::seconds(3);
  bool settles_refused = false;  ///< no completion is written, whatever else works

  bool any() const { return throttled + unavailable + answer_lost + one_message + slow > 0; }
};

/// The store that simulated hosts work on.
class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// Queues as this host opens them; the same for the host's whole life.
  virtual queue::Queues& queues_of(Truth::Host host) = 0;
  /// Queues of somebody with whom nothing goes wrong.
  virtual queue::Queues& outside() = 0;
  /// Another program claims every message of this half that is held, and keeps it for two seconds.
  virtual void take_away(const queue::QueueAddress& address) = 0;

  /// Whether the store makes the faults by itself, and tells the Truth what took effect: then the way to it adds
  /// nothing but time.
  virtual bool is_real() const = 0;
  /// For a store that makes them by itself: what goes wrong from now on.
  virtual void set_faults(const FaultMix& faults) = 0;
};

}  // namespace sluice::simulation
