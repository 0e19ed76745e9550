#pragma once

#include <cstddef>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/cost/cost_book.hpp"

namespace sluice::fleet {

enum class HostState {
  starting,
  running,
  draining,
  ended,  ///< by a drain that left work behind, or without a word; who has ended clean takes its record down
};

std::string_view to_string(HostState state);  // "starting", ...

/// A handler at work. A value.
struct RunningRecord {
  std::string message;  ///< the message's id
  std::string job;
  std::string queue;
  std::string handler;
  std::uint32_t worker = 0;  ///< its number within the job on this host
  std::uint32_t attempt = 0;
  WallTime since{};
  std::optional<WallTime> times_out_at;  ///< nothing: never
  WallTime leased_until{};               ///< extended again and again while it works
  bool stuck = false;                    ///< ignores its stop token past time-out and grace
  bool cancelled = false;                ///< its stop token is set
};

/// What handlers of a job did lately, by the difference of its counts. A value.
struct JobPace {
  double claimed = 0;  ///< messages a second
  double done = 0;
  double failed = 0;   ///< attempts that ended in a retry or a rejection, and time-outs, a second
  Duration mean{};     ///< of an attempt; zero: there was none
  Duration p95{};      ///< the same, within a factor of two
  Duration slowest{};  ///< since the job began
  Duration over{};     ///< how long it was measured; zero: nothing is known yet
};

/// A job as one host runs it. A value.
struct JobRecord {
  std::string name;
  std::string queue;          ///< several with commas between them
  bool dead_letters = false;  ///< works on the queue's dead letters
  std::string handler;
  std::string plugin;                  ///< its file's name
  std::string plugin_version;          ///< empty: it names none
  std::uint32_t concurrency = 0;       ///< in force
  std::uint32_t file_concurrency = 0;  ///< as the job file has it
  bool paused = false;
  bool held_by_budget = false;  ///< it waits for what its queue may cost
  bool cut_off = false;         ///< its store has failed it for long
  std::string rate_limit;       ///< "100/s" of all hosts together, "100/s per host"; empty: none
  double rate = 0;              ///< this host's part of it, messages a second
  std::uint32_t running = 0;    ///< handlers at work
  std::uint32_t stuck = 0;
  // Since the job began: at the host's start, or at the last reload that changed the job.
  std::uint64_t claimed = 0;
  std::uint64_t done = 0;
  std::uint64_t retried = 0;
  std::uint64_t rejected = 0;
  std::uint64_t timed_out = 0;  ///< attempts that ran into their time-out, whatever came of their messages
  JobPace pace;
};

/// What a job on one host has used on one queue in the last hour. A value.
struct SpentRecord {
  std::string queue;
  std::string job;  ///< "(shared)": what no job has caused by itself
  cost::Usage usage;
};

/// What a host says to a directive, once it has seen it. A value.
struct Answer {
  std::string directive;  ///< its id
  bool done = false;      ///< false: `text` says why not
  std::string text;       ///< one line
};

/// A host, as it tells of itself. A value. Times are of the host's clock.
struct HostRecord {
  std::string instance;  ///< unique: a host that starts again has another one; the key of its notice
  std::string name;      ///< `[host] name`, else the machine's; several may share it
  std::int64_t pid = 0;
  std::string process;  ///< its process_mark: whoever is on the same machine sees whether it lives
  std::string version;
  std::string address;  ///< of its HTTP side; empty: none
  std::string host_file;
  HostState state = HostState::starting;
  std::string unhealthy;    ///< why /healthz says 503; empty: it does not
  std::string not_ready;    ///< the same of /readyz, of one that runs
  std::string left_behind;  ///< of one that has ended: why its drain was not clean, or what it died of
  WallTime started_at{};
  Duration up{};     ///< for how long it has run when it tells this: counts of two records are compared by it
  Duration every{};  ///< how long until the next record at the latest
  /// The version of the board's steering that it has obeyed; the answers are to directives of that board.
  std::int64_t seen = 0;
  std::string log_level;
  std::string file_log_level;
  std::vector<JobRecord> jobs;
  std::uint32_t jobs_left_out = 0;  ///< for which there was no room
  std::vector<Answer> answers;
  Duration spent_in{};                         ///< how much of the last hour `spent` covers
  std::vector<SpentRecord> spent;              ///< where anything was used
  std::string attribute;                       ///< by which costs are told apart; empty: by none
  std::vector<cost::TopValues::Named> values;  ///< since the host's start, the dearest first
  std::uint32_t running_total = 0;
  bool detailed = false;               ///< somebody looks, so that `running` was filled
  std::vector<RunningRecord> running;  ///< longest first; fewer than running_total where there was no room

  /// "name:pid", as people write it.
  std::string label() const { return name + ":" + std::to_string(pid); }
  /// True for its name, its label and its instance.
  bool is_called(std::string_view word) const { return word == name || word == instance || word == label(); }
};

/// The instance of a host that is known by its process alone, as it is to whoever finds its crash ledger. `incarnation`
/// is unique.
std::string instance_of(const std::string& name, std::int64_t pid, const std::string& incarnation);

/// A host that has ended and cannot say so any more. A value.
struct HostEnd {
  std::string instance;
  std::string why;  ///< one line
};

/// The record as JSON on one line. Of `running`, `values`, `spent`, answers (the oldest) and jobs, in this order, those
/// are left out that do not fit into `most_bytes`.
std::string write_record(const HostRecord& record, std::size_t most_bytes);
/// Unknown members are passed over, for hosts of other versions. ErrorCode::corrupt for what is no record.
Result<HostRecord> read_record(std::string_view text);

/// The queues of a job by what its record says of them.
std::vector<std::string> queues_in(const std::string& text);
bool draws_from(const std::string& text, const std::string& queue);

}  // namespace sluice::fleet
