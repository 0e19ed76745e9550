#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {

/// What goes wrong with one request.
enum class Fault {
  none,
  refuse,            ///< the connection is refused: nothing was sent
  lose,              ///< the connection breaks before the request took effect; the caller cannot know
  error_500,         ///< HTTP 500 without an effect; the caller cannot know
  commit_then_500,   ///< takes effect, answered with HTTP 500
  commit_then_lose,  ///< takes effect, the connection breaks before the answer
  commit_then_cut,   ///< takes effect, half of the answer arrives
  bad_crc,           ///< takes effect, the answer is damaged on its way
  late,              ///< the connection breaks, and the request takes effect some time later
  throttle,          ///< the whole request is refused as one too many
};
std::string_view to_string(Fault fault);

/// What goes wrong with one statement, key or item of a batch.
enum class PartFault { none, throttle, error, commit_then_error, conflict };

/// Shares of requests, and of the parts of batches, that go wrong by chance; and how long requests take.
struct FaultRates {
  double refuse = 0;
  double lose = 0;
  double error_500 = 0;
  double commit_then_500 = 0;
  double commit_then_lose = 0;
  double commit_then_cut = 0;
  double bad_crc = 0;
  double late = 0;
  double throttle = 0;
  Duration lateness = std::chrono::seconds(5);  ///< late requests take effect within this time

  double part_throttle = 0;
  double part_error = 0;              ///< of a statement: InternalServerError without effect
  double part_commit_then_error = 0;  ///< the same after it took effect
  double part_conflict = 0;           ///< TransactionConflict of a statement or transaction for no reason of ours

  Duration shortest{};  ///< latency of requests: anything from this
  Duration longest{};   ///< to this
};

/// Decides what goes wrong: by order first, then by chance. In use by one thread.
class Faults {
 public:
  /// Says yes to the requests that are meant, by operation ("BatchExecuteStatement") and body.
  using Matcher = std::function<bool(const std::string& operation, const std::string& body)>;

  explicit Faults(Random& random) : random_(random) {}

  void set_rates(const FaultRates& rates) { rates_ = rates; }
  const FaultRates& rates() const { return rates_; }
  /// Breaks the next `times` requests that are meant; an empty matcher means all.
  void inject(Fault fault, Matcher matcher, int times);
  /// The same for parts of the next batches.
  void inject_part(PartFault fault, int times);
  /// Ends what was ordered and not yet done, and all chance.
  void clear();

  /// While true no part goes wrong.
  void spare_parts(bool on) { parts_spared_ = on; }

  Fault choose(const std::string& operation, const std::string& body);
  PartFault choose_part();
  Duration latency();
  Duration lateness();

 private:
  struct Order {
    Fault fault;
    Matcher matcher;
    int left;
  };
  bool chance(double& dice, double share);
  Duration between(Duration from, Duration to);

  Random& random_;
  FaultRates rates_;
  bool parts_spared_ = false;
  std::deque<Order> orders_;
  std::deque<std::pair<PartFault, int>> part_orders_;
};

/// The failure of a part; nothing for `none`.
std::optional<Failure> failure_of(PartFault fault);
Failure throttled();

}  // namespace sluice::test::model
