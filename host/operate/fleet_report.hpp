#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/describe.hpp"

/// What a fleet does and is told to do, as commands and the live screen show it.

namespace sluice::operate {

/// A job as the whole fleet runs it, beside what the files say and what operators want. A value.
struct JobSummary {
  std::string name;
  std::string queue;
  bool dead_letters = false;
  std::string handler;
  std::vector<std::string> plugins;           ///< "exec.so 1.2.0", each once; several while a fleet is being renewed
  std::optional<std::uint32_t> file_workers;  ///< of one host, by the job file here; else as the hosts' files say
  bool in_files = false;                      ///< a job file here has it
  std::vector<std::string> hosts;             ///< labels of those that run it; silent ones are not among them
  std::uint32_t paused_hosts = 0;
  std::uint32_t held_hosts = 0;     ///< whose budget for the queue holds the job back
  std::uint32_t cut_off_hosts = 0;  ///< whom the queue's store has failed for long
  std::uint32_t quiet_hosts = 0;    ///< that do not answer, so that their figures are those they told last
  std::uint32_t draining_hosts = 0;
  std::string rate_limit;     ///< of all hosts together, or "per host"; empty: none
  double rate = 0;            ///< what of it the hosts have, messages a second
  double shared_rate = 0;     ///< the limit where all hosts share it; 0: they do not, or have another one
  std::uint32_t workers = 0;  ///< in force, of all hosts
  std::uint32_t running = 0;
  std::uint32_t stuck = 0;
  // Since the job began on each of them.
  std::uint64_t claimed = 0;
  std::uint64_t done = 0;
  std::uint64_t retried = 0;
  std::uint64_t rejected = 0;
  std::uint64_t timed_out = 0;
  fleet::JobPace pace;               ///< rates are sums, times the worst
  std::vector<fleet::Given> wishes;  ///< what stands about it or about its queue

  bool paused() const { return !hosts.empty() && paused_hosts == hosts.size(); }
};

/// All jobs that files or hosts know, by name and queue. `files`: as the job files here have them.
std::vector<JobSummary> summarize_jobs(std::vector<JobSummary> files, const fleet::FleetView& view,
                                       const fleet::SteeringView& steering);

/// Leaves those that work on the queue; an empty name leaves all.
void keep_queue(const std::string& queue, std::vector<fleet::KnownHost>& hosts);
void keep_queue(const std::string& queue, std::vector<JobSummary>& jobs);

/// What stands about a job: "paused by ann@ops-1 5m ago", "queue paused by ...", "scaled to 16 by ...".
std::vector<std::string> wish_texts(const std::vector<fleet::Given>& wishes, WallTime now);

/// A handler at work, and on which host.
struct HandlerAtWork {
  std::string host;  ///< its label
  fleet::RunningRecord handler;
  bool answers = true;  ///< the host does; else it was at work when that was heard of last
};
/// Of all hosts that are not silent, the longest at work first, and last those of whom nobody knows since when.
std::vector<HandlerAtWork> handlers_at_work(const fleet::FleetView& view);

/// "host web-1:4711 drains, 12s: at work still: 2 handlers: mailer on M-1 (45s), mailer on M-2 (3s), 1 stuck: M-3".
std::string drain_text(const fleet::KnownHost& host, Duration waited, WallTime now);

/// What has become of hosts that were told to drain: a line for each but those that have ended clean. A value.
struct DrainEnds {
  std::vector<std::string> going;    ///< that have not ended
  std::vector<std::string> unclean;  ///< that have left work behind, and which
  std::vector<std::string> unknown;  ///< that are silent: nobody knows whether they have ended, or how
};
/// By their instances. One whose records are gone has ended clean, where every board could be read.
DrainEnds drain_ends(const std::vector<std::string>& instances, const fleet::FleetView& view, WallTime now);

/// A line for each host that is not well: why it is unhealthy or not ready, or since when it does not answer and what
/// it was at; of one that has ended no more than the beginning of the reason.
std::vector<std::string> host_warnings(const fleet::FleetView& view, WallTime now);
/// Those that do not answer, with `asked` also those that were asked to tell in detail and have not, and for how long
/// nobody has heard of them: "web-1:7 for 45s (2 handlers at work then), web-2:8 for 3m"; empty: none.
std::string quiet_hosts(const fleet::FleetView& view, bool asked);

void describe(const fleet::KnownHost& host, Fields& fields);
void describe(const fleet::JobRecord& job, Fields& fields);
void describe(const JobSummary& job, Fields& fields);
void describe(const HandlerAtWork& at_work, Fields& fields);
void describe(const fleet::AuditEntry& entry, Fields& fields);
void describe(const fleet::Given& given, Fields& fields);

/// What an operator may mean by a name: what the files here say, what hosts tell of themselves, and what is steered
/// already. A value.
class KnownNames {
 public:
  void add_queue(const std::string& queue) { queues_.insert(queue); }
  /// With its queues as its record tells of them.
  void add_job(const std::string& name, const std::string& queues);
  void add(const fleet::FleetView& view);
  void add(const fleet::SteeringView& view);

  const std::set<std::string>& queues() const { return queues_; }
  /// Labels, "name:pid".
  const std::set<std::string>& hosts() const { return labels_; }

  /// A job or queue. `not_found`, with the name that was probably meant, where there is none; `conflict` for a name
  /// that means both, unless the job is all that works on the queue: then the queue is meant.
  Result<fleet::Directive> thing(fleet::Wish wish, const std::string& word) const;
  Result<fleet::Directive> queue(fleet::Wish wish, const std::string& word) const;
  Result<fleet::Directive> job(fleet::Wish wish, const std::string& word) const;
  /// A host by its name, label or instance.
  Result<fleet::Directive> host(fleet::Wish wish, const std::string& word) const;

  /// The queue that a job works on; empty where several have its name or nobody knows it.
  std::string queue_of_job(const std::string& name) const;

 private:
  std::set<std::string> job_names() const;

  std::set<std::string> queues_;
  /// One name may stand for jobs of several queues; an empty text where nobody knows which.
  std::map<std::string, std::set<std::string>> jobs_;
  std::set<std::string> labels_;
  std::set<std::string> host_words_;  ///< names, labels and instances
};

}  // namespace sluice::operate
