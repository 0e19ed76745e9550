#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/doorbell.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

inline constexpr const char* kOwnersTable = "sluice-queues";
inline constexpr const char* kOwnersQueue = "orders";

/// A machine's clocks: a wall clock of its own, and a monotonic one that stands still while the machine sleeps.
class MachineClock final : public Clock {
 public:
  explicit MachineClock(const Clock& world) : world_(world) {}
  WallTime wall_now() const override { return world_.wall_now() + wrong_; }
  SteadyTime steady_now() const override { return world_.steady_now() - slept_; }
  SteadyTime machine_time(SteadyTime time) const override { return world_.machine_time(time); }
  void wrong_by(Duration wrong) { wrong_ = wrong; }
  void sleeps(Duration span) { slept_ += span; }

 private:
  const Clock& world_;
  Duration wrong_{};
  Duration slept_{};
};

/// Puts at most 25 messages by one request; how many were stored.
std::size_t insert_all(dynamo::Client& client, const std::vector<dynamo::Item>& items, Deadline deadline);

struct WorldPlan {
  std::uint32_t shards = 8;
  Duration lease = std::chrono::seconds(10);
  std::uint64_t seed = 1;
  model::ModelSettings model{};
};

/// One machine's way to the table: it may be cut, and others may act just before a request of this host goes off.
class MachineWire final : public dynamo::HttpTransport {
 public:
  explicit MachineWire(dynamo::HttpTransport& next) : next_(next) {}

  void send(dynamo::HttpRequest request, Deadline deadline, Callback done) override {
    if (cut_) {
      ++in_vain_;
      return done(dynamo::Error(dynamo::ErrorKind::transport, "there is no way to the table"));
    }
    if (before_) {
      before_(request);
    }
    const std::optional<dynamo::HttpRequest> sent = after_ ? std::optional(request) : std::nullopt;
    next_.send(std::move(request), deadline, std::move(done));
    if (after_ && sent) {
      after_(*sent);
    }
  }
  void cut(bool so) { cut_ = so; }
  /// Requests that found no way.
  std::uint64_t in_vain() const { return in_vain_; }
  void before(std::function<void(const dynamo::HttpRequest&)> hook) { before_ = std::move(hook); }
  /// While an answer is on its way back.
  void after(std::function<void(const dynamo::HttpRequest&)> hook) { after_ = std::move(hook); }

 private:
  dynamo::HttpTransport& next_;
  bool cut_ = false;
  std::uint64_t in_vain_ = 0;
  std::function<void(const dynamo::HttpRequest&)> before_;
  std::function<void(const dynamo::HttpRequest&)> after_;
};

/// One process that works on the queue, on the thread of whoever calls it: the product's own source, writer and
/// borrower.
class OwnerHost {
 public:
  OwnerHost(const WorldPlan& plan, const std::string& name, model::Model& model, const Clock& world);
  ~OwnerHost() { kill(); }

  void start();
  /// Drains: nothing must be out any more.
  void stop() { source_->stop(); }
  /// Ends it without a word.
  void kill() { dead_ = true; }

  std::vector<queue::Delivery> claim(std::size_t max, const queue::ClaimRules& rules = {}, bool suspects = true);
  queue::SettleResult settle(const queue::Delivery& delivery, queue::CompletionAction action, Duration delay = {});
  std::vector<queue::SettleResult> settle(const std::vector<queue::Completion>& completions);
  /// Stores progress; where it is applied the delivery goes on under its new receipt.
  queue::SettleResult checkpoint(queue::Delivery& delivery, const std::string& bytes) {
    auto result = source_->checkpoint(delivery.receipt, bytes, nullptr, Deadline::after(clock, 5s));
    if (result.status == queue::SettleStatus::applied) {
      delivery.receipt.version = result.version;
    }
    return result;
  }
  /// Sees to the housekeeping, without a claim.
  void tend() { table_->coordinator.tend(Deadline::after(clock, 5s)); }
  void ring() { doorbell_.ring({kOwnersQueue, queue::Half::standard}); }

  /// What a job asks before it starts what it was handed.
  bool holds() { return source_->holds(0); }
  bool believes_in_its_lease() { return !dead_ && keeper_holds(); }
  bool dead() const { return dead_; }
  queue::leased::OwnedHalf& half() { return half_->owned; }

  const std::string name;  ///< its incarnation
  MachineClock clock;
  std::vector<std::string> warnings;
  std::vector<std::string> clock_warnings;
  std::map<std::string, std::int64_t> out;  ///< what this host has been handed and not lost: locators by id
  bool has(const queue::Receipt& receipt) const;
  int readies = 0;
  dynamo::Client& client() { return *client_; }
  MachineWire& wire() { return wire_; }

 private:
  bool keeper_holds();
  void forget(const queue::Receipt& receipt);

  const WorldPlan plan_;
  SeededRandom random_;
  model::FixedCredentials credentials_;
  model::ModelTransport transport_;
  MachineWire wire_{transport_};
  std::unique_ptr<dynamo::Client> client_;
  queue::table::TableClock table_clock_;
  queue::table::StatementRunner runner_;
  queue::table::NonceSource nonces_;
  std::function<queue::table::QueueTable(const std::string&)> locate_;
  queue::table::RecordLayouts layouts_;
  queue::Doorbell doorbell_;
  queue::table::StoreParts parts_;
  queue::leased::LeasedQueue queue_;
  queue::owned::Remarks remarks_;
  std::unique_ptr<queue::leased::OwnedTable> table_;
  std::unique_ptr<queue::leased::LeasedHalf> half_;
  std::unique_ptr<queue::Source> source_;
  bool dead_ = false;
};

/// A table, its clock, and the hosts on it.
class OwnerWorld {
 public:
  explicit OwnerWorld(const WorldPlan& plan);

  OwnerHost& add(const std::string& name, bool start = true);
  /// Puts messages there, due now or after `delay`; their ids.
  std::vector<std::string> send(std::size_t count, std::size_t body = 600, Duration delay = {},
                                const std::string& group = {}, std::optional<std::uint32_t> shard = {},
                                queue::Priority priority = queue::Priority::normal);
  void put(dynamo::Item item);
  void remove(dynamo::Item key);
  std::optional<dynamo::Item> item(const std::string& partition, const std::string& sort);
  std::vector<dynamo::Item> messages();
  /// By shard, as the items of the standard half say.
  std::map<std::uint32_t, std::string> owners();
  /// How many of them are that host's.
  std::size_t shards_of(const std::string& host);
  /// Lets time pass while every host that lives tends its house.
  void pass(Duration span);
  /// Same, until that is so; false: it never was.
  bool pass_until(const std::function<bool()>& so, Duration longest);
  double read_units() const { return model.counters().read_units; }
  double write_units() const { return model.counters().write_units; }
  std::uint64_t requests() const;

  const WorldPlan plan;
  FakeClock clock;
  model::Model model;
  SeededRandom random;
  std::vector<std::unique_ptr<OwnerHost>> hosts;

 private:
  OwnerHost outside_;
};

}  // namespace sluice::test
