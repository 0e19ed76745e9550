#include "host/runtime/fleet_service.hpp"

#include "base/signal_block.hpp"

namespace sluice::runtime {
namespace {

using fleet::BoardPollSchedule;
using queue::Topic;

constexpr Duration kCallTime = std::chrono::seconds(2);
/// Of a start: afterwards the thread looks again.
constexpr Duration kFirstLookTime = std::chrono::seconds(2);
/// Of all calls by which a host that ends takes its records down.
constexpr Duration kFarewellTime = std::chrono::milliseconds(300);
constexpr Duration kOpenAgain = std::chrono::seconds(10);

fleet::HostNames names_of(const fleet::HostRecord& identity) {
  return {identity.instance, identity.name, identity.label()};
}

}  // namespace

FleetService::FleetService(Parts parts, const fleet::HostRecord& identity, QueueNames names)
    : parts_(std::move(parts)), own_(identity.instance), names_(std::move(names)), resolver_(names_of(identity)) {}

Result<void> FleetService::start() {
  const SignalBlock block;
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

bool FleetService::leave(SteadyTime limit) {
  {
    const MutexLock lock(mutex_);
    end_by_ = std::min(limit, parts_.clock.steady_now() + kFarewellTime);
  }
  return thread_.stop_until(limit);
}

void FleetService::open(const std::vector<std::string>& names) {
  const SteadyTime now = parts_.clock.steady_now();
  for (const std::string& name : names) {
    if (std::find(opened_.begin(), opened_.end(), name) != opened_.end()) {
      continue;
    }
    auto board = parts_.queues.open_board(name);
    if (!board) {
      // The job of that queue says why.
      open_again_ = now + kOpenAgain;
      continue;
    }
    opened_.push_back(name);
    const bool known = std::any_of(posts_.begin(), posts_.end(), [&board](const auto& post) {
      return post->board->traits().place == (*board)->traits().place;
    });
    if (!known) {
      Post& post = *posts_.emplace_back(std::make_unique<Post>(std::move(*board), own_, now));
      post.watch = post.board->watch([this] { look_now(); });
    }
  }
}

void FleetService::look_first(const std::vector<std::string>& names) {
  open(names);
  const Deadline deadline = Deadline::after(parts_.clock, kFirstLookTime);
  for (const auto& post : posts_) {
    if (look(*post, deadline)) {
      post->poll_schedule.done(BoardPollSchedule::Duty::look, parts_.clock.steady_now());
    }
  }
}

void FleetService::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (parts_.clock.steady_now() >= open_again_) {
      open_again_ = SteadyTime::min();
      open(names_());
    }
    bool look = false;
    bool tell = false;
    {
      const MutexLock lock(mutex_);
      look = std::exchange(look_, false);
      tell = std::exchange(tell_, false);
    }
    SteadyTime wake = parts_.clock.steady_now() + kOpenAgain;
    for (const auto& post : posts_) {
      if (look) {
        post->poll_schedule.look_soon();
      }
      if (tell) {
        post->poll_schedule.tell_soon();
      }
      wake = std::min(wake, attend(*post, stop));
    }
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, wake, [this]() SLUICE_REQUIRES(mutex_) { return look_ || tell_; });
  }
  for (const auto& post : posts_) {
    post->watch.reset();
    take_down(*post);
  }
}

SteadyTime FleetService::attend(Post& post, const std::stop_token& stop) {
  while (true) {
    const BoardPollSchedule::Order order = post.poll_schedule.next(parts_.clock.steady_now());
    if (order.duty == BoardPollSchedule::Duty::none || stop.stop_requested()) {
      return order.wake;
    }
    const auto performed = perform(post, order.duty);
    const SteadyTime now = parts_.clock.steady_now();
    if (!performed) {
      complain(post, performed.error());
      post.poll_schedule.failed(order.duty, now);
      continue;
    }
    post.poll_schedule.done(order.duty, now);
    if (!post.poll_schedule.failing() && std::exchange(post.complained, false)) {
      parts_.log.info("the fleet is told of this host again", {{"place", post.board->traits().place}});
    }
  }
}

Result<void> FleetService::perform(Post& post, BoardPollSchedule::Duty duty) {
  switch (duty) {
    case BoardPollSchedule::Duty::look:
      return look(post, call_deadline());
    case BoardPollSchedule::Duty::tell:
      return tell(post, call_deadline());
    case BoardPollSchedule::Duty::sweep:
      return sweep(post, call_deadline());
    case BoardPollSchedule::Duty::none:
      break;
  }
  return {};
}

Result<void> FleetService::look(Post& post, Deadline deadline) {
  SLUICE_TRY(notice, post.board->read(Topic::steering, {}, deadline));
  post.seen = notice->version;
  if (post.steering == notice->text) {
    return {};
  }
  auto steering = fleet::read_steering(notice->text);
  if (!steering) {
    // What stood before stands on.
    return steering.error();
  }
  post.steering = notice->text;
  if (steering->watched_until) {
    const Duration left = *steering->watched_until - post.board->now();
    const bool watched = post.poll_schedule.watched(parts_.clock.steady_now());
    post.poll_schedule.watched_until(parts_.clock.steady_now() + left);
    if (!watched && left > Duration::zero()) {
      post.poll_schedule.tell_soon();
    }
  }
  obey(post, std::move(*steering));
  return {};
}

void FleetService::obey(Post& post, fleet::Steering steering) {
  const std::string& place = post.board->traits().place;
  const fleet::HostSteering before = resolver_.standing();
  const std::vector<fleet::Directive> orders = resolver_.read(place, std::move(steering));
  if (resolver_.standing() != before) {
    parts_.take(resolver_.standing());
  }
  for (const fleet::Directive& order : orders) {
    fleet::Answer answer = parts_.control.obey(order);
    // Of a message that runs elsewhere there is nothing to say.
    if (answer.done || order.wish != fleet::Wish::cancel_running) {
      resolver_.answered(place, std::move(answer));
    }
  }
  post.poll_schedule.tell_soon();
}

Result<void> FleetService::tell(Post& post, Deadline deadline) {
  const SteadyTime now = parts_.clock.steady_now();
  fleet::HostRecord record = parts_.control.describe();
  record.every = post.poll_schedule.interval(now);
  record.seen = post.seen;
  record.answers = resolver_.answers(post.board->traits().place, record.jobs);
  record.detailed = post.poll_schedule.watched(now);
  if (!record.detailed) {
    record.running.clear();
  }
  const std::string text = fleet::write_record(record, post.board->traits().most_bytes);
  if (!record.detailed) {
    post.poll_schedule.size(text.size(), posts_.size());
  }
  auto posted = post.board->post(Topic::hosts, {.key = own_, .text = text, .version = post.told}, deadline);
  if (!posted && posted.error().code() == ErrorCode::conflict) {
    // Somebody has swept it away, or an answer was lost.
    SLUICE_TRY(found, post.board->read(Topic::hosts, own_, deadline));
    posted = post.board->post(Topic::hosts, {.key = own_, .text = text, .version = found->version}, deadline);
  }
  SLUICE_PASS_ON(posted);
  post.told = *posted;
  return {};
}

void FleetService::take_down(Post& post) {
  if (post.told == 0) {
    return;
  }
  SteadyTime end{};
  {
    const MutexLock lock(mutex_);
    end = end_by_;
  }
  const Deadline deadline = Deadline::at(end);
  const auto down = post.board->take_down(Topic::hosts, own_, post.told, deadline);
  if (!down && down.error().code() == ErrorCode::conflict) {
    if (const auto found = post.board->read(Topic::hosts, own_, deadline)) {
      static_cast<void>(post.board->take_down(Topic::hosts, own_, found->version, deadline));
    }
  }
}

Deadline FleetService::call_deadline() const { return Deadline::after(parts_.clock, kCallTime); }

}  // namespace sluice::runtime
