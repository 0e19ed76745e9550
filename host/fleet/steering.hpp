#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"

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
/// The most workers of a job.
inline constexpr std::uint32_t kMostWorkers = 1'024;

/// One thing that an operator wants. A value.
struct Directive {
  std::string id;  ///< unique; made when it is given
  Wish wish = Wish::pause;
  Target target = Target::queue;
  std::string name;   ///< of the target; empty for `all`
  std::string value;  ///< scale: the number of workers; log_level: the level; otherwise empty
  std::string by;     ///< who gave it, such as "ann@ops-1"
  WallTime at{};      ///< by the board's clock

  /// "pause job mailer", "scale job mailer to 16", "log-level of all hosts is debug".
  std::string text() const;
  /// Two that stand and are about the same thing: the later one replaces the earlier.
  bool same_thing(const Directive& other) const {
    return wish == other.wish && target == other.target && name == other.name;
  }
};

/// Why nobody could obey it, wherever it was given: a target of the wrong kind, 0 or 2,000 workers, a level that there
/// is not. Nothing when it is sound.
std::optional<std::string> flaw_of(const Directive& directive);

/// The number of a scale; nothing where it is none that a job can have.
std::optional<std::uint32_t> workers_of(const Directive& directive);

/// All that operators want of the hosts on one board. A value.
struct Steering {
  std::vector<Directive> directives;      ///< in the order of giving
  std::optional<WallTime> watched_until;  ///< somebody looks at the hosts' records until then
};

/// As JSON on one line; an empty steering is an empty text.
std::string write_steering(const Steering& steering);
/// Passes over members and directives that it does not know, so that an older host can read what a newer command wrote.
/// ErrorCode::corrupt for what is no steering.
Result<Steering> read_steering(std::string_view text);

/// One deed of an operator. A value.
struct AuditEntry {
  WallTime at{};
  std::string who;    ///< as Directive::by
  std::string what;   ///< "pause job mailer", "reset pause of job mailer"
  std::string place;  ///< the board's; filled when it is read
};

/// As JSON on one line: the newest that fit into `most_bytes`. The entries are in order, the newest last.
std::string write_audit(const std::vector<AuditEntry>& entries, std::size_t most_bytes);
/// ErrorCode::corrupt for what is no audit.
Result<std::vector<AuditEntry>> read_audit(std::string_view text);

}  // namespace sluice::fleet
