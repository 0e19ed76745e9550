#include "host/cli/views/top_looker.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/signal_block.hpp"
#include "base/text/decimal.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

/// For one call of a store. The screen goes on without it, and its end waits for it.
constexpr Duration kCallTime = std::chrono::seconds(5);
/// Hosts tell in detail for so long beyond the next look.
constexpr Duration kWatchMargin = std::chrono::seconds(8);

}  // namespace

void TopLooker::look_at_hosts(Duration watched_for) {
  const Deadline deadline = Deadline::after(session_.clock(), kCallTime);
  if (watched_for > Duration::zero()) {
    static_cast<void>(session_.fleet().watch(watched_for, deadline));  // without it the screen tells less
  }
  const auto view = session_.fleet().hosts(deadline);
  const auto steering = session_.fleet().steering(deadline);
  board_.with([&](operate::TopModel& model) {
    if (!view) {
      return model.say(view.error().message());
    }
    model.see(*view, steering ? *steering : fleet::SteeringView{});
    if (!view->troubles.empty()) {
      model.say(view->troubles.front().place + ": " + view->troubles.front().error.message());
    }
  });
}

std::vector<std::string> TopLooker::queues() {
  std::set<std::string> names(session_.queue_names().begin(), session_.queue_names().end());
  board_.with([&names](operate::TopModel& model) {
    for (const fleet::KnownHost& host : model.fleet().hosts) {
      for (const fleet::JobRecord& job : host.record.jobs) {
        const auto queues = fleet::queues_in(job.queue);
        names.insert(queues.begin(), queues.end());
      }
    }
  });
  return {names.begin(), names.end()};
}

void TopLooker::count(const std::string& queue) {
  auto known = counters_.find(queue);
  if (known == counters_.end()) {
    auto opened = session_.queues().queues().open_operator(queue);
    if (!opened) {
      return board_.with([&](operate::TopModel& model) { model.see_trouble(queue, opened.error().message()); });
    }
    const bool keeps_count = session_.queues().host().store_of(queue).kind == config::StoreKind::sqlite;
    known =
        counters_
            .try_emplace(queue, std::move(*opened),
                         keeps_count ? operate::QueueCounter::Method::at_once : operate::QueueCounter::Method::by_pages,
                         session_.clock())
            .first;
  }
  const auto counted = known->second.step(Deadline::after(session_.clock(), kCallTime));
  board_.with([&](operate::TopModel& model) {
    if (counted) {
      model.see(queue, *counted, session_.clock().wall_now());
    } else {
      model.see_trouble(queue, counted.error().message());
    }
  });
}

void TopLooker::carry_out(const operate::TopWish& wish) {
  const bool pauses = wish.kind == operate::TopWish::Kind::pause;
  std::string said;
  if (pauses) {
    fleet::Directive directive;
    directive.wish = fleet::Wish::pause;
    directive.target = fleet::Target::queue;
    directive.name = wish.queue;
    const auto given = session_.give(directive, wish.queue);
    said = given.has_error() ? given.error().lines().front() : "queue " + wish.queue + " is paused";
  } else {
    const auto taken = session_.reset(fleet::Wish::pause, wish.queue);
    said = taken.has_error() ? taken.error().lines().front() : "queue " + wish.queue + " is resumed";
  }
  board_.with([&said](operate::TopModel& model) { model.say(std::move(said)); });
}

std::string TopLooker::cost() {
  const auto now_spent = session_.queues().cost();
  if (!now_spent) {
    return {};
  }
  const SteadyTime now = session_.clock().steady_now();
  const runtime::DynamoDbCost before = std::exchange(spent_, *now_spent);
  const SteadyTime since = std::exchange(spent_at_, now);
  const double seconds = std::chrono::duration<double>(now - since).count();
  if (since == SteadyTime{} || seconds <= 0) {
    return {};
  }
  return fixed_decimal((spent_.read_units - before.read_units) / seconds, 1) + " RCU/s, " +
         fixed_decimal((spent_.write_units - before.write_units) / seconds, 1) + " WCU/s";
}

TopLookout::TopLookout(FleetSession& session, TopBoard& board, Duration interval)
    : clock_(session.clock()),
      interval_(interval),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      looker_(session, board) {
  SLUICE_ASSERT(news_ >= 0);
  const SignalBlock none_there;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TopLookout::~TopLookout() {
  thread_.request_stop();
  thread_.join();
  ::close(news_);
}

void TopLookout::take_news() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(news_, &count, sizeof(count));
}

void TopLookout::tell() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(news_, &one, sizeof(one));
}

std::string TopLookout::cost() {
  const MutexLock lock(mutex_);
  return cost_;
}

void TopLookout::ask(operate::TopWish wish) {
  {
    const MutexLock lock(mutex_);
    wishes_.push_back(std::move(wish));
  }
  changed_.notify_all();
}

std::optional<operate::TopWish> TopLookout::next_wish() {
  const MutexLock lock(mutex_);
  if (wishes_.empty()) {
    return std::nullopt;
  }
  operate::TopWish wish = std::move(wishes_.front());
  wishes_.pop_front();
  return wish;
}

void TopLookout::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const SteadyTime next = clock_.steady_now() + interval_;
    while (const auto wish = next_wish()) {
      if (wish->kind == operate::TopWish::Kind::pause || wish->kind == operate::TopWish::Kind::resume) {
        looker_.carry_out(*wish);
      }
    }
    looker_.look(interval_ + kWatchMargin, stop, [this] { tell(); });
    const MutexLock lock(mutex_);
    cost_ = looker_.cost();
    changed_.wait_until(mutex_, stop, next, [this]() SLUICE_NO_TSA { return !wishes_.empty(); });
  }
}

}  // namespace sluice::cli
