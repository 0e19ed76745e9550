#include "host/operate/top_model.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/text/utf8.hpp"

namespace sluice::operate {

namespace {

// Of a queue that no host works on; to count it costs reads.
constexpr Duration kUntoldAgain = std::chrono::seconds(10);

void add(queue::QueueStats& stats, const queue::StoredMessage& record, WallTime now) {
  switch (record.state(now)) {
    case queue::MessageState::ready:
      ++stats.ready;
      stats.oldest_ready = std::min(stats.oldest_ready.value_or(record.message.sent_at), record.message.sent_at);
      break;
    case queue::MessageState::in_flight:
      ++stats.in_flight;
      break;
    case queue::MessageState::delayed:
      ++stats.delayed;
      break;
  }
}

constexpr std::size_t kLongestFilter = 100;

/// What a queue is sorted by: the greatest first, but names.
double weight(const TopQueue& queue, TopOrder order) {
  const QueueCount count = queue.count.value_or(QueueCount{});
  const auto oldest = queue.oldest.value_or(Duration(-1)).count();
  const std::array<double, kTopOrders> weights{0,
                                               static_cast<double>(count.standard.ready),
                                               static_cast<double>(count.standard.in_flight),
                                               static_cast<double>(count.standard.delayed),
                                               static_cast<double>(count.dead.total()),
                                               static_cast<double>(oldest),
                                               queue.in.value_or(-1),
                                               queue.out.value_or(-1),
                                               queue.failed.value_or(-1)};
  return weights.at(static_cast<std::size_t>(order));
}

/// A sum with something unknown is unknown.
void add(const fleet::JobPace& pace, double rate, std::optional<double>& sum) {
  sum = sum && pace.over > Duration::zero() ? std::optional(*sum + rate) : std::nullopt;
}

/// "1,204", and "1,000+" while it is being counted.
std::string count_text(std::uint64_t number, bool whole) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits + (whole ? "" : "+");
}

Cell state_cell(const TopQueue& queue) {
  if (!queue.trouble.empty()) {
    return {queue.trouble, Colour::red};
  }
  if (queue.paused || (queue.jobs > 0 && queue.paused_jobs == queue.jobs)) {
    return {"paused", Colour::yellow};
  }
  if (queue.jobs == 0) {
    return queue.out ? Cell(queue.any_host ? "no job" : "no host", Colour::dim) : Cell("");  // else nobody knows
  }
  if (queue.quiet_jobs > 0) {
    return {"no answer", Colour::red};
  }
  if (queue.held_jobs > 0) {
    return {"held by budget", Colour::yellow};
  }
  return queue.paused_jobs > 0 ? Cell("partly paused", Colour::yellow) : Cell("");
}

}  // namespace

QueueCounter::QueueCounter(std::unique_ptr<queue::Operator> oper, Method method, const Clock& clock)
    : operator_(std::move(oper)), method_(method), clock_(clock) {}

Result<QueueCount> QueueCounter::step(Deadline deadline) {
  SLUICE_PASS_ON(look(queue::Half::standard, standard_, deadline));
  SLUICE_PASS_ON(look(queue::Half::dlq, dead_, deadline));
  const queue::QueueStats& standard = standard_.told();
  return QueueCount{.standard = standard,
                    .dead = dead_.told(),
                    .counted_at = standard.at_least ? clock_.wall_now() : standard_.whole_at};
}

Result<void> QueueCounter::look(queue::Half half, Sweep& sweep, Deadline deadline) {
  if (clock_.steady_now() < sweep.again) {
    return {};
  }
  if (method_ == Method::as_told) {
    const auto stats = operator_->stats({.half = half, .cheap = true}, deadline);
    if (stats) {
      sweep = {.last_whole = *stats, .whole_at = clock_.wall_now() - stats->age.value_or(Duration::zero())};
      return {};
    }
    if (stats.error().code() != ErrorCode::unavailable) {
      return stats.error();
    }
  }
  SLUICE_TRY(found,
             operator_->list({.half = half, .limit = kPage, .cursor = sweep.cursor, .content = false}, deadline));
  const bool head = sweep.cursor.empty();
  if (head) {
    sweep.under_way = {.at_least = true};
  }
  const WallTime now = clock_.wall_now();
  for (const queue::StoredMessage& record : found->messages) {
    add(sweep.under_way, record, now);
  }
  if (head && sweep.last_whole && sweep.under_way.oldest_ready) {
    sweep.last_whole->oldest_ready = sweep.under_way.oldest_ready;  // known anew, whatever lies behind it
  }
  sweep.cursor = std::move(found->next);
  if (sweep.cursor.empty()) {
    sweep.under_way.at_least = false;
    sweep.last_whole = sweep.under_way;
    sweep.whole_at = now;
    sweep.again = method_ == Method::as_told ? clock_.steady_now() + kUntoldAgain : SteadyTime::min();
  }
  return {};
}

void describe(const TopQueue& queue, Fields& fields) {
  const QueueCount count = queue.count.value_or(QueueCount{});
  const char* const unknown = queue.trouble.empty() ? "..." : "?";
  const auto number = [&](std::string_view key, std::string_view title, std::uint64_t value,
                          const queue::QueueStats& half) {
    fields.member(key, queue.count ? std::optional(value) : std::nullopt);
    fields.cell(figures(title, title == "DELAYED" ? 2 : 0), {queue.count ? count_text(value, !half.at_least) : unknown,
                                                             title == "DLQ" && value > 0 ? Colour::red : Colour::none});
  };
  fields.text("queue", names("QUEUE", 16), queue.name);
  number("ready", "READY", count.standard.ready, count.standard);
  number("in_flight", "IN FLIGHT", count.standard.in_flight, count.standard);
  number("delayed", "DELAYED", count.standard.delayed, count.standard);
  number("dlq", "DLQ", count.dead.total(), count.dead);
  fields.member("counted_whole", queue.count && !count.standard.at_least && !count.dead.at_least);
  fields.seconds("oldest_ready_seconds", kNowhere, queue.oldest);
  fields.cell(figures("OLDEST"), queue.oldest ? short_duration(*queue.oldest) : "-");
  fields.cell(figures("IN/S", 1), queue.in ? rate_text(*queue.in) : "-");
  fields.rate("out_per_second", figures("OUT/S"), queue.out);
  fields.rate("failed_per_second", figures("FAILED/S"), queue.failed, Colour::red);
  fields.member("paused", queue.paused);
  fields.member("held_by_budget", queue.held_jobs > 0);
  fields.cell(prose("STATE", 14), state_cell(queue));
  if (!queue.trouble.empty()) {
    fields.member("trouble", queue.trouble);
  }
}

TopModel::TopModel(const std::vector<std::string>& queues, std::string only) : only_(std::move(only)) {
  for (const std::string& name : only_.empty() ? queues : std::vector<std::string>{only_}) {
    known_[name].queue.name = name;
  }
}

void TopModel::see(fleet::FleetView view, const fleet::SteeringView& steering) {
  view_ = std::move(view);
  hosts_known_ = view_.troubles.empty();
  keep_queue(only_, view_.hosts);
  jobs_ = summarize_jobs({}, view_, steering);
  keep_queue(only_, jobs_);
  for (const JobSummary& job : jobs_) {
    // Hosts may know queues that the files here do not.
    for (const std::string& name : only_.empty() ? fleet::queues_in(job.queue) : std::vector<std::string>()) {
      known_[name].queue.name = name;
    }
  }
  const bool any_host = std::any_of(view_.hosts.begin(), view_.hosts.end(),
                                    [](const fleet::KnownHost& host) { return host.pulse != fleet::Pulse::silent; });
  for (auto& [name, known] : known_) {
    TopQueue& queue = known.queue;
    queue.any_host = any_host;
    queue.out = queue.failed = hosts_known_ ? std::optional(0.0) : std::nullopt;
    queue.jobs = queue.paused_jobs = queue.held_jobs = queue.quiet_jobs = 0;
    for (const JobSummary& job : jobs_) {
      if (fleet::draws_from(job.queue, name) && !job.hosts.empty()) {
        add(job.pace, job.dead_letters ? 0 : job.pace.done, queue.out);
        add(job.pace, job.pace.failed, queue.failed);
        ++queue.jobs;
        queue.paused_jobs += job.paused() ? 1 : 0;
        queue.held_jobs += job.held_hosts > 0 ? 1 : 0;
        queue.quiet_jobs += job.quiet_hosts > 0 ? 1 : 0;
      }
    }
    queue.paused = std::any_of(steering.given.begin(), steering.given.end(), [&queue_name = name](const auto& given) {
      return given.directive.same_thing(
          {.wish = fleet::Wish::pause, .target = fleet::Target::queue, .name = queue_name});
    });
  }
}

void TopModel::see_no_hosts(std::string why) {
  hosts_known_ = false;
  say(std::move(why));
}

void TopModel::see(const std::string& queue, const QueueCount& count, WallTime now) {
  Known& known = known_[queue];
  known.queue.name = queue;
  known.queue.count = count;
  known.queue.trouble.clear();
  const auto& oldest = count.standard.oldest_ready;
  known.queue.oldest = oldest ? std::optional(std::max(Duration(now - *oldest), Duration::zero())) : std::nullopt;
  if (!count.standard.at_least) {
    known.pace.add(count.counted_at.time_since_epoch(), count.standard.total());
  }
  const auto grown = known.pace.per_second();
  known.queue.in = grown ? std::optional(std::max(0.0, *grown + known.queue.out.value_or(0))) : std::nullopt;
}

void TopModel::see_trouble(const std::string& queue, std::string why) {
  known_[queue].queue.name = queue;
  known_[queue].queue.trouble = std::move(why);
}

std::vector<TopQueue> TopModel::queues() const {
  std::vector<TopQueue> shown;
  for (const auto& [name, known] : known_) {
    if (name.find(filter_) != std::string::npos) {
      shown.push_back(known.queue);
    }
  }
  std::stable_sort(shown.begin(), shown.end(), [this](const TopQueue& left, const TopQueue& right) {
    return weight(left, order_) > weight(right, order_);
  });
  if (reversed_) {
    std::reverse(shown.begin(), shown.end());
  }
  return shown;
}

std::vector<JobSummary> TopModel::slowest_jobs() const {
  std::vector<JobSummary> jobs;
  std::copy_if(jobs_.begin(), jobs_.end(), std::back_inserter(jobs), [this](const JobSummary& job) {
    return !job.hosts.empty() &&
           (job.queue.find(filter_) != std::string::npos || job.name.find(filter_) != std::string::npos);
  });
  std::stable_sort(jobs.begin(), jobs.end(), [](const JobSummary& left, const JobSummary& right) {
    return std::tuple(left.stuck, left.pace.mean, left.running) >
           std::tuple(right.stuck, right.pace.mean, right.running);
  });
  return jobs;
}

std::size_t TopModel::selected() const {
  const auto shown = queues();
  const auto found =
      std::find_if(shown.begin(), shown.end(), [this](const TopQueue& queue) { return queue.name == selected_; });
  return found == shown.end() ? 0 : static_cast<std::size_t>(found - shown.begin());
}

void TopModel::move_selection(int by) {
  const auto shown = queues();
  if (shown.empty()) {
    return;
  }
  const auto last = static_cast<std::ptrdiff_t>(shown.size()) - 1;
  const auto next = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected()) + by, 0, last);
  selected_ = shown[static_cast<std::size_t>(next)].name;
}

std::optional<TopWish> TopModel::press(const TopKey& key) {
  switch (mode_) {
    case TopMode::plain:
      message_.clear();
      if (key.kind == TopKey::Kind::escape) {
        filter_.clear();
      }
      return press_command(key.kind == TopKey::Kind::up ? 'k' : key.kind == TopKey::Kind::down ? 'j' : key.character);
    case TopMode::filter:
      press_filter(key);
      return std::nullopt;
    case TopMode::confirm:
      return press_confirm(key);
    case TopMode::help:
      mode_ = TopMode::plain;
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<TopWish> TopModel::press_command(char character) {
  switch (character) {
    case 'q':
      return TopWish{TopWish::Kind::quit, {}};
    case ' ':
      return TopWish{TopWish::Kind::look, {}};
    case 'k':
      move_selection(-1);
      break;
    case 'j':
      move_selection(1);
      break;
    case 's':
      order_ = static_cast<TopOrder>((static_cast<std::size_t>(order_) + 1) % kTopOrders);
      break;
    case 'S':
      order_ = static_cast<TopOrder>((static_cast<std::size_t>(order_) + kTopOrders - 1) % kTopOrders);
      break;
    case 'r':
      reversed_ = !reversed_;
      break;
    case '/':
      mode_ = TopMode::filter;
      break;
    case '?':
    case 'h':
      mode_ = TopMode::help;
      break;
    case 'p':
      if (const auto shown = queues(); !shown.empty()) {
        selected_ = shown[selected()].name;  // it stays this one, wherever the next look sorts it to
        mode_ = TopMode::confirm;
      }
      break;
    default:
      break;
  }
  return std::nullopt;
}

void TopModel::press_filter(const TopKey& key) {
  switch (key.kind) {
    case TopKey::Kind::character:
      if (filter_.size() < kLongestFilter) {
        filter_ += key.character;
      }
      break;
    case TopKey::Kind::erase:
      while (!filter_.empty() && continues_utf8(filter_.back())) {
        filter_.pop_back();
      }
      if (!filter_.empty()) {
        filter_.pop_back();
      }
      break;
    case TopKey::Kind::escape:
      filter_.clear();
      mode_ = TopMode::plain;
      break;
    case TopKey::Kind::enter:
      mode_ = TopMode::plain;
      break;
    default:
      break;
  }
}

std::optional<TopWish> TopModel::press_confirm(const TopKey& key) {
  mode_ = TopMode::plain;
  const auto shown = queues();
  const bool yes = key.kind == TopKey::Kind::character && (key.character == 'y' || key.character == 'Y');
  const std::size_t at = selected();
  if (!yes || at >= shown.size() || shown[at].name != selected_) {
    message_ = "left as it is";
    return std::nullopt;
  }
  return TopWish{shown[at].paused ? TopWish::Kind::resume : TopWish::Kind::pause, selected_};
}

}  // namespace sluice::operate
