#include "host/cli/fleet_session.hpp"

#include <utility>

#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

/// How long hosts have to obey: a second where the store tells them, two polls elsewhere.
constexpr Duration kPatience = std::chrono::seconds(8);
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Where a look costs money.
constexpr Duration kBilledLook = std::chrono::milliseconds(400);
constexpr Duration kNudgeTime = std::chrono::seconds(1);

}  // namespace

std::vector<operate::FileJob> jobs_of(const std::vector<config::JobConfig>& files) {
  std::vector<operate::FileJob> jobs;
  jobs.reserve(files.size());
  for (const config::JobConfig& job : files) {
    jobs.push_back({job.name, work::queue_text(job), job.source == config::Source::dlq, job.handler, job.concurrency});
  }
  return jobs;
}

OrExit<FleetSession> FleetSession::open(const Arguments& arguments) {
  SLUICE_TRY(opened, QueueSession::open(arguments, QueueSession::Queue::optional));
  FleetSession session(std::move(*opened));
  const config::HostConfig& host = session.queues_.host();
  session.queue_names_ = known_queues(host);
  session.scheduled_jobs_ = config::load_job_files(host, config::process_environment()).jobs;
  session.file_jobs_ = jobs_of(session.scheduled_jobs_);
  std::erase_if(session.scheduled_jobs_, [](const config::JobConfig& job) { return job.schedules.empty(); });
  // What is named here need not be known to any file; its hosts may be found all the same.
  std::vector<std::string> boards = session.queue_names_;
  if (const std::string& named = session.queues_.queue(); !named.empty()) {
    boards.push_back(named);
  }
  if (boards.empty()) {
    return Exit(kExitConfiguration, host.file +
                                        " and its jobs name no queue, so nobody knows where hosts are to be "
                                        "found; name one with --queue QUEUE");
  }
  SLUICE_TRY(fleet, session.checked(fleet::Fleet::open(session.queues_.queues(), boards, session.queues_.random())));
  session.fleet_ = std::move(*fleet);
  return session;
}

Exit FleetSession::failure(const Error& error) const {
  const std::string& named = queues_.queue();
  return Exit::failure(queues_.place().explained(error, named.empty() ? queue_names_.front() : named));
}

OrExit<fleet::FleetView> FleetSession::hosts() { return checked(fleet_->hosts(deadline())); }

OrExit<fleet::SteeringView> FleetSession::steering() { return checked(fleet_->steering(deadline())); }

operate::KnownNames FleetSession::names() {
  operate::KnownNames names;
  for (const operate::FileJob& job : file_jobs_) {
    names.add_job({job.name, job.queue});
  }
  for (const std::string& queue : queue_names_) {
    names.add_queue(queue);
  }
  if (const auto view = fleet_->hosts(deadline())) {
    names.add(*view);
  }
  if (const auto view = fleet_->steering(deadline())) {
    names.add(*view);
  }
  return names;
}

const runtime::LocalHosts& FleetSession::local_hosts() {
  if (!local_hosts_) {
    const config::HostConfig& host = queues_.host();
    local_hosts_ =
        host.file.empty() ? runtime::LocalHosts() : find_local_hosts(runtime::ControlFolder::of(host), clock());
  }
  return *local_hosts_;
}

void FleetSession::nudge_local_hosts() {
  const config::HostConfig& host = queues_.host();
  if (host.file.empty()) {
    return;
  }
  for (const std::string& file : runtime::ControlFolder::of(host).sockets()) {
    // Who is not there, or slow, finds out from the store.
    if (auto call = runtime::ControlCall::open(file, clock())) {
      static_cast<void>(call->ask({.verb = runtime::ControlVerb::look, .message = {}, .wait = false},
                                  Deadline::after(clock(), kNudgeTime)));
    }
  }
}

OrExit<std::vector<fleet::Given>> FleetSession::give(const fleet::Directive& directive, const std::string& queue) {
  auto given = fleet_->give(directive, queue, this_operator(), deadline());
  if (!given) {
    return given.error().code() == ErrorCode::invalid ? Exit::usage(given.error().message()) : failure(given.error());
  }
  nudge_local_hosts();
  return std::move(*given);
}

OrExit<std::vector<fleet::Given>> FleetSession::reset(std::optional<fleet::Wish> wish, const std::string& name) {
  SLUICE_TRY(taken, checked(fleet_->reset(wish, name, this_operator(), deadline())));
  nudge_local_hosts();
  return taken;
}

OrExit<operate::Compliance> FleetSession::follow(std::vector<fleet::Given> given) {
  operate::Compliance compliance(std::move(given), clock().steady_now() + kPatience);
  const InterruptFlag interrupt;
  while (true) {
    SLUICE_TRY(view, hosts());
    if (compliance.look(*view, clock().steady_now()) || !wait_for_look(interrupt)) {
      return compliance;
    }
  }
}

bool FleetSession::wait_for_look(const InterruptFlag& interrupt) const {
  return interrupt.wait(queues_.place().in_sqlite() ? kLook : kBilledLook);
}

Exit troubles_of(const std::vector<fleet::BoardTrouble>& troubles) {
  std::vector<std::string> lines;
  lines.reserve(troubles.size());
  for (const fleet::BoardTrouble& trouble : troubles) {
    lines.push_back(trouble.place + ": " + trouble.error.message());
  }
  return Exit::failed_if_any(std::move(lines));
}

}  // namespace sluice::cli
