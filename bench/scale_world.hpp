#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "tests/support/dynamodb_model/model.hpp"

/// Hosts, producers and a table under virtual time, on one thread: the product's own sources and senders on the model
/// of DynamoDB, with its limits and latencies. Each thread of a host is an event that makes one call; what a call takes
/// passes for its caller alone.
namespace sluice::bench {

/// The time of whoever is at work.
class SharedClock final : public Clock {
 public:
  WallTime wall_now() const override { return WallTime(std::chrono::seconds(1'800'000'000)) + now_.time_since_epoch(); }
  SteadyTime steady_now() const override { return now_; }
  /// Whoever waits for a time has waited. Who waits for ever waits for an answer, which is there already.
  SteadyTime machine_time(SteadyTime time) const override {
    if (under_way_ > now_) {
      now_ = under_way_;
    } else if (time < now_ + std::chrono::hours(1)) {
      now_ = std::max(now_, time);
    }
    return SteadyTime::min();
  }
  void set(SteadyTime time) { under_way_ = now_ = time; }
  /// A request is under way, beside others that began at the same time; whoever waits for them waits so long.
  void takes(Duration span) { under_way_ = std::max(under_way_, now_ + span); }

 private:
  SteadyTime under_way_{};
  mutable SteadyTime now_{std::chrono::seconds(1'000)};
};

struct Scene {
  std::uint32_t hosts = 1;
  std::uint32_t shards = 8;
  std::size_t workers = 16;                          ///< of each host
  Duration handler = std::chrono::milliseconds(20);  ///< what a handler takes
  std::size_t backlog = 0;                           ///< lies there before the hosts start
  double rate = 0;                                   ///< messages a second that producers send
  std::size_t producers = 0;
  std::size_t bytes = 700;  ///< of a body
  bool doorbell = false;
  Duration lease = std::chrono::seconds(10);
  double partition_write = 1'000;
  double partition_read = 3'000;
  std::uint64_t seed = 1;
};

/// What was seen since `measure` was called.
struct Report {
  double seconds = 0;
  std::uint64_t handled = 0;  ///< handlers that began
  std::uint64_t done = 0;     ///< messages whose end was written
  std::uint64_t sent = 0;
  std::uint64_t twice = 0;       ///< handlers that began with a message for the second time
  std::uint64_t hand_overs = 0;  ///< writes of ownership items
  double write_units = 0;
  double read_units = 0;
  std::uint64_t requests = 0;
  std::uint64_t throttled = 0;
  std::vector<Duration> latencies;      ///< send to handler, of what was sent since
  std::vector<std::uint32_t> per_tick;  ///< handlers that began, by 100 ms
  std::size_t unhandled = 0;            ///< were sent, and no handler has begun yet

  double per_second() const { return seconds > 0 ? static_cast<double>(done) / seconds : 0; }
  Duration latency(double share) const;
  /// The longest time in which no handler began.
  Duration longest_pause() const;
};

class World {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(100);

  explicit World(const Scene& scene);
  ~World();

  void run_for(Duration span);
  /// What has been seen is forgotten, and what happens from now on is counted.
  void measure();
  Report report();

  // What happens to hosts.

  /// Until nobody has taken or handed over a shard for three seconds.
  void settle_down();
  /// Shards that nobody has, or somebody who does not live.
  std::size_t orphans();
  std::size_t add_host();
  /// Its process ends without a word.
  void kill(std::size_t host);
  /// It hands over what it owns, and ends.
  void leave(std::size_t host);
  /// It does nothing for so long, and then goes on as if nothing had been.
  void freeze(std::size_t host, Duration span);

 private:
  class Party;
  class Host;
  class Producer;
  struct Event {
    SteadyTime at;
    std::uint64_t number = 0;
    std::function<void()> act;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  void at(SteadyTime time, std::function<void()> act);
  void fill(std::size_t messages);
  void began(const std::string& id, SteadyTime at);
  void sent(const std::string& id, SteadyTime at);
  void ring();

  const Scene scene_;
  SharedClock clock_;
  test::model::Model model_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0;
  SteadyTime now_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Producer>> producers_;

  Report seen_;
  SteadyTime measured_from_;
  test::model::ModelCounters before_;
  std::set<std::string> open_;  ///< sent, and no handler has begun
  std::unordered_map<std::string, SteadyTime> sent_at_;
  std::set<std::string> handled_;  ///< by id, of all time
  std::uint64_t hand_overs_ = 0;
};

}  // namespace sluice::bench
