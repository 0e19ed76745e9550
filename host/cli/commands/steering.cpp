#include <algorithm>
#include <boost/core/noncopyable.hpp>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/visible.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"

// What operators want of hosts: wishes that stand (pause, scale, log-level) and orders (drain, reload, cancel-running).
namespace sluice::cli {

namespace {

using fleet::Directive;
using fleet::Obedience;
using fleet::Target;
using fleet::Wish;
using runtime::LocalHost;
using runtime::LocalHosts;

std::string hosts_text(const std::vector<std::string>& labels) {
  return counted(labels.size(), "host") + ": " + sluice::joined(labels);
}

/// "it is written, but not obeyed yet by 2 hosts: web-1:7 (silent for 45s), web-2:8".
std::string not_obeyed_text(const Obedience& obedience) {
  std::vector<std::string> hosts = obedience.waited_for;
  for (std::string& host : hosts) {
    const auto quiet = obedience.quiet.find(host);
    host += quiet == obedience.quiet.end() ? "" : " (silent for " + short_duration(quiet->second) + ")";
  }
  return "it is written, but not obeyed yet by " + hosts_text(hosts);
}

// Wishes that stand.

/// A command on one wish: whom it means, and what is said where nothing is to be taken back.
struct StandingWish {
  Wish wish = Wish::pause;
  OrExit<Directive> (*read)(const Arguments& arguments, FleetSession& session) = nullptr;
  std::string (*nothing)(const Directive& wish, FleetSession& session) = nullptr;
};

/// A job or queue by the operand or by --job or --queue; exit 64 for none, and one that nobody knows.
OrExit<Directive> read_thing(const Arguments& arguments, FleetSession& session) {
  const operate::KnownNames& names = session.names();
  for (const auto& [option, meaning] : {std::pair("job", &operate::KnownNames::job),
                                        {"queue", &operate::KnownNames::queue},
                                        {"name", &operate::KnownNames::thing}}) {
    if (arguments.has(option)) {
      return or_usage((names.*meaning)(Wish::pause, arguments.get(option)));
    }
  }
  return Exit::usage("nothing is named; write the name of a queue or a job");
}

std::string not_paused(const Directive& wish, FleetSession& session) {
  std::string why = "\"" + wish.name + "\" is not paused";
  // A job may stand still because its queue is paused.
  if (const auto steering = session.fleet().steering(session.deadline())) {
    const std::string queue = session.names().queue_of_job(wish.name);
    for (const fleet::Given& given : steering->given) {
      if (given.directive.wish == Wish::pause && given.directive.target == Target::queue &&
          given.directive.name == queue) {
        why = "the job is not paused, its queue is; write `sluice resume --queue " + queue + "`";
      }
    }
  }
  return why;
}

static_assert(fleet::kMostWorkers == config::kMaxAsyncConcurrency);

OrExit<Directive> read_scale(const Arguments& arguments, FleetSession& session) {
  SLUICE_TRY(workers, arguments.count("workers", 1, fleet::kMostWorkers));
  SLUICE_TRY(wish, or_usage(session.names().job(Wish::scale, arguments.get("job"))));
  wish->value = std::to_string(*workers);
  return wish;
}

std::string not_scaled(const Directive& wish, FleetSession& /*session*/) {
  return "job " + wish.name + " is not scaled; its hosts run it as their files say";
}

OrExit<Directive> read_log_level(const Arguments& arguments, FleetSession& session) {
  // `sluice log-level --reset web-1` names a host, though the first word is a level elsewhere.
  const bool only_host = arguments.has("reset") && !arguments.has("host");
  const std::string host = arguments.get(only_host ? "level" : "host");
  Directive wish{.id = {}, .wish = Wish::log_level, .target = Target::all};
  if (!host.empty()) {
    SLUICE_TRY(named, session.names().host(Wish::log_level, host));
    wish = std::move(*named);
  }
  wish.value = arguments.get("level");
  return wish;
}

std::string level_not_steered(const Directive& /*wish*/, FleetSession& /*session*/) {
  return "no log level is steered there; hosts log as their files say";
}

constexpr StandingWish kPause{Wish::pause, read_thing, not_paused};
constexpr StandingWish kScale{Wish::scale, read_scale, not_scaled};
constexpr StandingWish kLogLevel{Wish::log_level, read_log_level, level_not_steered};

/// It is done all the same.
void tell_unnoted(const std::string& why, Console& console) {
  console.note("it is done, but `sluice audit` will not show it" + (why.empty() ? "" : ": " + why));
}

void tell_unnoted(const std::vector<fleet::Given>& all, Console& console) {
  for (const fleet::Given& given : all) {
    if (given.unnoted) {
      tell_unnoted(given.unnoted->message(), console);
    }
  }
}

/// Waits until the hosts obey and says who does. Exit 1 when some have not in time.
Exit follow(FleetSession& session, const std::vector<fleet::Given>& given, const std::string& what, Console& console) {
  tell_unnoted(given, console);
  SLUICE_TRY(obedience, session.follow(given));
  const auto& obeyed = obedience->seen_by;
  const auto& waited_for = obedience->waited_for;
  const std::string so_far = !obeyed.empty()      ? "; obeyed by " + hosts_text(obeyed)
                             : waited_for.empty() ? "; no host runs now, those that start obey it"
                                                  : "";
  Exit shown =
      show_result(console, visible(what + so_far) + "\n", "what", what, "obeyed_by", obeyed, "waited_for", waited_for);
  if (!waited_for.empty()) {
    return Exit::failure(not_obeyed_text(*obedience) +
                         "; they do when they look at their store again, `sluice hosts` shows when they last did");
  }
  return shown;
}

/// What was taken back.
Exit follow_taken(FleetSession& session, const std::vector<fleet::Given>& taken, Console& console) {
  std::vector<std::string> wishes;  // each once, though it stood on several boards
  for (const fleet::Given& one : taken) {
    if (!contains(wishes, one.directive.text())) {
      wishes.push_back(one.directive.text());
    }
  }
  return follow(session, taken, "taken back: " + sluice::joined(wishes), console);
}

/// Gives a wish, or with `back` takes it back.
Exit steer(const StandingWish& row, bool back, const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(wish, row.read(arguments, *session));
  if (back) {
    SLUICE_TRY(taken, session->reset(row.wish, wish->name));
    return taken->empty() ? Exit::failure(row.nothing(*wish, *session)) : follow_taken(*session, *taken, console);
  }
  const std::string queue = wish->target == Target::queue ? wish->name
                            : wish->target == Target::job ? session->names().queue_of_job(wish->name)
                                                          : std::string();
  SLUICE_TRY(given, session->give(*wish, queue));
  return follow(*session, *given, wish->text(), console);
}

Exit pause(const Arguments& arguments, Console& console) {
  return steer(kPause, arguments.has("reset"), arguments, console);
}

Exit resume(const Arguments& arguments, Console& console) {
  if (!arguments.has("all")) {
    return steer(kPause, true, arguments, console);
  }
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(taken, session->reset(Wish::pause, {}));
  return taken->empty() ? Exit::failure("nothing is paused") : follow_taken(*session, *taken, console);
}

Exit scale(const Arguments& arguments, Console& console) {
  if (!arguments.has("reset") && !arguments.has("workers")) {
    return Exit::usage("how many? Write `sluice scale JOB N`, or `sluice scale JOB --reset`");
  }
  SLUICE_PASS_ON(arguments.count("workers", 1, fleet::kMostWorkers));
  return steer(kScale, arguments.has("reset"), arguments, console);
}

Exit log_level(const Arguments& arguments, Console& console) {
  if (!arguments.has("reset") && !arguments.has("level")) {
    return Exit::usage("which level? Write one of trace, debug, info, warn, error, or --reset");
  }
  return steer(kLogLevel, arguments.has("reset"), arguments, console);
}

// Orders.

/// For the answer at a control socket, and for a line in the audit beside it.
constexpr Duration kAnswerTime = std::chrono::seconds(5);
constexpr Duration kAuditTime = std::chrono::seconds(3);

/// What the options of an order say of how it is given.
struct OrderOptions {
  bool wait = false;
  Duration timeout{};
};

/// An order that a host of this machine has begun to carry out.
struct LocalOrder {
  std::string text;
  std::string host;
  std::string socket;
  runtime::ControlCall call;
  const Clock& clock;

  /// What came of it; for a request that waits.
  Result<runtime::ControlAnswer> outcome(Duration patience) { return call.next(Deadline::after(clock, patience)); }
  /// How the host fares meanwhile.
  Result<fleet::HostRecord> look() const {
    SLUICE_TRY(meanwhile, runtime::ControlCall::open(socket, clock));
    SLUICE_TRY(answer, meanwhile->ask({}, Deadline::after(clock, std::chrono::seconds(1))));
    return fleet::read_record(answer->record);
  }
};

/// An order to hosts: whom it goes to on this machine, what comes of it there, and what elsewhere.
struct OrderRow {
  Wish wish = Wish::drain;
  runtime::ControlVerb verb = runtime::ControlVerb::drain;
  std::string_view word;  ///< the option with the host's name or the message's id
  /// The host of this machine that is meant; null: it is given through the store. `queue`: the message's; empty: any.
  OrExit<const LocalHost*> (*local)(const LocalHosts& hosts, const std::string& word,
                                    const std::string& queue) = nullptr;
  bool always_waits = false;  ///< until what it begins is through
  /// After a host of this machine has begun; what it says is in the answer. Null: nothing comes after.
  Exit (*end)(LocalOrder& order, const OrderOptions& options, Console& console) = nullptr;
  /// What is given through the store, where that needs to be found out.
  OrExit<Directive> (*named)(FleetSession& session, const std::string& word) = nullptr;
  /// Whether no host has done it, of what they answered. Null: it ends as any order.
  bool (*undone)(const Obedience& obedience) = nullptr;
};

Directive order_of(Wish wish, const std::string& word, const std::string& queue = {}) {
  const Target target = wish == Wish::cancel_running ? Target::message : word.empty() ? Target::all : Target::host;
  return {.id = {}, .wish = wish, .target = target, .name = word, .value = queue};
}

/// Says what became of an order, by the host that carried it out.
Exit show(const std::string& order, const std::string& host, const std::string& text, Console& console) {
  return show_result(console, wrapped(visible(host + ": " + text) + "\n", console.screen()), "what", order, "host",
                     host, "text", text);
}

/// What hosts said to an order that was given through the store. Exit 1 where one refused it or has not looked in time.
Exit show_answers(const std::string& order, const Obedience& obedience, Console& console) {
  const auto& waited_for = obedience.waited_for;
  std::vector<std::string> refusals;
  for (const auto& [host, answer] : obedience.answers) {
    if (!answer.done) {
      refusals.push_back(host + ": " + answer.text);
    } else if (console.shows_text()) {
      console.out(visible(host + ": " + answer.text) + "\n");
    }
  }
  if (console.shows_json()) {
    const auto write = [](JsonWriter& json, const auto& said) {
      put_object(json, "host", said.first, "done", said.second.done, "text", said.second.text);
    };
    console.out(json_line("what", order, "answers", array_of(obedience.answers, write), "waited_for", waited_for));
  }
  if (obedience.done_by_somebody() && waited_for.empty()) {
    return Exit::ok();  // of those who were meant; others say that they were not
  }
  if (!waited_for.empty()) {
    refusals.push_back(not_obeyed_text(obedience) + "; within ten minutes they still carry it out");
  }
  return refusals.empty() ? Exit::failure("no host runs that could carry it out") : Exit(kExitFailure, refusals);
}

/// By its name, label or instance, or the only one when `word` is empty. Exit 64 where several are meant.
OrExit<const LocalHost*> find_local(const LocalHosts& local, const std::string& word, const std::string& /*queue*/) {
  const LocalHost* found = nullptr;
  std::vector<std::string> labels;
  for (const LocalHost& host : local.hosts) {
    if (word.empty() || host.record.is_called(word)) {
      found = &host;
      labels.push_back(host.record.label());
    }
  }
  if (labels.size() > 1) {
    return Exit::usage(
        (word.empty() ? std::string("several hosts run here") : "\"" + word + "\" is the name of several hosts") +
        "; name one of " + sluice::joined(labels));
  }
  return found;
}

/// Without a name the only one; all hosts are meant where there are several.
OrExit<const LocalHost*> find_local_or_all(const LocalHosts& local, const std::string& word, const std::string& queue) {
  return word.empty() && local.hosts.size() != 1 ? OrExit<const LocalHost*>(nullptr) : find_local(local, word, queue);
}

OrExit<const LocalHost*> find_at_work_on(const LocalHosts& local, const std::string& id, const std::string& queue) {
  const auto is_meant = [&](const fleet::RunningRecord& handler) {
    return handler.message == id && (queue.empty() || handler.queue == queue);
  };
  return find_where(
      local.hosts, [&is_meant](const LocalHost& host) { return find_where(host.record.running, is_meant) != nullptr; });
}

Exit not_ended(const std::string& host, Duration waited) {
  return Exit::failure("host " + host + " drains, and has not ended within " + config::format_duration(waited));
}

/// What a host that drains is still at: a line that a terminal shows anew each time and a pipe now and then.
class DrainProgress : boost::noncopyable {
 public:
  DrainProgress(Console& console, const Clock& clock)
      : console_(console), clock_(clock), began_(clock.steady_now()), next_line_(began_) {}
  ~DrainProgress() { console_.end_progress(); }

  void show(const fleet::KnownHost& host) {
    constexpr Duration kLineEvery = std::chrono::seconds(10);
    const SteadyTime now = clock_.steady_now();
    const std::string line = operate::drain_text(host, now - began_, clock_.wall_now());
    if (console_.error_is_terminal()) {
      console_.progress(line);
    } else if (now >= next_line_) {
      console_.note(line);
      next_line_ = now + kLineEvery;
    }
  }

 private:
  Console& console_;
  const Clock& clock_;
  const SteadyTime began_;
  SteadyTime next_line_;
};

/// Between two looks at a host that drains.
constexpr Duration kDrainLook = std::chrono::seconds(1);

Result<runtime::ControlAnswer> wait_for_ending(LocalOrder& order, Duration patience, Console& console) {
  DrainProgress progress(console, order.clock);
  const SteadyTime until = Deadline::after(order.clock, patience).time();
  while (true) {
    auto ended = order.outcome(std::clamp(Duration(until - order.clock.steady_now()), Duration::zero(), kDrainLook));
    if (ended || ended.error().code() != ErrorCode::timeout || order.clock.steady_now() >= until) {
      return ended;
    }
    if (const auto record = order.look()) {
      progress.show({.record = *record, .place = {}});
    }
  }
}

Exit end_of_drain(LocalOrder& order, const OrderOptions& options, Console& console) {
  constexpr Duration kLeaveTime = std::chrono::seconds(10);  // from the certificate to the end of the process
  const auto ended = wait_for_ending(order, options.timeout, console);
  if (!ended && ended.error().code() == ErrorCode::timeout) {
    return not_ended(order.host, options.timeout);
  }
  if (!order.call.wait_for_exit(Deadline::after(order.clock, kLeaveTime))) {
    return not_ended(order.host, kLeaveTime);
  }
  if (!ended || !ended->ending) {
    return Exit::failure("host " + order.host + " has ended without saying how; see its log");
  }
  const Exit shown = show(order.text, order.host, ended->ending->certificate, console);
  return ended->ending->status == 0 ? shown : Exit(kExitAbandoned, "host " + order.host + " left work behind");
}

Exit end_of_reload(LocalOrder& order, const OrderOptions& /*options*/, Console& console) {
  // Handlers are tried in processes of their own, each for up to ten seconds.
  constexpr Duration kReloadTime = std::chrono::minutes(2);
  const auto ended = order.outcome(kReloadTime);
  if (!ended) {
    return Exit::failure("host " + order.host +
                         " has begun to reload, and nobody knows what came of it: " + ended.error().message());
  }
  if (ended->ending) {
    return Exit::failure("host " + order.host + " has ended before it came to the reload");
  }
  if (!ended->error.empty()) {
    return {kExitConfiguration, lines_of(ended->error)};
  }
  return show(order.text, order.host, ended->text, console);
}

OrExit<Directive> named_for_drain(FleetSession& session, const std::string& word) {
  const auto& names = session.names();
  if (word.empty()) {
    const auto& hosts = names.hosts();
    return Exit::usage("which host? " + (hosts.empty() ? std::string("None is known here")
                                         : hosts.size() == 1
                                             ? "None of this machine answers; there is " + *hosts.begin()
                                             : "There are " + sluice::joined(hosts)));
  }
  return names.host(Wish::drain, word);
}

OrExit<Directive> named_for_reload(FleetSession& session, const std::string& word) {
  return word.empty() ? order_of(Wish::reload, word) : session.names().host(Wish::reload, word);
}

constexpr OrderRow kDrain{.wish = Wish::drain,
                          .verb = runtime::ControlVerb::drain,
                          .word = "host",
                          .local = find_local,
                          .end = end_of_drain,
                          .named = named_for_drain,
                          .undone = [](const Obedience& obedience) { return obedience.answers.empty(); }};
constexpr OrderRow kReload{.wish = Wish::reload,
                           .verb = runtime::ControlVerb::reload,
                           .word = "host",
                           .local = find_local_or_all,
                           .always_waits = true,
                           .end = end_of_reload,
                           .named = named_for_reload};
constexpr OrderRow kCancelRunning{.wish = Wish::cancel_running,
                                  .verb = runtime::ControlVerb::cancel_running,
                                  .word = "id",
                                  .local = find_at_work_on,
                                  .undone = [](const Obedience& obedience) { return !obedience.done_by_somebody(); }};

/// The instances of the hosts that are called so; where one is not silent, of those that are not.
std::vector<std::string> instances_of(const fleet::FleetView& view, const std::string& word) {
  std::vector<std::string> all;
  std::vector<std::string> alive;
  for (const fleet::KnownHost& known : view.hosts) {
    if (known.record.is_called(word)) {
      (known.pulse == fleet::Pulse::silent ? all : alive).push_back(known.record.instance);
    }
  }
  return alive.empty() ? all : alive;
}

/// How the hosts have ended that were to.
Exit show_ends(const std::string& host, operate::DrainEnds ends, Console& console) {
  std::vector<std::string> lines = std::move(ends.unclean);
  const int code = lines.empty() ? kExitFailure : kExitAbandoned;
  for (auto* more : {&ends.unknown, &ends.going}) {
    std::move(more->begin(), more->end(), std::back_inserter(lines));
  }
  if (!lines.empty()) {
    return {code, std::move(lines)};
  }
  return show(order_of(Wish::drain, host).text(), host, "has ended", console);
}

Exit wait_until_gone(FleetSession& session, const std::string& host, const std::vector<std::string>& instances,
                     const OrderOptions& options, Console& console) {
  const SteadyTime until = Deadline::after(session.clock(), options.timeout).time();
  constexpr Duration kWatchEvery = std::chrono::seconds(5);
  const InterruptFlag interrupt;
  DrainProgress progress(console, session.clock());
  SteadyTime next_watch = session.clock().steady_now();
  while (true) {
    if (const SteadyTime now = session.clock().steady_now(); now >= next_watch) {
      static_cast<void>(session.fleet().watch(2 * kWatchEvery, session.deadline()));
      next_watch = now + kWatchEvery;
    }
    SLUICE_TRY(view, session.hosts());
    operate::DrainEnds ends = operate::drain_ends(instances, *view, session.clock().wall_now());
    if (ends.going.empty() || session.clock().steady_now() >= until) {
      for (std::string& line : ends.going) {
        line += " within " + config::format_duration(options.timeout);
      }
      return show_ends(host, std::move(ends), console);
    }
    for (const fleet::KnownHost& known : view->hosts) {
      if (contains(instances, known.record.instance)) {
        progress.show(known);
      }
    }
    if (!session.wait_for_look(interrupt)) {
      return Exit(kExitInterrupted, "host " + host + " drains; nobody waits for it any more");
    }
  }
}

/// Nobody has said that it does what was ordered. A host that has nothing to do drains before it says so.
Exit show_undone(FleetSession& session, Wish wish, const std::string& word, const std::vector<std::string>& drained,
                 Console& console) {
  if (wish != Wish::drain) {
    return Exit::failure("no host is at work on message " + word + "; `sluice running` lists what is at work");
  }
  SLUICE_TRY(view, session.hosts());
  return show_ends(word, operate::drain_ends(drained, *view, session.clock().wall_now()), console);
}

/// Through the store.
Exit order_far(const OrderRow& row, const std::string& word, const OrderOptions& options, const Arguments& arguments,
               Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  const std::string& queue = session->queues().queue();
  SLUICE_TRY(order, row.named == nullptr ? order_of(row.wish, word, queue) : row.named(*session, word));
  std::vector<std::string> drained;  // a host that its supervisor starts again is another one
  if (row.wish == Wish::drain) {
    SLUICE_TRY(view, session->hosts());
    drained = instances_of(*view, word);
  }
  SLUICE_TRY(given, session->give(*order, order->target == Target::message ? queue : std::string()));
  tell_unnoted(*given, console);
  if (options.wait) {
    return wait_until_gone(*session, word, drained, options, console);
  }
  SLUICE_TRY(obedience, session->follow(*given));
  if (row.undone != nullptr && row.undone(*obedience) && obedience->waited_for.empty()) {
    return show_undone(*session, row.wish, word, drained, console);
  }
  return show_answers(order->text(), *obedience, console);
}

/// The hosts of this machine that work by the command's host file; none without one. They are reached whether or not
/// the store can be.
LocalHosts local_hosts_of(const Arguments& arguments, const Clock& clock) {
  const auto host = works_by_host_file(arguments) ? load_host_file(arguments) : OrExit<config::HostConfig>(Exit::ok());
  return host.has_error() ? LocalHosts() : find_local_hosts(runtime::ControlFolder::of(*host), clock);
}

/// Leaves a line for `sluice audit`; a store that cannot be reached is no reason not to steer.
void note_for_audit(const Directive& order, const Arguments& arguments, const Clock& clock, Console& console) {
  const auto note = [&]() -> OrExit<void> {
    SLUICE_TRY(session, FleetSession::open(arguments));
    SLUICE_PASS_ON(session->fleet().note(order, {}, this_operator(), Deadline::after(clock, kAuditTime)));
    return {};
  };
  if (const auto noted = note(); noted.has_error()) {
    tell_unnoted(noted.error().lines().empty() ? std::string() : noted.error().lines().front(), console);
  }
}

/// At the control socket of a host of this machine, whether or not the store can be reached; else through the store.
Exit run_order(const OrderRow& row, const Arguments& arguments, Console& console) {
  SLUICE_TRY(timeout,
             arguments.duration("timeout", std::chrono::minutes(10), Duration::zero(), std::chrono::hours(24)));
  const OrderOptions options{arguments.has("wait"), *timeout};
  const std::string word = arguments.get(row.word);
  const SystemClock clock;
  const LocalHosts hosts = local_hosts_of(arguments, clock);
  const bool of_message = row.wish == Wish::cancel_running;
  const std::string queue = of_message ? arguments.get("queue") : std::string();
  SLUICE_TRY(host, row.local(hosts, word, queue));
  if (*host == nullptr) {
    return order_far(row, word, options, arguments, console);
  }
  const std::string label = (*host)->record.label();
  const Directive directive = order_of(row.wish, of_message ? word : label, queue);
  const bool waits = row.always_waits || options.wait;
  SLUICE_TRY(call, runtime::ControlCall::open((*host)->file, clock));
  const auto begun =
      call->ask({.verb = row.verb, .message = of_message ? word : std::string(), .wait = waits, .queue = queue},
                Deadline::after(clock, kAnswerTime));
  if (!begun || !begun->error.empty()) {
    return Exit::failure("host " + label + ": " + (begun ? begun->error : begun.error().message()));
  }
  note_for_audit(directive, arguments, clock, console);
  if (waits) {
    LocalOrder order{directive.text(), label, (*host)->file, std::move(*call), clock};
    return row.end(order, options, console);
  }
  return show(directive.text(), label, begun->text, console);
}

/// A command that gives it.
auto order(const OrderRow& row) {
  return [&row](const Arguments& arguments, Console& console) { return run_order(row, arguments, console); };
}

/// Whom pause and resume mean.
std::vector<Flag> with_thing_flags(Flag own) {
  std::vector<Flag> flags =
      with_store_flags({against("job|queue", alone({"name", "QUEUE-OR-JOB", "whichever has this name"})),
                        against("queue", filled({"job", "JOB", "this job, on all hosts"})), own});
  for (Flag& flag : flags) {
    flag.help = flag.name == "queue" ? "all jobs of this queue" : flag.help;
  }
  return flags;
}

}  // namespace

std::vector<Command> steering_commands() {
  return {
      {
          .name = "pause",
          .summary = "Let no handler of a queue or job start until it is resumed",
          .usage = "QUEUE-OR-JOB [OPTION]...",
          .description =
              "All hosts stop claiming for the job, or for all jobs of the queue; handlers that are at work finish, "
              "and what was claimed and has not started is put back without burning an attempt. It is written to the "
              "store: hosts obey within a second on SQLite and within two polls on DynamoDB, and so do those that "
              "start later, until `resume`. `jobs` and `check` show it. Says which hosts obey; exit code 1 when one "
              "does not in time.",
          .flags = with_thing_flags({"reset", {}, "take it back, as `resume` does"}),
          .examples = "sluice pause mailer\n"
                      "sluice pause --queue orders",
          .run = pause,
      },
      {
          .name = "resume",
          .summary = "Let a paused queue or job go on",
          .usage = "QUEUE-OR-JOB | --all [OPTION]...",
          .description = "Takes a `pause` back. Exit code 1 when there is none.",
          .flags = with_thing_flags(against("name|job|queue", {"all", {}, "everything that is paused"})),
          .examples = "sluice resume mailer\n"
                      "sluice resume --all",
          .run = resume,
      },
      {
          .name = "scale",
          .summary = "Let each host run a job with so many workers, whatever its file says",
          .usage = "JOB N | JOB --reset [OPTION]...",
          .description =
              "Every host that runs the job, now or later, gives it N workers instead of the job file's concurrency; "
              "handlers that are at work finish. It stands until --reset; `jobs` and `check` show it beside what the "
              "file says. Exit code 1 when a host does not obey in time.",
          .flags = with_store_flags(
              {alone(required({"job", "JOB", "the job"})),
               against("reset", alone({"workers", "N", "1 to 100000, on each host; at most 1024 threads"})),
               {"reset", {}, "go back to what the job file says"}}),
          .examples = "sluice scale mailer 16\n"
                      "sluice scale mailer --reset",
          .run = scale,
      },
      {
          .name = "drain",
          .summary = "End a host as SIGTERM does: nothing more is claimed, handlers finish",
          .usage = "[HOST] [--wait [--timeout TIME]] [OPTION]...",
          .description =
              "HOST is a name or NAME:PID as `hosts` shows them; without one the only host of this machine is meant. "
              "A host of this machine is told at its control socket, in the folder [host] state_dir, whether or not "
              "the store can be reached; another one through the store.\n\n"
              "--wait returns when the host has ended, and prints its drain certificate where it is one of this "
              "machine; exit code 75 when it left work behind, and 1 when it falls silent, so that nobody knows. "
              "Meanwhile standard error tells what is still at work, "
              "each second on a terminal and every ten elsewhere. A host that is started again by its supervisor is "
              "another one.",
          .flags = with_store_flags({alone({"host", "HOST", "which one"}),
                                     {"wait", {}, "until it has ended"},
                                     only_with("wait", {"timeout", "TIME", "how long to wait [default: 10m]"})}),
          .examples = "sluice drain --wait\n"
                      "sluice drain web-1:4711",
          .run = order(kDrain),
      },
      {
          .name = "reload",
          .summary = "Let a host read its job files and plugins again, as SIGHUP does",
          .usage = "[HOST] [OPTION]...",
          .description =
              "HOST is a name or NAME:PID as `hosts` shows them; without one the only host of this machine is meant, "
              "and where none or several run here, all hosts. A host of this machine is told at its control socket, "
              "in the folder [host] state_dir: then the command waits, says what has changed (a job whose plugin is "
              "another one with both versions, and files that are not used with the reason), and ends with exit code "
              "78 when the files are wrong and nothing was. A host elsewhere is told through the store, and says what "
              "came of it in its log.",
          .flags = with_store_flags({alone({"host", "HOST", "which one"})}),
          .examples = "sluice reload\n"
                      "sluice reload web-1",
          .run = order(kReload),
      },
      {
          .name = "cancel-running",
          .summary = "Set the stop token of the handler that is at work on a message",
          .usage = "[QUEUE] ID [OPTION]...",
          .description =
              "The handler is asked to stop, as by a drain or its time-out; what it returns then is its outcome, and "
              "one that does not look at its stop token goes on. Exit code 1 when no host is at work on the message. "
              "To remove a message that waits, write `sluice cancel`.",
          .flags = with_store_flags({alone(required({"id", "ID", "the message's id"}))}),
          .examples = "sluice cancel-running A-101",
          .run = order(kCancelRunning),
      },
      {
          .name = "log-level",
          .summary = "Let hosts log more or less, whatever their file says",
          .usage = "LEVEL [HOST] | --reset [HOST] [OPTION]...",
          .description =
              "For the named host, by name or NAME:PID, else for all. It stands until --reset; `hosts` shows it "
              "beside what the file says.",
          .flags = with_store_flags({alone({"level", "trace|debug|info|warn|error", "from this one on"}),
                                     alone({"host", "HOST", "this host only"}),
                                     {"reset", {}, "go back to what the host file says; without a host everywhere"}}),
          .examples = "sluice log-level debug web-1\n"
                      "sluice log-level --reset",
          .run = log_level,
      },
  };
}

}  // namespace sluice::cli
