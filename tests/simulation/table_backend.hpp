#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/support/dynamodb_model/model.hpp"

namespace sluice::simulation {

/// What a seed chose for a table, beside the faults.
struct TablePlan {
  test::model::IndexLag lag;
  test::model::Limits limits;
  Duration skew{};    ///< how far, in either direction, hosts' wall clocks are from the true time
  bool late = false;  ///< lost requests may take effect seconds later
  /// Nobody may take a message so long before its lease ends, or longer.
  Duration early = Duration::max();

  bool any() const { return lag.longest > Duration::zero() || limits.partition_write > 0; }
};

/// The product's DynamoMQ store on the model of DynamoDB: each host has its own clock, client and queues, as processes
/// have. What took effect is read from the table as it changes, whatever callers were told.
///
/// On one thread: requests are answered at once, and a client that waits before a retry goes on at once. Time passes
/// between calls only.
class TableBackend final : public Backend {
 public:
  /// `clock` is what hosts believe before their own skew; the model goes by its monotonic side alone.
  TableBackend(const Clock& clock, Random& random, const TablePlan& plan, Truth& truth);
  /// Plants a fault: answers tell no time any more, so that each host goes by its own clock. Before `set_faults`.
  void tell_no_time();
  ~TableBackend() override;

  queue::Queues& queues_of(Truth::Host host) override;
  queue::Queues& outside() override;
  void take_away(const queue::QueueAddress& address) override;
  bool is_real() const override { return true; }
  void set_faults(const FaultMix& faults) override;

 private:
  class TrueClock;
  struct Party;
  Party& join(const std::string& access_key, Duration skew);
  void changed(const std::string& access_key, const dynamo::Item* before, const dynamo::Item* after);
  void leased(Truth::Host host, const dynamo::Item& before, const dynamo::Item& after, bool anew);

  const Clock& clock_;
  Random& random_;
  const TablePlan plan_;
  Truth& truth_;
  const std::unique_ptr<TrueClock> true_clock_;
  test::model::Model model_;
  bool timeless_ = false;
  std::map<std::string, std::unique_ptr<Party>> parties_;
  std::map<std::string, SteadyTime> leases_;  ///< when they truly end, by id
};

}  // namespace sluice::simulation
