#include "host/cli/fleet_session.hpp"

#include <algorithm>
#include <utility>

#include "base/ranges.hpp"
#include "host/cli/views/output.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/runtime/isolation_ward.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

/// How long hosts have to obey: a second where the store tells them, two polls elsewhere.
constexpr Duration kPatience = std::chrono::seconds(8);
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Where a look costs money.
constexpr Duration kBilledLook = std::chrono::milliseconds(400);
constexpr Duration kNudgeTime = std::chrono::seconds(1);
/// Hosts are asked to tell in detail for so long.
constexpr Duration kWatch = std::chrono::seconds(10);
/// What hosts have told this long ago is as they are.
constexpr Duration kYoungLook = std::chrono::seconds(1);
/// A host that has not told by then is passed over.
constexpr Duration kDetailPatience = std::chrono::seconds(6);

fleet::KnownHost* known_host(fleet::FleetView& view, const std::string& instance) {
  return find_where(view.hosts,
                    [&instance](const fleet::KnownHost& known) { return known.record.instance == instance; });
}

/// What the ledger says is at work there; by which handler and since when, the host's last record may tell.
std::vector<fleet::RunningRecord> running_in(const isolation::LedgerContents& ledger, const fleet::HostRecord& told) {
  std::vector<fleet::RunningRecord> running;
  running.reserve(ledger.held.size());
  for (const isolation::HeldMessage& held : ledger.held) {
    if (!held.running) {
      continue;
    }
    const auto* const before = find_where(told.running, [&held](const fleet::RunningRecord& one) {
      return one.message == held.receipt.id && one.job == held.job && one.attempt == held.attempt;
    });
    const auto* const job =
        find_where(told.jobs, [&held](const fleet::JobRecord& one) { return one.name == held.job; });
    fleet::RunningRecord& record = running.emplace_back(before == nullptr ? fleet::RunningRecord() : *before);
    record.handler = job == nullptr ? record.handler : job->handler;
    record.message = held.receipt.id;
    record.job = held.job;
    record.queue = held.address.queue;
    record.attempt = held.attempt;
  }
  return running;
}

/// Of the hosts of this machine that do not answer, what their crash ledgers tell.
void put_ledgers(fleet::FleetView& view, const config::HostConfig& host, const runtime::LocalHosts& local) {
  for (const std::string& file : isolation::LedgerFolder(runtime::ledger_folder(host)).open_ledgers()) {
    const auto ledger = isolation::read_ledger(file);
    if (!ledger) {
      continue;
    }
    const bool gone = !isolation::has_owner(file);
    const bool speechless =
        std::any_of(local.speechless.begin(), local.speechless.end(), [&ledger](const auto& silent) {
          return silent.process == ledger->process && silent.error.code() != ErrorCode::denied;
        });
    fleet::KnownHost* const known =
        known_host(view, fleet::instance_of(ledger->host, ledger->process, ledger->incarnation));
    if (known == nullptr || known->record.state == fleet::HostState::ended || !(gone || speechless)) {
      continue;
    }
    known->pulse = gone ? fleet::Pulse::silent : fleet::Pulse::late;  // however long ago it was heard of
    known->silence = gone ? "its process is gone; the next host settles what it held"
                          : "it does not answer at its control socket, so it is stopped or overloaded";
    known->record.running = running_in(*ledger, known->record);
    known->record.running_total = static_cast<std::uint32_t>(known->record.running.size());
    for (fleet::JobRecord& job : known->record.jobs) {
      job.running = static_cast<std::uint32_t>(
          std::count_if(known->record.running.begin(), known->record.running.end(),
                        [&job](const fleet::RunningRecord& handler) { return handler.job == job.name; }));
    }
  }
}

}  // namespace

void put_local_records(fleet::FleetView& view, const runtime::LocalHosts& local) {
  for (const runtime::LocalHost& host : local.hosts) {
    fleet::KnownHost* known = known_host(view, host.record.instance);
    if (known == nullptr) {
      known = &view.hosts.emplace_back();
    }
    known->record = host.record;
    known->pulse = fleet::Pulse::fresh;
    known->age = Duration::zero();
  }
}

std::vector<operate::JobSummary> jobs_of(const std::vector<config::JobConfig>& files) {
  return mapped(files, [](const config::JobConfig& job) {
    return operate::JobSummary{.name = job.name,
                               .queue = work::queue_text(job),
                               .dead_letters = job.source == config::Source::dlq,
                               .handler = job.handler,
                               .file_workers = job.concurrency,
                               .in_files = true,
                               .rate_limit = job.rate_text,
                               .shared_rate = job.rate_per_host ? 0 : job.rate_limit};
  });
}

OrExit<FleetSession> FleetSession::open(const Arguments& arguments) {
  SLUICE_TRY(opened, QueueSession::open(arguments, QueueSession::Queue::unchecked));
  FleetSession session(std::move(*opened));
  const config::HostConfig& host = session.queues_.host();
  session.jobs_ = config::load_job_files(host, config::process_environment()).jobs;
  const auto names = config::queue_names(host, session.jobs_);
  session.queue_names_.assign(names.begin(), names.end());
  // What is named here need not be known to any file; its hosts may know it all the same.
  std::vector<std::string> boards = session.queue_names_;
  if (const std::string& named = session.queues_.queue(); !named.empty()) {
    boards.push_back(named);
  }
  if (boards.empty()) {
    SLUICE_PASS_ON(check_job_files(host));
    return Exit(kExitConfiguration, host.file +
                                        " and its jobs name no queue, so nobody knows where hosts are to be "
                                        "found; name one with --queue QUEUE");
  }
  SLUICE_TRY(fleet, session.checked(fleet::Fleet::open(session.queues_.queues(), boards, session.queues_.random())));
  session.fleet_ = std::move(*fleet);
  if (const std::string& named = session.queues_.queue(); !named.empty()) {
    const auto known = check_known(session.queues_.queues(), named, session.deadline());
    if (known.has_error() && !session.names().queues().contains(named)) {
      return known.error();
    }
  }
  return session;
}

Exit FleetSession::failure(const Error& error) const {
  const std::string& named = queues_.queue();
  // The mend is of the table that the error names.
  const auto* const meant = find_where(queue_names_, [&](const std::string& queue) {
    return error.message().find("table '" + queues_.host().queue(queue).table + "'") != std::string::npos;
  });
  return Exit::failure(queues_.place().explained(error, !named.empty()     ? named
                                                        : meant == nullptr ? queue_names_.front()
                                                                           : *meant));
}

OrExit<fleet::FleetView> FleetSession::hosts() { return checked(fleet_->hosts(deadline())); }

OrExit<fleet::FleetView> FleetSession::hosts_now(Duration patience) {
  auto told = fleet_->hosts(Deadline::after(clock(), patience));
  const config::HostConfig& host = queues_.host();
  if (host.file.empty()) {
    return checked(std::move(told));
  }
  if (!local_hosts_ || clock().steady_now() - local_hosts_at_ >= kYoungLook) {
    local_hosts_ = find_local_hosts(runtime::ControlFolder::of(host), clock());
    local_hosts_at_ = clock().steady_now();
  }
  if (!told && local_hosts_->hosts.empty()) {
    return failure(told.error());
  }
  fleet::FleetView view = told ? std::move(*told) : fleet::FleetView{};
  if (!told) {
    view.troubles.push_back({"hosts of other machines", told.error()});
  }
  put_local_records(view, *local_hosts_);
  put_ledgers(view, host, *local_hosts_);
  return view;
}

const operate::KnownNames& FleetSession::names() {
  if (names_) {
    return *names_;
  }
  operate::KnownNames& names = names_.emplace();
  for (const config::JobConfig& job : jobs_) {
    names.add_job(job.name, work::queue_text(job));
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

OrExit<fleet::Obedience> FleetSession::follow(const std::vector<fleet::Given>& given) {
  const SteadyTime until = clock().steady_now() + kPatience;
  const InterruptFlag interrupt;
  while (true) {
    SLUICE_TRY(view, hosts());
    auto obedience = fleet::Fleet::obedience(given, *view);
    if (obedience.waited_for.empty() || clock().steady_now() >= until || !wait_for_look(interrupt)) {
      return obedience;
    }
  }
}

std::vector<std::string> untold_work(const fleet::FleetView& view, bool of_silent_hosts) {
  std::vector<std::string> lines;
  for (const fleet::KnownHost& host : view.hosts) {
    const fleet::HostRecord& record = host.record;
    const std::string label = "host " + record.label();
    const bool partly = record.running.size() < record.running_total;
    if (record.state == fleet::HostState::ended || (!host.answers() && !of_silent_hosts)) {
      continue;
    }
    if (!host.answers() && partly) {
      lines.push_back(label + " has told nothing for " + short_duration(host.age) + ", and had " +
                      counted(record.running_total, "message") + " at work then");
    } else if (host.answers() && !record.detailed) {
      lines.push_back(label + " has not said what its workers run");
    } else if (host.answers() && partly) {
      lines.push_back(label + " has room to tell of " + std::to_string(record.running.size()) + " of the " +
                      counted(record.running_total, "message") + " that it has at work");
    }
  }
  return lines;
}

OrExit<fleet::FleetView> look_in_detail(FleetSession& session, const InterruptFlag& interrupt,
                                        const std::function<bool(const fleet::FleetView&)>& enough) {
  const SteadyTime until = session.clock().steady_now() + kDetailPatience;
  bool asked = false;
  while (true) {
    SLUICE_TRY(view, session.hosts_now());
    const bool all_tell = std::all_of(view->hosts.begin(), view->hosts.end(), [](const fleet::KnownHost& host) {
      return !host.answers() || host.record.detailed;
    });
    if ((enough && enough(*view)) || all_tell || session.clock().steady_now() >= until) {
      return view;
    }
    if (!asked) {
      if (const auto told = session.fleet().watch(kWatch, session.deadline()); !told) {
        return session.failure(told.error());
      }
      asked = true;
    }
    if (!session.wait_for_look(interrupt)) {
      return view;
    }
  }
}

namespace {

operate::AtWork at_work_on(const std::string& queue, const fleet::FleetView& view) {
  operate::AtWork found;
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.pulse == fleet::Pulse::silent) {
      continue;
    }
    for (const fleet::RunningRecord& handler : host.record.running) {
      const bool dead_letters =
          std::any_of(host.record.jobs.begin(), host.record.jobs.end(),
                      [&handler](const fleet::JobRecord& job) { return job.name == handler.job && job.dead_letters; });
      if (handler.queue == queue) {
        found.try_emplace({dead_letters ? queue::Half::dlq : queue::Half::standard, handler.message},
                          host.record.label());
      }
    }
  }
  return found;
}

}  // namespace

OrExit<std::function<operate::AtWork()>> at_work_as_hosts_tell(const QueueSession& session,
                                                               const Arguments& arguments) {
  const std::string& queue = session.queue();
  if (session.host().outbox(queue) == nullptr && !session.host().leased(queue)) {
    return std::function<operate::AtWork()>();
  }
  SLUICE_TRY(opened, FleetSession::open(arguments));
  const auto fleet = std::make_shared<FleetSession>(std::move(*opened));
  const auto last = std::make_shared<operate::AtWork>();  // as hosts have told
  std::optional<SteadyTime> looked = fleet->clock().steady_now();
  {
    const InterruptFlag interrupt;
    const auto view = look_in_detail(*fleet, interrupt);  // hosts elsewhere tell in detail from here on
    if (interrupt.raised()) {
      return Exit{kExitInterrupted,
                  "interrupted while the hosts were asked what they have at work; nothing is changed"};
    }
    for (const std::string& line : view.has_error() ? view.error().lines() : untold_work(*view, true)) {
      QueueSession::warn("warning: " + line + "; what it has at work is not left alone");
    }
    if (view.has_error()) {
      looked.reset();
    } else {
      *last = at_work_on(queue, *view);
    }
  }
  return std::function<operate::AtWork()>([fleet, queue, last, looked] {
    static_cast<void>(fleet->fleet().watch(kWatch, fleet->deadline()));
    if (!looked || fleet->clock().steady_now() - *looked >= kYoungLook) {
      // Where nobody answers for a moment, what was told last is left alone.
      if (const auto view = fleet->hosts_now(); !view.has_error()) {
        *last = at_work_on(queue, *view);
      }
    }
    return *last;
  });
}

bool FleetSession::wait_for_look(const InterruptFlag& interrupt) const {
  return interrupt.wait(queues_.place().in_sqlite() ? kLook : kBilledLook);
}

Exit troubles_of(const std::vector<fleet::BoardTrouble>& troubles) {
  return Exit::failed_if_any(mapped(troubles, &fleet::BoardTrouble::text));
}

}  // namespace sluice::cli
