#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "host/queue/effects.hpp"
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

/// The queue that handlers send to.
inline constexpr const char* kReceipts = "receipts";

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
  /// Whether its threads wait by the machine's clock, so that a deadline in virtual time would be one of real time.
  virtual bool waits_for_machine() const { return false; }
};

/// A real store, which has a table of the user's beside its queues: accounts that are added to.
class StoreBackend : public Backend {
 public:
  /// A message of the queue is there that was not: its id, and what it is sorted by.
  using Stored = std::function<void(const std::string& id, const std::string& sent_at)>;

  /// Makes the table and the queue that handlers send to. Once, before the hosts. A store that makes faults by itself
  /// tells of what it stores.
  virtual void begin_trade(Stored stored) = 0;
  virtual queue::EffectWrite add_one(const std::string& account) = 0;
  /// A write whose condition fails.
  virtual queue::EffectWrite never() = 0;
  virtual std::map<std::string, std::int64_t> accounts() = 0;
  /// What is wrong inside the store; empty: nothing.
  virtual std::string damage() { return {}; }
};

}  // namespace sluice::simulation
