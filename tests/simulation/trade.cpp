#include "tests/simulation/trade.hpp"

#include <algorithm>
#include <utility>

#include "base/timestamp.hpp"

namespace sluice::simulation {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

/// The process that sends; hosts count from one.
constexpr Truth::Host kProducer = 0;
constexpr int kMostCopies = 3;
constexpr int kMostTries = 12;
/// What DynamoDB's time may be off, twice.
constexpr Duration kMarkSlack = 10s;

std::vector<queue::StoredMessage> all_of(test::Desk& desk, const std::string& queue, queue::Half half) {
  std::vector<queue::StoredMessage> all;
  queue::ListRequest request{.half = half, .limit = 500, .cursor = {}, .consistent = true};
  do {
    auto page = desk.list(queue, request, Deadline::never());
    if (!page) {
      break;
    }
    std::move(page->messages.begin(), page->messages.end(), std::back_inserter(all));
    request.cursor = page->next;
  } while (!request.cursor.empty());
  return all;
}

bool may_have_happened(const Error& error) {
  return error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
}

}  // namespace

Books::Rules Trade::rules_of(const Plan& plan, bool own_answers) {
  return {.order = plan.job.order,
          .hold = plan.job.on_dead_letter == config::OnDeadLetter::hold,
          .keys = plan.job.idempotency,
          .window = plan.trade->dedup_window,
          // DynamoDB's time is known to five seconds.
          .off = own_answers ? 6s : 0s,
          .discards = plan.job.dead_letter == config::DeadLetterPolicy::discard,
          .own_answers = own_answers};
}

Trade::Trade(World world)
    : world_(std::move(world)),
      plan_(*world_.plan.trade),
      books_(rules_of(world_.plan, world_.store.is_real()), world_.truth),
      sender_(*world_.store.queues_of(kProducer).open_sender(SimPort::address().queue)),
      careful_(*world_.store.outside().open_sender(SimPort::address().queue)),
      keys_(*world_.store.outside().open_keys(SimPort::address().queue)),
      desk_(world_.store.outside()) {
  world_.store.begin_trade(
      [this](const std::string& id, const std::string& sent_at) { books_.stored(id, sent_at, world_.loop.now()); });
  world_.port.keys = world_.plan.job.idempotency;
  world_.port.on_settled = [this](Truth::Host host, const queue::Completion& completion,
                                  const queue::SettleResult& result) { books_.told(host, completion, result); };
}

void Trade::begin(Duration span) {
  for (std::uint64_t i = 0; i < world_.plan.messages; ++i) {
    const auto when = Duration(static_cast<Duration::rep>(world_.random.unit() * static_cast<double>(span.count())));
    // Many come in bursts.
    world_.loop.after(world_.random.below(3) == 0 ? when : when / 5s * 5s, [this, i] { send(write(i), 0); });
  }
}

Letter Trade::write(std::uint64_t number) {
  Letter letter{.id = next_id()};
  if (world_.random.below(4) != 0) {
    letter.group = "g" + std::to_string(world_.random.below(plan_.groups));
  }
  if (world_.random.below(6) != 0) {
    letter.key = "k" + std::to_string(world_.random.below(plan_.keys));
  }
  if (plan_.dedup_window > Duration::zero() && world_.random.below(4) != 0) {
    letter.dedup_id = "d" + std::to_string(number);
  }
  return letter;
}

void Trade::send(Letter letter, int tries) {
  ++open_;
  books_.sending(letter);
  const queue::SendResult result = carry(letter);
  --open_;
  answered(std::move(letter), result, tries);
}

queue::SendResult Trade::carry(const Letter& letter) {
  queue::NewMessage message{.id = letter.id, .body = "order", .group = letter.group};
  if (!letter.key.empty()) {
    message.attributes.emplace("key", letter.key);
  }
  const bool dropped = world_.mutation == Mutation::dedup_mark_dropped && world_.random.below(4) == 0;
  if (!letter.dedup_id.empty() && !dropped) {
    message.dedup_id = letter.dedup_id;
    message.dedup_window = plan_.dedup_window;
  }
  if (world_.store.is_real()) {
    // Without a deduplication id a request that comes late is a message once more, when the first one is done.
    queue::Sender& sender = letter.dedup_id.empty() ? *careful_ : *sender_;
    return sender.send({&message, 1}, Deadline::at(world_.loop.now() + 5s)).front();
  }
  const SimPort::Fate fate = SimPort::fate_of(world_.port.faults, world_.random);
  if (fate.error && !fate.applied) {
    return {queue::SendStatus::failed, letter.id, *fate.error};
  }
  auto result = sender_->send({&message, 1}, Deadline::never()).front();
  if (result.status == queue::SendStatus::sent) {
    // Messages of one instant keep the order of sending.
    std::string order = std::to_string(order_++);
    order.insert(0, 8 - order.size(), '0');
    books_.stored(letter.id, format_timestamp(world_.loop.clock().wall_now()) + "/" + order, world_.loop.now());
  }
  return fate.error ? queue::SendResult{queue::SendStatus::failed, letter.id, *fate.error} : std::move(result);
}

void Trade::answered(Letter letter, const queue::SendResult& result, int tries) {
  if (result.status == queue::SendStatus::deduplicated) {
    books_.deduplicated(letter, result.id, world_.loop.now());
  }
  if (result.status != queue::SendStatus::failed) {
    world_.on_sent();
    copy(std::move(letter));
    return;
  }
  // Without a deduplication id whoever repeats what may have happened sends twice.
  if (tries < kMostTries && (!letter.dedup_id.empty() || !may_have_happened(result.error))) {
    letter.id = next_id();
    later(100ms + std::chrono::milliseconds(world_.random.below(2000)), std::move(letter), tries + 1);
  }
}

void Trade::copy(Letter letter) {
  if (letter.dedup_id.empty() || letter.copies == kMostCopies || world_.random.unit() >= plan_.copies) {
    return;
  }
  const double part = world_.random.unit() * 0.9 + (world_.random.below(3) == 0 ? 1.5 : 0);
  letter.id = next_id();
  ++letter.copies;
  later(Duration(static_cast<Duration::rep>(part * static_cast<double>(plan_.dedup_window.count()))), std::move(letter),
        0);
}

void Trade::later(Duration span, Letter letter, int tries) {
  ++open_;
  world_.loop.after(span, [this, again = std::move(letter), tries] {
    --open_;
    send(again, tries);
  });
}

void Trade::finished(const work::Task& task, plugin::Outcome& outcome) {
  if (outcome.status == plugin::OutcomeStatus::discard) {
    books_.discarded(task.message.id);
  }
  const std::string unit = books_.unit_of(task.message.id);
  if (outcome.status != plugin::OutcomeStatus::done || !Books::has_effects(unit)) {
    return;
  }
  if (task.first_result) {
    books_.saw_result(task.message, *task.first_result);
    return;
  }
  auto effects = std::make_shared<queue::Effects>();
  const std::string run = books_.run(task.message);
  effects->messages.push_back({kReceipts, {.id = run, .body = unit}});
  effects->writes.push_back(world_.store.add_one(unit));
  if (plan_.shared) {
    effects->writes.push_back(world_.store.add_one(Books::kShared));
  }
  if (refuses(task.message)) {
    effects->writes.push_back(world_.store.never());
    effects->writes.back().on_refusal = plan_.rejects_refused ? queue::OnRefusal::reject : queue::OnRefusal::retry;
  }
  if (world_.plan.job.idempotency) {
    effects->key.emplace().result = run;
  }
  outcome.effects = std::move(effects);
}

// The first time alone, or nothing of it would ever be done.
bool Trade::refuses(const queue::Message& message) const {
  const std::uint64_t dice = std::hash<std::string>()(message.id) % 1000;
  return message.attempt == 1 && static_cast<double>(dice) < plan_.refused * 1000;
}

void Trade::deal_with_holds() {
  if (world_.plan.job.on_dead_letter != config::OnDeadLetter::hold) {
    return;
  }
  const std::string& queue = SimPort::address().queue;
  for (const queue::StoredMessage& dead : all_of(desk_, queue, queue::Half::dlq)) {
    const std::string& id = dead.message.id;
    if (world_.random.below(2) == 0) {
      if (desk_.remove(queue, id, Deadline::never())) {
        world_.truth.taken_out(id);
      }
    } else if (desk_.redrive(queue, id, Deadline::never())) {
      world_.truth.redriven(id);
    }
  }
}

void Trade::check() {
  const SteadyTime end =
      world_.loop.now() + work::kMarkLeases * world_.plan.visibility + books_.set_back() + kMarkSlack;
  world_.loop.run_until(end, [] { return false; });
  Books::Stock stock{.accounts = world_.store.accounts(), .receipts = {}, .keys = {}, .marks = {}};
  for (const queue::StoredMessage& receipt : all_of(desk_, kReceipts, queue::Half::standard)) {
    stock.receipts.push_back(receipt.message.id);
  }
  std::string cursor;
  do {
    const auto page = keys_->list(SimPort::kJob, 500, cursor, Deadline::never());
    if (!page) {
      break;
    }
    for (const queue::StoredKey& key : page->keys) {
      if (key.done) {
        stock.keys.insert(key.key);
      } else {
        stock.marks.emplace(key.key, key.owner);
      }
    }
    cursor = page->next;
  } while (!cursor.empty());
  books_.check(stock);
  if (const std::string damage = world_.store.damage(); !damage.empty()) {
    world_.truth.violation("the store is damaged: " + damage);
  }
}

}  // namespace sluice::simulation
