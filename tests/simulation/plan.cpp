#include "tests/simulation/plan.hpp"

#include <algorithm>
#include <chrono>

namespace sluice::simulation {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;

namespace {

// What goes wrong with a table and with the clocks of those who use it.
TablePlan make_table_plan(Random& random, Duration visibility) {
  const auto coin = [&](double chance) { return random.unit() < chance; };
  TablePlan plan;
  plan.lag.typical = coin(0.7) ? Duration(20ms) : Duration(1s);
  plan.lag.longest = coin(0.4) ? Duration(60s) : Duration(2s);
  plan.lag.slow = coin(0.5) ? random.unit() * 0.3 : 0;
  if (coin(0.3)) {
    plan.limits.partition_write = 20 + random.unit() * 100;
    plan.limits.partition_read = 20 + random.unit() * 100;
  }
  // Less than half a visibility timeout, more than that, or simply wrong.
  const Duration skews[] = {visibility / 2, 3 * visibility, 1h};
  plan.skew = coin(0.4) ? skews[random.below(3)] : 0s;
  plan.late = coin(0.3);
  return plan;
}

config::IdempotencyConfig make_keys(Random& random) {
  config::IdempotencyConfig keys;
  if (random.unit() < 0.75) {
    keys.kind = config::IdempotencyConfig::Kind::attribute;
    keys.path = "key";
  }
  keys.while_running = random.below(3) == 0 ? config::WhileRunning::reject : config::WhileRunning::wait;
  keys.on_duplicate = random.below(3) == 0 ? config::OnDuplicate::run : config::OnDuplicate::skip;
  keys.on_missing = config::OnMissingKey::run;
  return keys;
}

// Groups are kept on SQLite alone; a queue in order on both.
config::Order make_order(Random& random, Store store) {
  const double dice = random.unit();
  if (store == Store::dynamomq) {
    return dice < 0.3 ? config::Order::queue : config::Order::none;
  }
  return dice < 0.5 ? config::Order::group : dice < 0.7 ? config::Order::queue : config::Order::none;
}

work::WorkStyle make_style(Random& random) {
  work::WorkStyle style{.max_batch = 2 + random.below(8)};
  const double dice = random.unit();
  if (dice < 0.25) {
    style.kind = plugin::HandlerKind::batch;
    style.max_wait = random.below(2) == 0 ? Duration::zero() : Duration(std::chrono::milliseconds(random.below(300)));
  } else if (dice < 0.5) {
    style.kind = plugin::HandlerKind::async;
  }
  return style;
}

void make_trade(Plan& plan, Random& random, Store store) {
  const auto coin = [&](double chance) { return random.unit() < chance; };
  TradePlan& trade = plan.trade.emplace();
  plan.messages = 10 + random.below(25);
  if (coin(0.2)) {
    plan.job.retry.max_attempts = 1;
  }
  plan.job.order = make_order(random, store);
  if (coin(0.65)) {
    plan.job.idempotency = make_keys(random);
  }
  trade.groups = 1 + random.below(5);
  trade.keys = 2 + random.below(plan.messages);
  trade.dedup_window = coin(0.7) ? 15s + std::chrono::seconds(random.below(10)) : 0s;
  trade.copies = random.unit();
  trade.refused = coin(0.4) ? random.unit() * 0.3 : 0;
  trade.rejects_refused = coin(0.3);
  trade.shared = coin(0.3);
  trade.span = coin(0.5) ? Duration(std::chrono::milliseconds(1 + random.below(30))) : 0s;
  plan.table.span = trade.span;
  plan.bombs = std::min<std::uint64_t>(plan.bombs, 1);
  if (plan.job.order == config::Order::none) {
    return;
  }
  // What is kept would keep those behind it for ever, and nobody outside is held back.
  plan.job.dead_letter = coin(0.3) ? config::DeadLetterPolicy::discard : config::DeadLetterPolicy::move;
  if (store == Store::dynamomq) {
    // As strict as the index is, so that it must not lag. One worker, as `check` wants it.
    plan.job.concurrency = 1;
    plan.table.lag = {};
    plan.takes_away = false;
  } else if (coin(0.3)) {
    plan.job.on_dead_letter = config::OnDeadLetter::hold;
    plan.bombs = 0;  // one that an operator puts back would end another host
  }
}

}  // namespace

Plan make_plan(Random& random, Store store, Work work) {
  const auto maybe = [&](double chance, double most) { return random.unit() < chance ? random.unit() * most : 0.0; };
  const auto coin = [&](double chance) { return random.unit() < chance; };
  Plan plan;
  plan.job.name = plan.job.queue = "orders";
  plan.job.handler = "simulated";
  plan.job.concurrency = 1 + static_cast<std::uint32_t>(random.below(6));
  plan.job.timeout = 1s + std::chrono::milliseconds(random.below(15'000));
  plan.job.rate_limit = coin(0.2) ? 5 + random.unit() * 100 : 0;
  plan.job.rate_per_host = true;
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
  if (store == Store::dynamomq) {
    plan.table = make_table_plan(random, plan.visibility);
    // Answers tell whole seconds, so that each host may be one off. A clock that has just jumped may be off by more,
    // and what comes late was meant earlier.
    if (!plan.jumps && !plan.table.late) {
      plan.table.early = 2s;
    }
  }
  if (work == Work::trade) {
    make_trade(plan, random, store);
  }
  plan.style = make_style(random);
  return plan;
}

namespace {

void describe_trade(const Plan& plan, std::string& text) {
  const auto add = [&](bool on, const std::string& name) { text += on ? ", " + name : ""; };
  add(plan.job.order == config::Order::group, std::to_string(plan.trade->groups) + " groups in order");
  add(plan.job.order == config::Order::queue, "a queue in order");
  add(plan.job.on_dead_letter == config::OnDeadLetter::hold, "dead letters hold");
  if (const auto& keys = plan.job.idempotency) {
    add(true, keys->kind == config::IdempotencyConfig::Kind::message ? "keyed by id" : "keyed");
    add(keys->while_running == config::WhileRunning::reject, "rejects while running");
    add(keys->on_duplicate == config::OnDuplicate::run, "runs duplicates");
  }
  add(plan.trade->dedup_window > Duration::zero(),
      "deduplicates for " + config::format_duration(plan.trade->dedup_window));
  add(plan.trade->refused > 0, "refused effects");
  add(plan.trade->span > Duration::zero(), "transactions that conflict");
}

}  // namespace

std::string describe(const Plan& plan) {
  std::string text = std::to_string(plan.messages) + " messages, " + std::to_string(plan.job.concurrency) +
                     " workers, visibility " + config::format_duration(plan.visibility);
  const auto add = [&](bool on, const char* name) { text += on ? std::string(", ") + name : ""; };
  add(plan.style.batch(), plan.style.max_wait > Duration::zero() ? "batches that wait" : "batches");
  add(plan.style.async(), "asynchronous handlers");
  add(plan.faults.any(), "store faults");
  add(plan.crashes, plan.ledgers ? "crashes with ledgers" : "crashes");
  add(plan.bombs > 0, plan.ledgers ? "bombs and ledgers" : "bombs");
  add(plan.outages, "completions refused");
  add(plan.freezes, "freezes");
  add(plan.jumps, "clock jumps");
  add(plan.takes_away, "messages taken away");
  add(plan.restarts, "restarts");
  add(plan.handlers.stuck > 0, "stuck handlers");
  add(plan.table.lag.slow > 0, "a lagging index");
  add(plan.table.limits.partition_write > 0, "hot partitions");
  add(plan.table.late, "late requests");
  add(plan.table.skew > Duration::zero(), plan.table.skew > plan.visibility ? "very wrong clocks" : "wrong clocks");
  if (plan.trade) {
    describe_trade(plan, text);
  }
  return text;
}

}  // namespace sluice::simulation
