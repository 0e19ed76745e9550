#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/cli/queue_session.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/operate/fleet_report.hpp"
#include "host/runtime/control_socket.hpp"

namespace sluice::cli {

/// The hosts that work on a host file's queues, or on one table, for one command: through the stores, and at the
/// control sockets of those on this machine. A resource that can be moved.
class FleetSession {
 public:
  /// As QueueSession::open for an optional queue; exit 78 when no queue is known.
  static OrExit<FleetSession> open(const Arguments& arguments);

  QueueSession& queues() { return queues_; }
  fleet::Fleet& fleet() { return *fleet_; }
  const Clock& clock() const { return queues_.clock(); }
  Deadline deadline() const { return queues_.deadline(); }
  /// The queues that files name.
  const std::vector<std::string>& queue_names() const { return queue_names_; }
  /// The jobs that the job files here have; those that cannot be read are passed over.
  const std::vector<config::JobConfig>& jobs() const { return jobs_; }

  /// All names that mean something: files, hosts, steering, as they are at the first call. What cannot be read is
  /// passed over.
  const operate::KnownNames& names();
  /// What can be read of hosts; exit 1 where nothing can.
  OrExit<fleet::FleetView> hosts();
  /// The same, and of hosts of this machine what they say (not over a second ago) or, where they do not answer, what
  /// their crash ledgers tell; those alone where no store answers within `patience`, which is among the troubles then.
  OrExit<fleet::FleetView> hosts_now(Duration patience = kStorePatience);

  /// Gives a directive and makes hosts look at it.
  OrExit<std::vector<fleet::Given>> give(const fleet::Directive& directive, const std::string& queue);
  /// Takes wishes back; the same.
  OrExit<std::vector<fleet::Given>> reset(std::optional<fleet::Wish> wish, const std::string& name);
  /// Looks again and again until hosts have obeyed, some seconds have passed, or Ctrl-C.
  OrExit<fleet::Obedience> follow(const std::vector<fleet::Given>& given);

  Exit failure(const Error& error) const;
  /// A store's answer; exit 1 where it has none.
  template <typename T>
  OrExit<T> checked(Result<T> answer) const {
    return or_end(std::move(answer), [this](const Error& error) { return failure(error); });
  }
  /// Waits between two looks at hosts that are to do something; false at once on Ctrl-C.
  bool wait_for_look(const InterruptFlag& interrupt) const;

 private:
  explicit FleetSession(QueueSession queues) : queues_(std::move(queues)) {}
  /// Makes the hosts of this machine look at once at what was given.
  void nudge_local_hosts();

  QueueSession queues_;
  std::unique_ptr<fleet::Fleet> fleet_;
  std::vector<std::string> queue_names_;
  std::vector<config::JobConfig> jobs_;
  std::optional<runtime::LocalHosts> local_hosts_;
  SteadyTime local_hosts_at_{};  ///< when they said so
  std::optional<operate::KnownNames> names_;
};

/// The same, once all hosts that answer tell what their workers run, or `enough` is known; without any other host than
/// those of this machine nothing is written. Gives up after some seconds, and when it is interrupted.
OrExit<fleet::FleetView> look_in_detail(FleetSession& session, const InterruptFlag& interrupt,
                                        const std::function<bool(const fleet::FleetView&)>& enough = {});
/// A line for each host that does not tell what it has at work, or not of all of it.
std::vector<std::string> untold_work(const fleet::FleetView& view, bool of_silent_hosts);
/// Where no record tells what is in flight (a leased table, an outbox): asks the hosts, which are looked at once before
/// it returns; who does not tell is named on standard error. Elsewhere null. Exit 130 where that is interrupted.
OrExit<std::function<operate::AtWork()>> at_work_as_hosts_tell(const QueueSession& session, const Arguments& arguments);

/// Of hosts of this machine, which say at their control sockets how it is now, in place of what boards have.
void put_local_records(fleet::FleetView& view, const runtime::LocalHosts& local);
/// Jobs as their files have them.
std::vector<operate::JobSummary> jobs_of(const std::vector<config::JobConfig>& files);

/// Says of every board that could not be read why, and how the command ends for it.
Exit troubles_of(const std::vector<fleet::BoardTrouble>& troubles);

}  // namespace sluice::cli
