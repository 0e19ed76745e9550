#include "tests/simulation/simulation.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "tests/simulation/sim_host.hpp"
#include "tests/simulation/sim_loop.hpp"
#include "tests/simulation/sim_port.hpp"
#include "tests/simulation/truth.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::simulation {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

constexpr Duration kChaos = 45s;
constexpr Duration kPeaceLimit = 1h;
constexpr Duration kDrain = 8s;

// What one seed chose.
struct Plan {
  config::JobConfig job;
  Duration visibility{};
  std::uint64_t messages = 0;
  FaultMix faults;
  HandlerMix handlers;
  bool crashes = false;
  bool freezes = false;
  bool jumps = false;
  bool takes_away = false;
  bool restarts = false;
  bool outages = false;
  bool ledgers = false;
  std::uint64_t bombs = 0;

  // Nothing but a lease that has ended in the eyes of its own host lets two of them work on one message.
  bool exclusive() const { return !freezes && !jumps && !takes_away && faults.slow <= 0; }
};

Plan make_plan(Random& random) {
  const auto maybe = [&](double chance, double most) { return random.unit() < chance ? random.unit() * most : 0.0; };
  const auto coin = [&](double chance) { return random.unit() < chance; };
  Plan plan;
  plan.job.name = plan.job.queue = "orders";
  plan.job.handler = "simulated";
  plan.job.concurrency = 1 + static_cast<std::uint32_t>(random.below(6));
  plan.job.timeout = 1s + std::chrono::milliseconds(random.below(15'000));
  plan.job.rate_limit = coin(0.2) ? 5 + random.unit() * 100 : 0;
  plan.job.retry = {.max_attempts = 2 + static_cast<std::uint32_t>(random.below(4)),
                    .backoff = static_cast<config::Backoff>(random.below(3)),
                    .base = 100ms,
                    .max = 3s,
                    .jitter = static_cast<config::Jitter>(random.below(3))};
  plan.job.dead_letter = static_cast<config::DeadLetterPolicy>(random.below(3));
  plan.visibility = 2s + std::chrono::milliseconds(random.below(6'000));
  plan.messages = 20 + random.below(80);
  plan.faults = {.throttled = maybe(0.4, 0.3),
                 .unavailable = maybe(0.4, 0.3),
                 .answer_lost = maybe(0.5, 0.2),
                 .one_message = maybe(0.4, 0.3),
                 .slow = maybe(0.3, 0.1)};
  plan.handlers = {.slow = maybe(0.6, 0.3),
                   .stuck = maybe(0.3, 0.05),
                   .fails = maybe(0.6, 0.3),
                   .rejects = maybe(0.5, 0.1),
                   .postpones = maybe(0.5, 0.2),
                   // Half of the handlers are so quick that workers take several messages at a time.
                   .quick_time = coin(0.5) ? Duration(50us) : Duration(3ms)};
  plan.crashes = coin(0.4);
  plan.freezes = coin(0.3);
  plan.jumps = coin(0.3);
  plan.takes_away = coin(0.3);
  plan.restarts = coin(0.4);
  plan.outages = coin(0.3);
  plan.ledgers = coin(0.5);
  plan.bombs = coin(0.4) ? 1 + random.below(3) : 0;
  return plan;
}

std::string describe(const Plan& plan) {
  std::string text = std::to_string(plan.messages) + " messages, " + std::to_string(plan.job.concurrency) +
                     " workers, visibility " + config::format_duration(plan.visibility);
  const auto add = [&](bool on, const char* name) { text += on ? std::string(", ") + name : ""; };
  add(plan.faults.any(), "store faults");
  add(plan.crashes, plan.ledgers ? "crashes with ledgers" : "crashes");
  add(plan.bombs > 0, plan.ledgers ? "bombs and ledgers" : "bombs");
  add(plan.outages, "completions refused");
  add(plan.freezes, "freezes");
  add(plan.jumps, "clock jumps");
  add(plan.takes_away, "messages taken away");
  add(plan.restarts, "restarts");
  add(plan.handlers.stuck > 0, "stuck handlers");
  return text;
}

class Run {
 public:
  Run(std::uint64_t seed, Mutation mutation)
      : random_(seed),
        mutation_(mutation),
        plan_(make_plan(random_)),
        queues_(loop_.clock(), random_),
        desk_(queues_),
        truth_({.max_attempts = plan_.job.retry.max_attempts,
                .discards_when_used_up = plan_.job.dead_letter == config::DeadLetterPolicy::discard,
                .leases_end_unseen = plan_.jumps || plan_.takes_away,
                .strangers = plan_.takes_away,
                .late_handlers = plan_.handlers.stuck > 0 || !plan_.exclusive()}),
        port_{queues_,
              truth_,
              random_,
              loop_.clock(),
              plan_.faults,
              mutation == Mutation::no_version_condition ? SimPort::Mutation::no_version_condition
                                                         : SimPort::Mutation::none},
        world_{loop_, random_, port_, truth_, plan_.handlers, plan_.job, plan_.visibility, 1s, {}} {
    world_.on_start = [this](const SimHost& host, const queue::Message& message) { check_exclusive(host, message); };
    world_.on_death = [this](SimHost& host, const std::string& bomb) {
      if (!killed_.insert(bomb).second) {
        truth_.violation(bomb + " has ended a second host");
      }
      bury(host);
    };
    for (std::uint64_t i = 0; i < plan_.bombs; ++i) {
      world_.bombs.insert("m" + std::to_string(random_.below(plan_.messages)));
    }
    if (mutation == Mutation::attempts_without_end) {
      world_.job.retry.max_attempts = 0;
    }
    if (mutation == Mutation::leases_seem_longer) {
      port_.real_visibility = plan_.visibility / 2;
    }
  }

  Report go() {
    hosts_ = {make_host(), make_host()};
    const SteadyTime peace = loop_.now() + kChaos;
    schedule_sends();
    schedule_disturbance();
    loop_.run_until(peace, [] { return false; });
    chaos_ = false;
    port_.faults = {};
    world_.handlers = {.slow = 0.1, .slow_time = 2s};
    for (auto& host : hosts_) {
      if (!host->alive()) {
        host = make_host();
      }
    }
    if (!loop_.run_until(loop_.now() + kPeaceLimit, [this] { return looked_for_end(); })) {
      truth_.violation("the backlog does not drain after the faults have stopped");
    }
    for (auto& host : hosts_) {
      stop(*host);
    }
    check_fates();
    return {truth_.violations(),  describe(plan_), plan_.messages, truth_.handled(),
            truth_.settlements(), loop_.count(),   disturbances_};
  }

 private:
  std::shared_ptr<SimHost> make_host() {
    auto host = std::make_shared<SimHost>(world_, next_host_++);
    loop_.after(0s, [host] {
      if (host->alive()) {
        host->start();
      }
    });
    return host;
  }

  SimHost& some_host() { return *hosts_[random_.below(hosts_.size())]; }

  void schedule_sends() {
    for (std::uint64_t i = 0; i < plan_.messages; ++i) {
      const auto when =
          Duration(static_cast<Duration::rep>(random_.unit() * 0.8 * static_cast<double>(kChaos.count())));
      // Many come in bursts.
      loop_.after(random_.below(3) == 0 ? when : when / 1s * 1s, [this, i] {
        queue::NewMessage message;
        message.id = "m" + std::to_string(i);
        message.delay = random_.below(10) == 0 ? 2s : 0s;
        desk_.send("orders", {&message, 1}, Deadline::never());
        truth_.sent(message.id);
        if (random_.below(2) == 0) {
          some_host().wake();
        }
      });
    }
  }

  void schedule_disturbance() {
    loop_.after(500ms + std::chrono::milliseconds(random_.below(6000)), [this] {
      if (chaos_) {
        disturb();
        schedule_disturbance();
      }
    });
  }

  void disturb() {
    auto& slot = hosts_[random_.below(hosts_.size())];
    const std::uint64_t dice = random_.below(6);
    disturbances_ += 1;
    if (dice == 0 && plan_.crashes && slot->alive()) {
      slot->crash();
      bury(*slot);
    } else if (dice == 1 && plan_.freezes) {
      slot->freeze(
          Duration(static_cast<Duration::rep>(random_.unit() * 3 * static_cast<double>(plan_.visibility.count()))));
    } else if (dice == 2 && plan_.jumps) {
      const auto jump = Duration(
          static_cast<Duration::rep>((random_.unit() - 0.5) * 4 * static_cast<double>(plan_.visibility.count())));
      loop_.clock().set_wall(loop_.clock().wall_now() + jump);
    } else if (dice == 3 && plan_.takes_away) {
      queues_.lose_receipts(SimPort::address(), 2s);
      truth_.taken_away();
    } else if (dice == 4 && plan_.restarts && slot->alive() && restarting_ == nullptr) {
      restart(slot);
    } else if (dice == 5 && plan_.outages && !port_.faults.settles_refused) {
      port_.faults.settles_refused = true;
      loop_.after(std::chrono::seconds(random_.below(20)), [this] { port_.faults.settles_refused = false; });
    } else {
      disturbances_ -= 1;
    }
  }

  // A while after the death of a host another one takes its place, and finds what it has left.
  void bury(SimHost& dead) {
    loop_.after(std::chrono::milliseconds(random_.below(5000)), [this, host = dead.shared_from_this()] {
      if (plan_.ledgers) {
        host->recover(mutation_ == Mutation::blames_all_held);
      }
      for (auto& slot : hosts_) {
        if (slot == host) {
          slot = make_host();
        }
      }
    });
  }

  // A host is told to stop, sometimes twice, while the run goes on; a fresh one takes its place when it has.
  void restart(std::shared_ptr<SimHost>& slot) {
    restarting_ = slot;
    slot->drain(kDrain);
    if (random_.below(4) == 0) {
      loop_.after(std::chrono::milliseconds(random_.below(3000)), [host = slot] {
        if (host->alive()) {
          host->hard_stop();
        }
      });
    }
    loop_.after(kDrain + 1ms, [this, host = slot, &slot] { end_restart(host, slot); });
  }

  void end_restart(const std::shared_ptr<SimHost>& host, std::shared_ptr<SimHost>& slot) {
    if (host->alive() && host->frozen()) {
      // It cannot stop in time; it is looked at once it is back.
      loop_.after(100ms, [this, host, &slot] { end_restart(host, slot); });
      return;
    }
    restarting_ = nullptr;
    if (!host->alive()) {
      return;
    }
    check_stopped(*host, false);
    host->crash();
    if (slot == host) {
      slot = make_host();
    }
  }

  void stop(SimHost& host) {
    host.drain(kDrain);
    if (mutation_ != Mutation::drain_forgets) {
      loop_.run_until(loop_.now() + kDrain + 1ms, [&] { return host.ended(); });
    }
    check_stopped(host, plan_.handlers.stuck <= 0);
  }

  void check_stopped(const SimHost& host, bool in_peace) {
    const std::string name = "host " + std::to_string(host.number());
    if (!host.ended()) {
      truth_.violation(name + " has not stopped within the bound");
    }
    if (!host.drained_in_time() && !plan_.freezes) {
      truth_.violation(name + " has stopped too late");
    }
    const work::LedgerSnapshot ledger = host.ledger();
    if (ledger.claimed != ledger.ended() + ledger.stranded) {
      truth_.violation(name + " has a ledger that does not add up");
    }
    if (in_peace && ledger.stranded > 0) {
      truth_.violation(name + " has stranded messages in peace");
    }
  }

  void check_exclusive(const SimHost& starting, const queue::Message& message) {
    if (!plan_.exclusive()) {
      return;
    }
    for (const auto& host : hosts_) {
      if (host->works_on(message.id) && host->number() != starting.number()) {
        truth_.violation(message.id + " was started by host " + std::to_string(starting.number()) + " while host " +
                         std::to_string(host->number()) + " works on it");
      }
    }
  }

  // Looking at every record after every event would take most of the time.
  bool looked_for_end() {
    if (loop_.now() < look_at_) {
      return false;
    }
    look_at_ = loop_.now() + 500ms;
    const bool ended =
        std::all_of(truth_.all_sent().begin(), truth_.all_sent().end(), [this](const auto& id) { return fate(id); });
    return ended && std::all_of(hosts_.begin(), hosts_.end(),
                                [](const auto& host) { return host->held() == 0 && !host->frozen(); });
  }

  // True when the message has come to its end: removed, dead, or kept for an operator because its attempts are used up.
  bool fate(const std::string& id) {
    const auto stored = desk_.get("orders", id, Deadline::never());
    if (!stored || stored->queue_type == queue::QueueType::dlq) {
      return true;
    }
    return plan_.job.dead_letter == config::DeadLetterPolicy::keep &&
           (stored->message.attempt >= plan_.job.retry.max_attempts || stored->failure.error == "unwanted");
  }

  void check_fates() {
    for (const std::string& id : truth_.all_sent()) {
      const auto stored = desk_.get("orders", id, Deadline::never());
      if (!stored && !truth_.removed(id)) {
        truth_.violation(id + " has vanished");
      }
      if (stored && truth_.removed(id)) {
        truth_.violation(id + " is still there although it was removed");
      }
    }
    queues_.forget_calls();
  }

  SeededRandom random_;
  const Mutation mutation_;
  const Plan plan_;
  SimLoop loop_;
  test::SimQueues queues_;
  test::Desk desk_;
  Truth truth_;
  SimPort::World port_;
  SimHost::World world_;
  std::array<std::shared_ptr<SimHost>, 2> hosts_;
  std::shared_ptr<SimHost> restarting_;
  SteadyTime look_at_{};
  int next_host_ = 1;
  bool chaos_ = true;
  std::uint64_t disturbances_ = 0;
  std::set<std::string> killed_;
};

}  // namespace

Report simulate(std::uint64_t seed, Mutation mutation) { return Run(seed, mutation).go(); }

}  // namespace sluice::simulation
