#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/party_transport.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/support/dynamodb_model/model.hpp"

namespace sluice::simulation {

/// What a seed chose for a table, beside the faults.
struct TablePlan {
  test::model::IndexLag lag;
  test::model::Limits limits;
  Duration skew{};    ///< how far, in either direction, hosts' wall clocks are from the true time
  bool late = false;  ///< lost requests may take effect seconds later
  Duration span{};    ///< how long transactions keep others from their items
  /// Nobody may take a message so long before its lease ends, or longer.
  Duration early = Duration::max();

  bool any() const { return lag.longest > Duration::zero() || limits.partition_write > 0; }
};

/// The product's DynamoMQ store on the model of DynamoDB: each host has its own clock, client and queues, as processes
/// have. What took effect is read from the table as it changes, whatever callers were told.
///
/// On one thread: requests are answered at once, and a client that waits before a retry goes on at once. Time passes
/// between calls only.
class TableBackend final : public StoreBackend {
 public:
  /// `clock` is what hosts believe before their own skew; the model goes by its monotonic side alone.
  TableBackend(const Clock& clock, Random& random, const TablePlan& plan, Truth& truth);
  /// Plants a fault on the way of hosts to their tables. Before `set_faults`.
  void plant(Mutation mutation);
  ~TableBackend() override;

  queue::Queues& queues_of(Truth::Host host) override;
  queue::Queues& outside() override;
  void take_away(const queue::QueueAddress& address) override;
  bool is_real() const override { return true; }
  void set_faults(const FaultMix& faults) override;
  void begin_trade(Stored stored) override;
  queue::EffectWrite add_one(const std::string& account) override;
  queue::EffectWrite never() override;
  std::map<std::string, std::int64_t> accounts() override;

 private:
  class TrueClock;
  struct Party;
  Party& join(const std::string& access_key, Duration skew);
  void make_queue(const std::string& table);
  void changed(const std::string& access_key, const dynamo::Item* before, const dynamo::Item* after);
  void leased(Truth::Host host, const dynamo::Item& before, const dynamo::Item& after, bool anew);

  const Clock& clock_;
  Random& random_;
  const TablePlan plan_;
  Truth& truth_;
  const std::unique_ptr<TrueClock> true_clock_;
  test::model::Model model_;
  Tampering tampering_;
  Stored stored_;
  std::map<std::string, std::unique_ptr<Party>> parties_;
  std::map<std::string, SteadyTime> leases_;  ///< when they truly end, by id
};

}  // namespace sluice::simulation
