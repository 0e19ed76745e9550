#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/transport/http_transport.hpp"
#include "tests/support/dynamodb_model/database.hpp"
#include "tests/support/dynamodb_model/faults.hpp"
#include "tests/support/dynamodb_model/operations.hpp"
#include "tests/support/dynamodb_model/transactions.hpp"

namespace sluice::test::model {

struct ModelSettings {
  IndexLag lag;
  Limits limits;
  FaultRates faults;
  Duration transaction_span{};  ///< how long transactions are at work on their items, so that others conflict
  Duration table_creation{};    ///< how long new tables are CREATING
  /// Requests signed at a time that is farther off are refused. DynamoDB: five minutes; zero: not looked at.
  Duration signature_life = std::chrono::minutes(5);
};

/// What the model has done so far.
struct ModelCounters {
  std::map<std::string, std::uint64_t> requests;  ///< by operation; those that never arrived too
  std::map<std::string, std::uint64_t> errors;    ///< by DynamoDB's name; of requests, and of statements by their code
  std::map<std::string, std::uint64_t> faults;    ///< by the name of the fault
  double read_units = 0;
  double write_units = 0;
};

/// How the answer to a request reaches its caller.
struct ModelAnswer {
  enum class Delivery {
    answered,
    refused,  ///< the connection was refused: nothing was sent
    lost,     ///< the connection broke after the request was sent
  };
  Delivery delivery = Delivery::answered;
  dynamo::HttpResponse response;
  Duration latency{};
};

/// DynamoDB in memory, as far as this product uses it: its operations, expressions and statements, its errors and
/// prices; and what emulators leave out: limits of partitions, indexes that lag, conflicts, and answers that get lost.
///
/// Time is the clock's alone, and everything that chance decides comes from the seed: a test that drives it on one
/// thread sees the same each time. What is due by now (late requests, index entries) happens at the next call.
///
/// Thread-safe. Requests take effect one after the other.
class Model {
 public:
  Model(const Clock& clock, std::uint64_t seed) : Model(clock, seed, ModelSettings{}) {}
  Model(const Clock& clock, std::uint64_t seed, const ModelSettings& settings);

  /// Handles a request as it comes over the wire.
  ModelAnswer handle(const dynamo::HttpRequest& request);

  void configure(const ModelSettings& settings);
  /// Breaks the next `times` requests that the matcher means; without one the next of any kind.
  void inject(Fault fault, Faults::Matcher matcher = {}, int times = 1);
  /// Breaks the next `times` statements, keys or items of batches.
  void inject_part(PartFault fault, int times = 1);
  /// Ends all faults, by order and by chance. Requests that are late still arrive.
  void clear_faults();
  /// Refuses an action ("dynamodb:PartiQLDelete") to the caller with this access key; empty: to all.
  void deny(const std::string& action, const std::string& access_key = "");
  void allow_all();
  /// Nothing goes wrong with the requests of this caller, no limit holds for them, and they take no time: somebody who
  /// looks from outside.
  void spare(const std::string& access_key);
  /// Told of each change of an item as it happens, with the access key of whoever asked for it. Must not call the
  /// model.
  using Observer = std::function<void(const std::string& access_key, const std::string& table, const Item* before,
                                      const Item* after)>;
  void observe(Observer observer);

  // Looks that cost nothing and never fail. Empty for what does not exist.
  ModelCounters counters() const;
  std::vector<Item> items(const std::string& table);
  /// The entries of an index as they show now, in its order.
  std::vector<Item> index_items(const std::string& table, const std::string& index);
  /// How many writes have not reached an index yet, and requests their effect.
  std::size_t under_way();

 private:
  struct Call {
    std::string operation;
    std::string body;
    std::string access_key;
    std::string signed_at;  // X-Amz-Date
  };
  static Call read(const dynamo::HttpRequest& request);

  dynamo::HttpResponse execute(const Call& call, SteadyTime at) SLUICE_REQUIRES(mutex_);
  std::string dispatch(Context& context, const Call& call) SLUICE_REQUIRES(mutex_);
  void check_signature(const Call& call) const SLUICE_REQUIRES(mutex_);
  void check_allowed(const std::string& access_key, std::string_view action, const std::string& table) const
      SLUICE_REQUIRES(mutex_);
  void run_late(SteadyTime now) SLUICE_REQUIRES(mutex_);
  dynamo::HttpResponse answer(int status, std::string body) const;
  dynamo::HttpResponse failed(const Failure& failure) SLUICE_REQUIRES(mutex_);
  void apply(const ModelSettings& settings) SLUICE_REQUIRES(mutex_);

  const Clock& clock_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  SeededRandom random_ SLUICE_GUARDED_BY(mutex_);
  Database database_ SLUICE_GUARDED_BY(mutex_);
  Transactions transactions_ SLUICE_GUARDED_BY(mutex_);
  ExpressionCache cache_ SLUICE_GUARDED_BY(mutex_);
  Faults faults_ SLUICE_GUARDED_BY(mutex_);
  Duration signature_life_ SLUICE_GUARDED_BY(mutex_){};
  std::multimap<SteadyTime, Call> late_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::pair<std::string, std::string>> denied_ SLUICE_GUARDED_BY(mutex_);  // access key, action
  std::set<std::string> spared_ SLUICE_GUARDED_BY(mutex_);
  std::string caller_ SLUICE_GUARDED_BY(mutex_);  // of the request that is at work
  ModelCounters counters_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test::model
