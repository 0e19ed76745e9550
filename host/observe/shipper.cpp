#include "host/observe/shipper.hpp"

#include <algorithm>
#include <utility>

#include "base/text/number.hpp"

namespace sluice::observe {

namespace {

constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
/// Longer than this nobody is left alone: it could be a mistake.
constexpr std::int64_t kLongestWaitSeconds = 3600;

constexpr Duration kFirstWait = std::chrono::seconds(1);
constexpr Duration kLongestWait = std::chrono::seconds(60);
constexpr Duration kHurriedWait = std::chrono::milliseconds(100);
/// Requests end so long before a flush does, or a tenth of its time, so that it still hears why they failed.
constexpr Duration kLastWord = std::chrono::milliseconds(100);
/// A batch that could not be handed over for so long never will be, and those behind it are newer.
constexpr Duration kGiveUpAfter = std::chrono::minutes(5);
constexpr Duration kNoticeEvery = std::chrono::minutes(1);
constexpr std::uint32_t kMostDoublings = 6;
constexpr const char* kNoRoom = "it does not keep up";

}  // namespace

std::optional<Duration> retry_after(const dynamo::HttpResponse& response) {
  const std::string* const text = response.header("retry-after");
  const auto seconds = text == nullptr ? std::nullopt : parse_number<std::int64_t>(*text);
  return seconds >= 0 ? std::optional<Duration>(std::chrono::seconds(std::min(*seconds, kLongestWaitSeconds)))
                      : std::nullopt;
}

dynamo::HttpRequest Collector::request(std::span<const std::string> items, WallTime now) const {
  return {.method = "POST", .url = settings_.url, .headers = settings_.headers, .body = body_of(items, now)};
}

Judgement Collector::judge(const dynamo::HttpResult& result) const {
  if (!result) {
    return {Judgement::Kind::again, 0, std::nullopt, result.error().message};
  }
  const int status = result->status;
  if (status >= 200 && status < 300) {
    return {};
  }
  std::string why = "it answered " + std::to_string(status);
  if (std::find(settings_.again.begin(), settings_.again.end(), status) != settings_.again.end()) {
    return {Judgement::Kind::again, 0, retry_after(*result), std::move(why)};
  }
  if (status == kUnauthorized || status == kForbidden) {
    why += "; is the " + settings_.credential + " right?";
  }
  return {Judgement::Kind::refused, 0, std::nullopt, std::move(why)};
}

bool ShipQueue::put(std::string item, SteadyTime now) {
  if (figures_.waiting >= limits_.items || waiting_bytes_ + item.size() > limits_.bytes) {
    drop(1, trouble_.empty() ? kNoRoom : trouble_);
    return false;
  }
  waiting_bytes_ += item.size();
  ++figures_.waiting;
  waiting_.push_back({std::move(item), now});
  return true;
}

ShipQueue::Order ShipQueue::next(SteadyTime now) {
  Order order;
  if (under_way_ || idle() || is_too_late(now)) {
    return order;
  }
  if (now < not_before_) {
    order.wake = not_before_;
    return order;
  }
  if (batch_.empty()) {
    const bool full = waiting_.size() >= limits_.batch_items || waiting_bytes_ >= limits_.batch_bytes;
    const SteadyTime due = waiting_.front().since + limits_.linger;
    if (!full && !requests_end_ && now < due) {
      order.wake = due;
      return order;
    }
    fill_batch(now);
  }
  under_way_ = true;
  order.send = true;
  order.deadline = now + limits_.patience;
  if (requests_end_) {
    order.deadline = std::min(order.deadline, *requests_end_);
  }
  return order;
}

void ShipQueue::fill_batch(SteadyTime now) {
  std::size_t bytes = 0;
  while (!waiting_.empty() && batch_.size() < limits_.batch_items &&
         (batch_.empty() || bytes + waiting_.front().text.size() <= limits_.batch_bytes)) {
    bytes += waiting_.front().text.size();
    batch_.push_back(std::move(waiting_.front().text));
    waiting_.pop_front();
  }
  batch_since_ = now;
}

void ShipQueue::end_batch() {
  for (const std::string& item : batch_) {
    waiting_bytes_ -= item.size();
  }
  figures_.waiting -= batch_.size();
  batch_.clear();
}

void ShipQueue::answered(const Judgement& judgement, SteadyTime now) {
  under_way_ = false;
  const std::size_t count = batch_.size();
  if (judgement.kind == Judgement::Kind::taken) {
    const std::size_t rejected = std::min(judgement.rejected, count);
    figures_.sent += count - rejected;
    end_batch();
    failures_ = 0;
    not_before_ = SteadyTime::min();
    trouble_ = judgement.why;
    if (rejected > 0) {
      drop(rejected, judgement.why);
    }
    return;
  }
  ++figures_.failed;
  // That the end cut a request off says less than what went wrong before.
  if (trouble_.empty() || !is_too_late(now)) {
    trouble_ = judgement.why;
  }
  if (judgement.kind == Judgement::Kind::refused || now - batch_since_ >= kGiveUpAfter) {
    end_batch();
    drop(count, judgement.why);
  }
  // Half of the wait is left to chance, so that hosts which failed together do not come back together.
  const Duration full = std::min(kFirstWait * (1U << std::min(failures_++, kMostDoublings)), kLongestWait);
  const Duration wait = full / 2 + std::chrono::duration_cast<Duration>(full / 2 * random_.unit());
  not_before_ = now + std::max(wait, judgement.wait.value_or(Duration::zero()));
  if (requests_end_) {
    not_before_ = now + kHurriedWait;
  }
}

void ShipQueue::hurry(SteadyTime now, SteadyTime until) {
  requests_end_ = until - std::clamp((until - now) / 10, Duration::zero(), kLastWord);
  not_before_ = std::min(not_before_, now);
}

void ShipQueue::give_up() {
  const std::size_t left = figures_.waiting;
  waiting_.clear();
  batch_.clear();
  under_way_ = false;
  waiting_bytes_ = 0;
  figures_.waiting = 0;
  if (left > 0) {
    drop(left, trouble_.empty() ? "the host has ended" : trouble_);
  }
}

void ShipQueue::drop(std::size_t count, const std::string& why) {
  figures_.dropped += count;
  untold_ += count;
  untold_why_ = why;
}

std::optional<ShipQueue::Notice> ShipQueue::notice(SteadyTime now) {
  if (!has_notice(now)) {
    return std::nullopt;
  }
  next_notice_ = now + kNoticeEvery;
  return Notice{std::exchange(untold_, 0), untold_why_};
}

/// One collector and what waits for it. Guarded by the shipper's lock but for what is fixed.
class Shipper::Destination {
 public:
  Destination(std::unique_ptr<Collector> its_collector, dynamo::HttpTransport& its_transport, Random& random)
      : collector(std::move(its_collector)), transport(its_transport), queue(collector->limits(), random) {}

  const std::unique_ptr<Collector> collector;
  dynamo::HttpTransport& transport;
  ShipQueue queue;
};

Shipper::Shipper(const Clock& clock, Random& random, Tell tell)
    : RepeatingService("sluice-ship", clock), random_(random), tell_(std::move(tell)) {}

Shipper::~Shipper() { stop(); }

Shipper::Destination& Shipper::add(std::unique_ptr<Collector> collector, dynamo::HttpTransport& transport) {
  return lanes_.emplace_back(std::move(collector), transport, random_);
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
    // The thread is woken for the first one, for a full batch, and for what it has to tell.
    const bool news =
        taken ? before == 0 || before + 1 == lane.collector->limits().batch_items : lane.queue.has_notice(now);
    if (!news) {
      return;
    }
  }
  wake();
}

void Shipper::end() {
  const MutexLock lock(mutex_);
  ended_ = true;
  for (Destination& lane : lanes_) {
    lane.queue.give_up();
  }
}

bool Shipper::flush(SteadyTime until) {
  const auto idle = [this] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Destination& lane) { return lane.queue.idle(); });
  };
  const MutexLock lock(mutex_);
  for (Destination& lane : lanes_) {
    lane.queue.hurry(clock_.steady_now(), until);
  }
  wake();
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

SteadyTime Shipper::step(const std::stop_token&) {
  SteadyTime next = SteadyTime::max();
  for (Destination& lane : lanes_) {
    ShipQueue::Order order;
    std::optional<ShipQueue::Notice> notice;
    {
      const MutexLock lock(mutex_);
      const SteadyTime now = clock_.steady_now();
      order = lane.queue.next(now);
      notice = lane.queue.notice(now);
    }
    if (notice) {
      tell_(std::to_string(notice->dropped) + " items for " + lane.collector->name() + " were dropped: " + notice->why);
    }
    if (order.send) {
      send(lane, order.deadline);
    }
    next = std::min(next, order.wake);
  }
  return next;
}

void Shipper::send(Destination& lane, SteadyTime deadline) {
  // The batch stays as it is until it is answered, so that nobody waits while it is put together.
  lane.transport.send(lane.collector->request(lane.queue.batch(), clock_.wall_now()), Deadline::at(deadline),
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
  }
  changed_.notify_all();
  wake();
}

}  // namespace sluice::observe
