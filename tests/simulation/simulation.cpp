#include "tests/simulation/simulation.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "tests/simulation/memory_backend.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/sim_host.hpp"
#include "tests/simulation/sim_loop.hpp"
#include "tests/simulation/sim_port.hpp"
#include "tests/simulation/sqlite_backend.hpp"
#include "tests/simulation/table_backend.hpp"
#include "tests/simulation/trade.hpp"
#include "tests/simulation/truth.hpp"
#include "tests/support/desk.hpp"

namespace sluice::simulation {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

constexpr Duration kChaos = 45s;
constexpr Duration kPeaceLimit = 1h;
constexpr Duration kTradeLimit = 15min;
constexpr Duration kDrain = 8s;

class Run {
 public:
  Run(std::uint64_t seed, Mutation mutation, Store store, Work work)
      : random_(seed),
        mutation_(mutation),
        plan_(make_plan(random_, store, work)),
        truth_({.max_attempts = plan_.job.retry.max_attempts,
                .discards_when_used_up = plan_.job.dead_letter == config::DeadLetterPolicy::discard,
                .leases_end_unseen = plan_.jumps || plan_.takes_away || plan_.table.skew > Duration::zero(),
                .strangers = plan_.takes_away,
                .late_handlers = plan_.handlers.stuck > 0,
                .turned_away = plan_.job.idempotency.has_value(),
                .kept_at_door = plan_.job.idempotency && plan_.job.dead_letter == config::DeadLetterPolicy::keep}),
        backend_(make_backend(store)),
        desk_(backend_->outside()),
        port_{*backend_, truth_, random_, loop_.clock(), plan_.faults, mutation},
        world_{loop_, random_, port_, truth_, plan_.handlers, plan_.job, plan_.visibility, 1s, plan_.style, {}} {
    world_.on_start = [this](const SimHost& host, const queue::Message& message) {
      check_exclusive(host, message);
      if (trade_) {
        trade_->started(message);
      }
    };
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
    if (plan_.trade) {
      open_trade();
    }
  }

  Report go() {
    backend_->set_faults(plan_.faults);
    hosts_ = {make_host(), make_host()};
    const SteadyTime peace = loop_.now() + kChaos;
    if (trade_) {
      trade_->begin(kChaos * 8 / 10);
    } else {
      schedule_sends();
    }
    schedule_disturbance();
    loop_.run_until(peace, [] { return false; });
    chaos_ = false;
    port_.faults = {};
    backend_->set_faults({});
    world_.handlers = {.slow = 0.1, .slow_time = 2s};
    for (auto& host : hosts_) {
      if (!host->alive()) {
        host = make_host();
      }
    }
    const Duration limit = trade_ ? kTradeLimit : kPeaceLimit;
    if (!loop_.run_until(loop_.now() + limit, [this] { return looked_for_end(); })) {
      truth_.violation("the backlog does not drain after the faults have stopped");
    }
    for (auto& host : hosts_) {
      stop(*host);
    }
    check_fates();
    if (trade_) {
      trade_->check();
    }
    return {truth_.violations(),
            describe(plan_),
            plan_.messages,
            truth_.handled(),
            truth_.settlements(),
            loop_.count(),
            disturbances_,
            trade_ ? trade_->books().effects() : 0,
            trade_ ? trade_->books().duplicates() : 0};
  }

 private:
  std::unique_ptr<Backend> make_backend(Store store) {
    if (store == Store::memory) {
      return std::make_unique<MemoryBackend>(loop_.clock(), random_);
    }
    if (store == Store::sqlite) {
      auto file = std::make_unique<SqliteBackend>(loop_.clock(), random_);
      real_ = file.get();
      return file;
    }
    auto tables = std::make_unique<TableBackend>(loop_.clock(), random_, plan_.table, truth_);
    tables->plant(mutation_);
    real_ = tables.get();
    return tables;
  }

  void open_trade() {
    trade_ = std::make_unique<Trade>(Trade::World{plan_, loop_, random_, *real_, port_, truth_, mutation_, [this] {
                                                    if (random_.below(2) == 0) {
                                                      some_host().wake();
                                                    }
                                                  }});
    world_.on_end = [this](const work::Task& task, plugin::Outcome& outcome) { trade_->finished(task, outcome); };
  }

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
      if (trade_) {
        trade_->jumped(jump);
      }
    } else if (dice == 3 && plan_.takes_away) {
      backend_->take_away(SimPort::address());
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
    if (trade_) {
      trade_->deal_with_holds();
    }
    // What has come to its end stays there.
    const bool ended = std::all_of(truth_.all_sent().begin(), truth_.all_sent().end(), [this](const auto& id) {
      return ended_.contains(id) || (fate(id) && ended_.insert(id).second);
    });
    return ended && !(trade_ && trade_->sending()) && std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
             return host->held() == 0 && !host->frozen();
           });
  }

  // True when the message has come to its end: removed, dead, or kept for an operator because its attempts are used up.
  bool fate(const std::string& id) {
    const auto stored = desk_.get("orders", id, Deadline::never());
    if (!stored || stored->half == queue::Half::dlq) {
      // One that holds its group waits for its operator.
      return !stored || plan_.job.on_dead_letter != config::OnDeadLetter::hold;
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
  }

  SeededRandom random_;
  const Mutation mutation_;
  const Plan plan_;
  SimLoop loop_;
  Truth truth_;
  StoreBackend* real_ = nullptr;
  const std::unique_ptr<Backend> backend_;
  test::Desk desk_;
  SimPort::World port_;
  SimHost::World world_;
  std::unique_ptr<Trade> trade_;
  std::array<std::shared_ptr<SimHost>, 2> hosts_;
  std::shared_ptr<SimHost> restarting_;
  SteadyTime look_at_{};
  std::set<std::string> ended_;
  int next_host_ = 1;
  bool chaos_ = true;
  std::uint64_t disturbances_ = 0;
  std::set<std::string> killed_;
};

}  // namespace

Report simulate(std::uint64_t seed, Mutation mutation, Store store, Work work) {
  return Run(seed, mutation, store, work).go();
}

}  // namespace sluice::simulation
