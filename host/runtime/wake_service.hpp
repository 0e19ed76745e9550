#pragma once

#include "config/config.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/wake/datagram.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// Lets other machines wake this host: announces where it can be rung, at the places of its jobs' queues, and takes the
/// datagrams in. A RingFilter decides what a datagram is worth, an Announcer for each place when to announce. One
/// thread listens and never calls a store; the other makes the calls. Neither holds up jobs or their drain.
class WakeService final : public RepeatingService {
 public:
  using Addresses = std::function<std::vector<queue::QueueAddress>()>;
  struct Parts {
    queue::Queues& queues;
    observe::Metrics& metrics;
    observe::Log& log;
    const Clock& clock;
  };

  /// Listens from now on; what comes is taken once it is started. `host` is the key of its announcements, `addresses`
  /// what the jobs work on now. What `parts` refer to outlives it. Fails when the address cannot be had.
  static Result<std::unique_ptr<WakeService>> open(const Parts& parts, const config::WakeConfig& config,
                                                   std::string host, Addresses addresses);
  ~WakeService() override { stop(); }

  /// Where it listens, its port included.
  std::string address() const { return queue::wake::text_of(listener_.address()); }

  Result<void> start() override {
    SLUICE_PASS_ON(listening_.start([this](const std::stop_token& stop) { listen(stop); }));
    return RepeatingService::start();
  }
  /// Nobody is to ring here any more: what was announced is taken back. Returns at once; from any thread.
  void withdraw() {
    withdrawn_ = true;
    wake();
  }

 private:
  using Place = std::shared_ptr<queue::wake::WakePlace>;
  /// A source's half, as it is rung.
  struct Target {
    Place place;
    queue::Half half = queue::Half::standard;
  };
  using Targets = std::map<std::string, std::vector<Target>>;  ///< by the bell's name
  /// One file or table, and how this host stands there.
  struct Post {
    Place place;
    queue::wake::Announcer announcer;
    bool complained = false;
  };

  WakeService(const Parts& parts, const config::WakeConfig& config, std::string host, Addresses addresses,
              queue::wake::DatagramListener listener);

  void listen(const std::stop_token& stop);
  /// Takes in what has come. False: there may be more.
  bool take_in();
  void ring(const std::string& bell);
  int wait_time() const;

  SteadyTime step(const std::stop_token& stop) override;
  void end() override {
    take_back();
    listening_.stop();
  }
  /// Opens the places of queues that are new, and says who is rung by which bell.
  void look_at_jobs();
  Place open(const std::string& queue) {
    if (const auto found = places_.find(queue); found != places_.end()) {
      return found->second;
    }
    auto opened = parts_.queues.open_wake_place(queue);
    // The job of a queue that cannot be opened says why.
    return opened ? places_.emplace(queue, std::move(*opened)).first->second : nullptr;
  }
  void announce(Post& post);
  Result<double> tell(Post& post, const std::string& where);
  Result<std::string> announced_address() const;
  void take_back();

  const Parts parts_;
  const config::WakeConfig config_;
  const std::string host_;
  const Addresses addresses_;

  // Touched only by the thread that listens, but for `interrupt`.
  queue::wake::DatagramListener listener_;

  // Touched only by the thread that announces.
  std::vector<queue::QueueAddress> known_;
  std::map<std::string, Place> places_;  ///< by queue; null where there is none
  std::map<std::string, Post> posts_;    ///< by the place's name

  mutable Mutex mutex_;
  Condition changed_;
  queue::wake::RingFilter filter_ SLUICE_GUARDED_BY(mutex_);
  Targets targets_ SLUICE_GUARDED_BY(mutex_);
  std::atomic<bool> withdrawn_{false};

  // Last, so that it ends before what it uses.
  ServiceThread listening_{"sluice-wake"};
};

}  // namespace sluice::runtime
