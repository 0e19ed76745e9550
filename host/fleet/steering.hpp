#pragma once

#include <boost/core/noncopyable.hpp>
#include <set>

#include "host/fleet/host_record.hpp"

namespace sluice::fleet {

/// What operators can want of hosts. The first three stand until they are reset, over restarts of hosts; the others are
/// orders, each obeyed once by those that run when it is given.
enum class Wish { pause, scale, log_level, drain, reload, cancel_running };

enum class Target {
  queue,
  job,
  host,     ///< by name, label or instance
  all,      ///< hosts
  message,  ///< by id
};

std::string_view to_string(Wish wish);      // "pause", "scale", "log-level", "drain", "reload", "cancel-running"
std::string_view to_string(Target target);  // "queue", "job", "host", "all", "message"

bool stands(Wish wish);

/// An order that nobody has carried out by then is void, so that no host that starts later obeys it.
inline constexpr Duration kOrderLife = std::chrono::minutes(10);
/// The most directives on one board, and the longest name in one, in bytes.
inline constexpr std::size_t kMaxDirectives = 256;
inline constexpr std::size_t kMaxTargetBytes = 1'024;
/// What a log_level may be, from the most to the least that is told.
inline constexpr std::array<std::string_view, 5> kLogLevels{"trace", "debug", "info", "warn", "error"};
/// The most workers of a job; where each of them is a thread, its hosts give it fewer.
inline constexpr std::uint32_t kMostWorkers = 100'000;

/// One thing that an operator wants. A value.
struct Directive {
  std::string id;  ///< unique; made when it is given
  Wish wish = Wish::pause;
  Target target = Target::queue;
  std::string name;  ///< of the target; empty for `all`
  /// scale: the number of workers; log_level: the level; cancel_running: the message's queue, or empty: whichever.
  std::string value;
  std::string by;  ///< who gave it, such as "ann@ops-1"
  WallTime at{};   ///< by the board's clock

  /// "pause job mailer", "scale job mailer to 16", "log-level of all hosts is debug".
  std::string text() const;
  /// Two that stand and are about the same thing: the later one replaces the earlier.
  bool same_thing(const Directive& other) const {
    return wish == other.wish && target == other.target && name == other.name;
  }
  /// Names this job, or one of the queues that its record tells.
  bool is_about(const std::string& job, const std::string& queues) const;
};

bool has_directive(const std::vector<Directive>& directives, const std::string& id);

/// Why nobody could obey it: a wrong target, number of workers or level. Nothing when it is sound.
std::optional<std::string> flaw_of(const Directive& directive);

/// All that operators want of the hosts on one board. A value.
struct Steering {
  std::vector<Directive> directives;      ///< in the order of giving
  std::optional<WallTime> watched_until;  ///< somebody looks at the hosts' records until then
};

/// As JSON on one line; an empty steering is an empty text.
std::string write_steering(const Steering& steering);
/// Passes over what only newer commands know. ErrorCode::corrupt for what is no steering.
Result<Steering> read_steering(std::string_view text);

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

/// Makes of what boards say what a host has to do. Of two boards the latest word about a thing stands; each order is
/// carried out once, and none that was given before the first look at its board. Not thread-safe.
class DirectiveResolver {
 public:
  /// `identity`: who the host is.
  explicit DirectiveResolver(HostRecord identity) : identity_(std::move(identity)) {}

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
  const HostRecord identity_;

  std::map<std::string, Board> boards_;
  HostSteering standing_;
};

/// Steers one host from within its process: what obeys the boards and what listens at the control socket call the same.
/// Thread-safe; none of it waits for a store, a handler or a plugin.
class HostControl : boost::noncopyable {
 public:
  virtual ~HostControl() = default;

  /// The host as it stands, `running` filled, `seen` and `answers` empty.
  virtual HostRecord describe() const = 0;

  /// Has the host run as operators want it, now and whatever jobs come later.
  virtual void take(const HostSteering& standing) = 0;

  /// Carries out an order (drain, reload, cancel_running) that means this host; drain and reload have begun then.
  virtual Answer obey(const Directive& order) = 0;
};

}  // namespace sluice::fleet
