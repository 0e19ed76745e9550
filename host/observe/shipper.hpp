#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/transport/http_transport.hpp"
#include "host/runtime/service.hpp"

namespace sluice::observe {

/// How much may wait for a collector, and how it is handed over.
struct ShipLimits {
  std::size_t items = 10'000;  ///< that wait; more are dropped
  std::size_t bytes = std::size_t{4} << 20;
  std::size_t batch_items = 512;  ///< of one request
  std::size_t batch_bytes = std::size_t{1} << 20;
  Duration linger = std::chrono::seconds(1);     ///< how long an item waits for company
  Duration patience = std::chrono::seconds(10);  ///< for an answer
};

/// What an answer of a collector comes to. A value.
struct Judgement {
  enum class Kind { taken, again, refused };
  Kind kind = Kind::taken;
  std::size_t rejected = 0;      ///< of those that were taken otherwise
  std::optional<Duration> wait;  ///< how long the collector wants to be left alone
  std::string why;               ///< one line, without anything secret
};

/// A service that takes items (log lines, spans) by POST to one address: how it is spoken to. Keeps no state;
/// thread-safe.
class Collector : boost::noncopyable {
 public:
  virtual ~Collector() = default;

  /// As metrics and errors call it.
  const std::string& name() const { return settings_.name; }
  const ShipLimits& limits() const { return settings_.limits; }
  dynamo::HttpRequest request(std::span<const std::string> items, WallTime now) const;
  /// By the status alone: 2xx is taken, `again` and no answer at all are to be tried again, everything else is refused.
  virtual Judgement judge(const dynamo::HttpResult& result) const;

 protected:
  struct Settings {
    std::string name;
    std::string url;
    dynamo::Headers headers;
    std::string credential;  ///< what is wrong after a 401 or 403, such as "token in [log.rollbar]"
    std::vector<int> again;
    ShipLimits limits{};
  };
  explicit Collector(Settings settings) : settings_(std::move(settings)) {}
  virtual std::string body_of(std::span<const std::string> items, WallTime now) const = 0;

 private:
  const Settings settings_;
};

/// Of a Retry-After header in seconds; nothing for anything else.
std::optional<Duration> retry_after(const dynamo::HttpResponse& response);

/// Decides when items go out to a collector, in which batches, and what is given up. What waits is bounded: an item for
/// which there is no room is dropped and counted, so that whoever has something to say never waits for whoever hears
/// it. A step class: it is told the time, calls nobody, and is not thread-safe.
class ShipQueue {
 public:
  struct Order {
    bool send = false;  ///< the batch; false: nothing before `wake`
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();
  };
  struct Figures {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;  ///< for want of room, or because the collector would not have them
    std::uint64_t failed = 0;   ///< requests
    std::size_t waiting = 0;    ///< items, those under way among them
  };
  /// What an operator should read, and not more often than once a minute.
  struct Notice {
    std::uint64_t dropped = 0;  ///< since the last notice
    std::string why;
  };

  /// `random` outlives the queue.
  ShipQueue(const ShipLimits& limits, Random& random) : limits_(limits), random_(random) {}

  /// False: it was dropped.
  bool put(std::string item, SteadyTime now);
  /// What to do now. Each order to send is followed by `answered`; meanwhile there is no other.
  Order next(SteadyTime now);
  const std::vector<std::string>& batch() const { return batch_; }
  void answered(const Judgement& judgement, SteadyTime now);

  /// From now on nothing waits for company, nor for long after a failure. Requests end a moment before `until`.
  void hurry(SteadyTime now, SteadyTime until);
  /// Nothing waits and nothing is under way.
  bool idle() const { return figures_.waiting == 0; }
  /// Drops what is left, and counts it.
  void give_up();

  const Figures& figures() const { return figures_; }
  /// Why the last request failed; empty: it did not.
  const std::string& trouble() const { return trouble_; }
  std::optional<Notice> notice(SteadyTime now);
  bool has_notice(SteadyTime now) const { return untold_ > 0 && now >= next_notice_; }

 private:
  struct Item {
    std::string text;
    SteadyTime since{};
  };

  bool is_too_late(SteadyTime now) const { return requests_end_ && now >= *requests_end_; }
  void fill_batch(SteadyTime now);
  void end_batch();
  void drop(std::size_t count, const std::string& why);

  // Fixed after construction.
  const ShipLimits limits_;
  Random& random_;

  std::deque<Item> waiting_;
  std::size_t waiting_bytes_ = 0;  ///< the batch among them
  std::vector<std::string> batch_;
  bool under_way_ = false;
  SteadyTime batch_since_{};
  SteadyTime not_before_ = SteadyTime::min();
  std::uint32_t failures_ = 0;              ///< in a row
  std::optional<SteadyTime> requests_end_;  ///< there is a hurry
  Figures figures_;
  std::string trouble_;
  std::uint64_t untold_ = 0;
  std::string untold_why_;
  SteadyTime next_notice_ = SteadyTime::min();
};

/// How a collector takes what it is sent. A value.
struct SenderStatus {
  std::string name;
  std::string trouble;  ///< why the last request failed; empty: all is well
  ShipQueue::Figures figures;
};

/// Brings items to their collectors: one thread for all of them, which waits for none of them. What has not been sent
/// when it is stopped is dropped. Thread-safe.
class Shipper final : public runtime::RepeatingService {
 public:
  class Destination;
  /// Is told, on the shipper's thread, what an operator should read.
  using Tell = std::function<void(const std::string& text)>;

  /// The clock and the random source outlive it.
  Shipper(const Clock& clock, Random& random, Tell tell);
  ~Shipper() override;

  /// Before the start. The transport answers nobody any more when the shipper is destroyed.
  Destination& add(std::unique_ptr<Collector> collector, dynamo::HttpTransport& transport);
  /// Never blocks. An item for which there is no room is dropped and counted.
  void put(Destination& lane, std::string item);

  /// Has everything sent without delay, and waits for that; false: `until` came first.
  bool flush(SteadyTime until);

  std::vector<SenderStatus> statuses() const;

 private:
  SteadyTime step(const std::stop_token& stop) override;
  void end() override;
  void send(Destination& lane, SteadyTime deadline);
  void answered(Destination& lane, const dynamo::HttpResult& result);

  // Fixed after construction.
  Random& random_;
  const Tell tell_;
  // Fixed once it has started. Their queues are guarded by mutex_.
  std::list<Destination> lanes_;

  mutable Mutex mutex_;
  Condition changed_;  ///< a batch has been answered
  bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::observe
