#include "host/observe/shipper.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/signal_block.hpp"

namespace sluice::observe {

/// One collector and what waits for it. Guarded by the shipper's lock but for what is fixed.
class Shipper::Destination {
 public:
  Destination(std::unique_ptr<Collector> its_collector, dynamo::HttpTransport& its_transport,
              SenderMetrics& its_metrics, Random& random)
      : collector(std::move(its_collector)),
        transport(its_transport),
        metrics(its_metrics),
        batch_items(collector->limits().batch_items),
        queue(collector->limits(), random) {}

  const std::unique_ptr<Collector> collector;
  dynamo::HttpTransport& transport;
  SenderMetrics& metrics;
  const std::size_t batch_items;
  ShipQueue queue;
  ShipQueue::Figures published;
};

Shipper::Shipper(const Clock& clock, Random& random, Tell tell)
    : clock_(clock), random_(random), tell_(std::move(tell)) {}

Shipper::~Shipper() { stop(); }

Shipper::Destination& Shipper::add(std::unique_ptr<Collector> collector, dynamo::HttpTransport& transport,
                                   SenderMetrics& metrics) {
  const MutexLock lock(mutex_);
  return lanes_.emplace_back(std::move(collector), transport, metrics, random_);
}

void Shipper::put(Destination& lane, std::string item) {
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      return;
    }
    const SteadyTime now = clock_.steady_now();
    const std::size_t before = lane.queue.figures().waiting;
    const bool taken = lane.queue.put(std::move(item), now);
    publish(lane);
    // The thread is woken for the first one, for a full batch, and for what it has to tell.
    const bool news = taken ? before == 0 || before + 1 == lane.batch_items : lane.queue.has_notice(now);
    if (!news) {
      return;
    }
    ++changes_;
  }
  changed_.notify_all();
}

Result<void> Shipper::start() {
  const MutexLock thread_lock(thread_mutex_);
  try {
    const SignalBlock quiet;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, std::string("no thread for log senders and traces: ") + error.what());
  }
  return {};
}

void Shipper::stop() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  const MutexLock thread_lock(thread_mutex_);
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  const MutexLock lock(mutex_);
  for (Destination& lane : lanes_) {
    lane.queue.give_up();
    publish(lane);
  }
}

bool Shipper::flush(SteadyTime until) {
  const auto idle = [this]() SLUICE_NO_TSA {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Destination& lane) { return lane.queue.idle(); });
  };
  const MutexLock lock(mutex_);
  for (Destination& lane : lanes_) {
    lane.queue.hurry(clock_.steady_now(), until);
  }
  ++changes_;
  changed_.notify_all();
  return changed_.wait_until(mutex_, clock_.machine_time(until), idle);
}

std::vector<SenderStatus> Shipper::statuses() const {
  std::vector<SenderStatus> all;
  const MutexLock lock(mutex_);
  for (const Destination& lane : lanes_) {
    all.push_back({lane.collector->name(), lane.queue.trouble(), lane.queue.figures()});
  }
  return all;
}

void Shipper::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    SteadyTime wake = SteadyTime::max();
    std::vector<std::string> notices;
    std::vector<Sending> sendings;
    {
      const MutexLock lock(mutex_);
      seen = changes_;
      sendings = step(clock_.steady_now(), wake, notices);
    }
    for (const std::string& notice : notices) {
      tell_(notice);
    }
    for (const Sending& sending : sendings) {
      send(sending);
    }
    if (sendings.empty()) {
      const MutexLock lock(mutex_);
      changed_.wait_until(mutex_, stop, clock_.machine_time(wake),
                          [this, seen]() SLUICE_NO_TSA { return changes_ != seen; });
    }
  }
}

std::vector<Shipper::Sending> Shipper::step(SteadyTime now, SteadyTime& wake, std::vector<std::string>& notices) {
  std::vector<Sending> sendings;
  for (Destination& lane : lanes_) {
    const ShipQueue::Order order = lane.queue.next(now);
    wake = std::min(wake, order.wake);
    if (order.send) {
      sendings.push_back({&lane, order.deadline});
    }
    if (const auto notice = lane.queue.notice(now)) {
      notices.push_back(std::to_string(notice->dropped) + " items for " + lane.collector->name() +
                        " were dropped: " + notice->why);
    }
  }
  return sendings;
}

void Shipper::send(const Sending& sending) {
  Destination& lane = *sending.lane;
  // The batch stays as it is until it is answered, so that nobody waits while it is put together.
  lane.transport.send(lane.collector->request(lane.queue.batch(), clock_.wall_now()), Deadline::at(sending.deadline),
                      [this, &lane](const dynamo::HttpResult& result) { answered(lane, result); });
}

void Shipper::answered(Destination& lane, const dynamo::HttpResult& result) {
  const Judgement judgement = lane.collector->judge(result);
  {
    const MutexLock lock(mutex_);
    if (ended_) {
      return;
    }
    lane.queue.answered(judgement, clock_.steady_now());
    publish(lane);
    ++changes_;
  }
  changed_.notify_all();
}

void Shipper::publish(Destination& lane) {
  const ShipQueue::Figures& now = lane.queue.figures();
  const auto added = [](std::uint64_t after, std::uint64_t before, auto&& count) {
    if (after > before) {
      count(after - before);
    }
  };
  added(now.sent, lane.published.sent, [&](std::uint64_t more) { lane.metrics.sent(more); });
  added(now.dropped, lane.published.dropped, [&](std::uint64_t more) { lane.metrics.dropped(more); });
  added(now.failed, lane.published.failed, [&](std::uint64_t more) { lane.metrics.failed(more); });
  if (now.waiting != lane.published.waiting) {
    lane.metrics.waiting(now.waiting);
  }
  lane.published = now;
}

}  // namespace sluice::observe
