#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/queue/source.hpp"

namespace sluice::simulation {

/// What really happened, whatever the hosts were told; finds what must never happen. Not thread-safe.
class Truth {
 public:
  using Host = int;

  struct Rules {
    std::uint32_t max_attempts = 0;
    bool discards_when_used_up = false;  ///< messages may be removed that no handler was done with
    /// Leases may end in the store earlier than their hosts can know: a clock has jumped, messages were taken away.
    bool leases_end_unseen = false;
    /// Somebody outside has claimed messages, and nobody knows what he did.
    bool strangers = false;
    /// Handlers are given up that finish later, when their message may be on its way to another worker.
    bool late_handlers = false;
    /// Messages may end before a handler sees them: by their idempotency keys.
    bool turned_away = false;
    /// Those that are turned away are kept, and come again with an attempt that no handler made.
    bool kept_at_door = false;
  };

  explicit Truth(const Rules& rules) : rules_(rules) {}

  void sent(const std::string& id) { sent_.insert(id); }
  /// The store granted a lease to `host`.
  void granted(Host host, const queue::Receipt& receipt);
  /// Somebody outside of the simulated hosts has claimed everything that was in flight.
  void taken_away() { holder_.clear(); }
  /// The same, as its host sees it.
  void delivered(const queue::Delivery& delivery);
  /// `host` sends a write with this receipt.
  void written_with(Host host, const queue::Receipt& receipt);
  void settled(Host host, const queue::Completion& completion);
  void started(Host host, const queue::Message& message);
  void finished(Host host, const std::string& id, plugin::OutcomeStatus outcome);
  /// The store would not have what the handler staged, so that it was not done after all.
  void refused(Host host, const std::string& id);
  /// An operator has put a dead letter back, or taken it away.
  void redriven(const std::string& id) { dead_.erase(id); }
  void taken_out(const std::string& id);

  void violation(std::string what) { violations_.push_back(std::move(what)); }
  const std::vector<std::string>& violations() const { return violations_; }
  const std::set<std::string>& all_sent() const { return sent_; }
  bool removed(const std::string& id) const { return removed_.contains(id); }
  bool dead(const std::string& id) const { return dead_.contains(id); }
  /// With which receipt it was removed, by a host; nothing: it was not, or an operator did.
  bool removed_by(Host host, const queue::Receipt& receipt) const;
  bool removed_by_operator(const std::string& id) const;
  std::uint64_t settlements() const { return settlements_; }
  std::uint64_t handled() const { return handled_; }

 private:
  struct Holder {
    Host host = 0;
    std::int64_t version = 0;
  };
  // Whom to blame.
  struct Record {
    std::uint32_t starts = 0;
    std::uint32_t unseen = 0;  ///< claims as a suspect that no handler saw: they count all the same
    bool suspect_claimed = false;
  };

  const Rules rules_;
  std::set<std::string> sent_;
  std::map<std::string, std::optional<Holder>> removed_;  ///< by whom; nothing: an operator
  std::set<std::string> dead_;
  std::map<std::string, Holder> holder_;
  std::map<std::pair<std::string, std::int64_t>, Host> grants_;
  std::map<std::string, Record> records_;
  std::map<std::pair<Host, std::string>, std::set<plugin::OutcomeStatus>> outcomes_;
  std::vector<std::string> violations_;
  std::uint64_t settlements_ = 0;
  std::uint64_t handled_ = 0;
};

}  // namespace sluice::simulation
