#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/fleet/host_record.hpp"
#include "host/fleet/steering.hpp"

namespace sluice::fleet {

/// What stands for one host, from all boards together: what files say holds for the rest. A value.
struct HostSteering {
  std::set<std::string, std::less<>> paused_queues;
  std::set<std::string, std::less<>> paused_jobs;
  std::map<std::string, std::uint32_t, std::less<>> workers;  ///< by job
  std::string log_level;                                      ///< empty: the file's

  bool pauses(std::string_view job, std::string_view queue) const {
    return paused_jobs.find(job) != paused_jobs.end() || paused_queues.find(queue) != paused_queues.end();
  }
  friend bool operator==(const HostSteering&, const HostSteering&) = default;
};

/// A host as directives may mean it. A value.
struct HostNames {
  std::string instance;
  std::string name;
  std::string label;

  bool include(std::string_view word) const { return word == instance || word == name || word == label; }
};

/// Makes of what boards say what a host has to do. What stands is what the latest of two boards says about one thing;
/// of orders it remembers which it has met, so that each is carried out once, and none that was given before the first
/// look at its board. Not thread-safe.
class DirectiveResolver {
 public:
  explicit DirectiveResolver(HostNames names) : names_(std::move(names)) {}

  /// A board says this now. The orders that are to be carried out, in the order of giving.
  std::vector<Directive> read(const std::string& place, Steering steering);
  const HostSteering& standing() const { return standing_; }
  /// What this host, which has these jobs, says to what was given on a board: that it obeys what stands about it, what
  /// came of orders, and why nobody could obey the rest.
  std::vector<Answer> answers(const std::string& place, const std::vector<JobRecord>& jobs) const;
  /// What came of an order.
  void answered(const std::string& place, Answer answer);

 private:
  struct Board {
    std::vector<Directive> directives;
    std::vector<Answer> answers;
  };

  bool means_us(const Directive& directive) const;
  void add_up();

  // Fixed after construction.
  const HostNames names_;

  std::map<std::string, Board> boards_;
  HostSteering standing_;
};

/// Steers one host from within its process: what obeys the boards and what listens at the control socket call the same.
/// Thread-safe; none of it waits for a store, a handler or a plugin.
class HostControl {
 public:
  HostControl() = default;
  HostControl(const HostControl&) = delete;
  HostControl& operator=(const HostControl&) = delete;
  virtual ~HostControl() = default;

  /// The host as it stands, `running` filled, `seen` and `answers` empty.
  virtual HostRecord describe() const = 0;

  /// Carries out an order (drain, reload, cancel_running) that means this host, once. The answer says what came of it;
  /// drain and reload have begun then.
  virtual Answer obey(const Directive& order) = 0;

  /// Looks at the boards now: somebody has just given a directive there.
  virtual void look_now() = 0;
};

}  // namespace sluice::fleet
