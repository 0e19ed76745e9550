#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/random.hpp"
#include "host/queue/sender.hpp"
#include "host/work/in_flight_table.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/books.hpp"
#include "tests/simulation/plan.hpp"
#include "tests/simulation/sim_loop.hpp"
#include "tests/simulation/sim_port.hpp"
#include "tests/support/desk.hpp"

namespace sluice::simulation {

/// The producers and what the handlers stage: sends messages with groups, keys and deduplication ids, some of them
/// again, tells the Books, and has them checked in the end.
class Trade {
 public:
  struct World {
    const Plan& plan;
    SimLoop& loop;
    Random& random;
    StoreBackend& store;
    SimPort::World& port;  ///< its faults are the producers' too
    Truth& truth;
    Mutation mutation = Mutation::none;
    std::function<void()> on_sent{};  ///< a message may be there
  };

  explicit Trade(World world);

  /// Plans the sends of all messages within this time.
  void begin(Duration span);
  void started(const queue::Message& message) { books_.started(message); }
  /// A handler has come to an end.
  void finished(const work::Task& task, plugin::Outcome& outcome);
  void jumped(Duration span) { books_.jumped(span); }
  /// In peace an operator deals with the dead letters that hold their groups.
  void deal_with_holds();
  /// Sends that are not answered yet.
  bool sending() const { return open_ > 0; }
  void check();
  const Books& books() const { return books_; }

 private:
  static Books::Rules rules_of(const Plan& plan, bool own_answers);
  Letter write(std::uint64_t number);
  void send(Letter letter, int tries);
  queue::SendResult carry(const Letter& letter);
  void answered(Letter letter, const queue::SendResult& result, int tries);
  void copy(Letter letter);
  void later(Duration span, Letter letter, int tries);
  std::string next_id() { return "m" + std::to_string(next_++); }
  bool refuses(const queue::Message& message) const;

  World world_;
  const TradePlan plan_;
  Books books_;
  const std::unique_ptr<queue::Sender> sender_;
  const std::unique_ptr<queue::Sender> careful_;  ///< nothing goes wrong with it
  const std::unique_ptr<queue::IdempotencyKeys> keys_;
  test::Desk desk_;
  std::uint64_t next_ = 0;
  std::uint64_t order_ = 0;  ///< of what was stored, where the store does not tell
  std::uint64_t open_ = 0;
};

}  // namespace sluice::simulation
