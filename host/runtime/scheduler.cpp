#include "host/runtime/scheduler.hpp"

#include <set>

#include "base/text/hex.hpp"
#include "host/fleet/notice_json.hpp"
#include "host/stores/table/nonce.hpp"

namespace sluice::runtime {

namespace {

using std::chrono::floor;
using std::chrono::hours;
using std::chrono::seconds;
using Time = config::ScheduleTimes::Time;

constexpr Duration kFirstPause = seconds(1);
constexpr Duration kLongestPause = seconds(60);
// Each costs money where a board is billed; a restart within it is what the deduplication window is for.
constexpr Duration kTellInterval = seconds(60);
// A board's time that lies further ahead was written by a clock that was wrong.
constexpr seconds kAhead = hours(24);
constexpr seconds kLeastWindow = hours(24);
constexpr seconds kMostWindow = hours(24 * 366);

WallTime wall(Time time) { return WallTime(time.time_since_epoch()); }
Time whole(WallTime time) { return Time(floor<seconds>(time.time_since_epoch())); }

/// Whether something may be done that is put off until `time`, which lies no more than `longest` ahead: farther, and
/// the clock was set back.
bool is_due(WallTime time, WallTime now, Duration longest) { return now >= time || time > now + longest; }

queue::Priority priority_of(const std::string& name) {
  return queue::priority_named(name).value_or(queue::Priority::normal);
}

constexpr Duration kCallTimeout = std::chrono::seconds(20);
// A wall clock that is set is noticed within this.
constexpr Duration kLongestWait = std::chrono::seconds(30);

}  // namespace

template <fleet::Described<ScheduleNotice> Record, typename Visit>
void describe(Record& notice, Visit visit) {
  visit("definition", notice.definition);
  visit("host", notice.host);
  visit("file", notice.file);
  visit("last", notice.last);
  visit("sent", notice.sent);
}

std::string ScheduleNotice::write() const { return fleet::write_described(*this); }

std::optional<ScheduleNotice> ScheduleNotice::read(std::string_view text) {
  const auto notice = fleet::read_described<ScheduleNotice>(text, "the notice");
  return notice ? std::optional(*notice) : std::nullopt;
}

std::string definition_of(const config::ScheduleConfig& schedule) {
  std::string content = schedule.body + '\0' + schedule.content_type + '\0' + schedule.group + '\0' + schedule.priority;
  for (const auto& [name, value] : schedule.attributes) {
    content += '\0' + name + '\0' + value;
  }
  const std::string when = schedule.cron.empty() ? "every " + config::format_duration(schedule.every)
                                                 : "\"" + schedule.cron + "\" in " + schedule.time_zone;
  return when + ", message " + hex_digits(queue::table::stable_hash(content), 8) + " to queue " + schedule.queue;
}

std::vector<Schedule> schedules_of(const std::vector<JobPlan>& plans) {
  std::vector<Schedule> all;
  for (const JobPlan& plan : plans) {
    for (const config::ScheduleConfig& schedule : plan.config.schedules) {
      all.push_back({schedule, plan.config.file});
    }
  }
  return all;
}

void Scheduler::take(const std::vector<Schedule>& schedules, WallTime now) {
  std::set<std::string> names;
  for (const Schedule& schedule : schedules) {
    auto times = config::ScheduleTimes::of(schedule.config);
    if (!times) {
      lines_.push_back({true, schedule.file + ": schedule '" + schedule.config.name +
                                  "' cannot be read, although it was checked: has the machine's tzdata gone?"});
      continue;
    }
    const std::string& name = schedule.config.name;
    names.insert(name);
    const auto old = entries_.find(name);
    if (old != entries_.end() && old->second.schedule.config == schedule.config) {
      old->second.schedule = schedule;
      continue;
    }
    Entry entry{.schedule = schedule, .times = *times, .definition = definition_of(schedule.config)};
    entry.last = whole(now);
    entries_.insert_or_assign(name, std::move(entry));
  }
  std::erase_if(entries_, [&](const auto& entry) { return !names.contains(entry.first); });
}

Scheduler::Order Scheduler::next(WallTime now) {
  Order order;
  for (auto& [name, entry] : entries_) {
    const std::string& queue = entry.schedule.config.queue;
    if (!is_due(entry.retry_at, now, kLongestPause)) {
      order.wake = std::min(order.wake, entry.retry_at);
      continue;
    }
    if (entry.known) {
      find_due(entry, whole(now));
    }
    if (!entry.known || (entry.pending.empty() && is_due(entry.look_at, now, kLookInterval))) {
      return {.duty = Duty::look, .name = name, .queue = queue};
    }
    if (!entry.pending.empty()) {
      const Time due = entry.pending.front();
      return {.duty = Duty::send, .name = name, .queue = queue, .due = due, .message = message_of(entry, due)};
    }
    if (entry.to_tell && is_due(entry.tell_at, now, kTellInterval)) {
      const ScheduleNotice notice{entry.definition, host_, entry.schedule.file, entry.last, entry.sent};
      return {.duty = Duty::tell,
              .name = name,
              .queue = queue,
              .notice = {.key = name, .text = notice.write(), .version = entry.version}};
    }
    order.wake = std::min({order.wake, entry.look_at, entry.to_tell ? entry.tell_at : WallTime::max()});
    const Time due = entry.times.next_after(entry.last);
    order.wake = std::min(order.wake, due < whole(WallTime::max()) ? wall(due) : WallTime::max());
  }
  return order;
}

void Scheduler::find_due(Entry& entry, Time now) {
  if (!entry.pending.empty() || entry.times.next_after(entry.last) > now) {
    return;
  }
  const auto policy = entry.schedule.config.catch_up;
  const std::size_t most = policy == config::CatchUp::all ? kMostCaughtUp : 1;
  const std::vector<Time> due = entry.times.between(entry.last, now, most);
  const bool missed = policy == config::CatchUp::all && entry.times.next_after(entry.last) < due.front();
  if (missed) {
    lines_.push_back({true, "schedule '" + entry.schedule.config.name + "' has missed more than " +
                                std::to_string(kMostCaughtUp) + " times; those before " +
                                entry.times.text(due.front()) + " are let go"});
  }
  if (policy == config::CatchUp::none && now - due.back() > kPunctual) {
    entry.last = due.back();
    entry.to_tell = true;
    return;
  }
  entry.pending.assign(due.begin(), due.end());
}

queue::NewMessage Scheduler::message_of(const Entry& entry, Time due) const {
  const config::ScheduleConfig& schedule = entry.schedule.config;
  queue::NewMessage message;
  message.body = schedule.body;
  message.content_type = schedule.content_type;
  message.attributes.insert(schedule.attributes.begin(), schedule.attributes.end());
  message.group = schedule.group;
  message.priority = priority_of(schedule.priority);
  message.dedup_id = "schedule/" + schedule.name + "/" + format_timestamp(wall(due));
  // So long that no host which is late sends it once more.
  const Time following = entry.times.next_after(due);
  message.dedup_window = std::clamp(2 * std::min(seconds(following - due), kMostWindow / 2), kLeastWindow, kMostWindow);
  return message;
}

void Scheduler::looked(const std::string& name, const Result<queue::Notice>& found, WallTime now) {
  Entry& entry = entries_.at(name);
  entry.look_at = now + kLookInterval;
  if (!found && entry.known) {
    return;  // What is due is not held up by it.
  }
  if (!found) {
    return failed(entry, "cannot be read up", found.error(), now);
  }
  succeeded(entry);
  // Who has been read before has told what is his; where hosts differ they would write over each other for ever.
  entry.to_tell = entry.to_tell || !entry.known || found->version == 0;
  entry.known = true;
  entry.version = found->version;
  const bool fresh = std::exchange(entry.fresh, false);
  const auto notice = found->version == 0 ? std::nullopt : ScheduleNotice::read(found->text);
  if (!notice) {
    return;  // Nobody has had it: it begins now.
  }
  if (notice->definition != entry.definition) {
    return compare(entry, notice->definition, notice->host, notice->file);
  }
  entry.warned.clear();
  // What is pending was found due by this host's own clock; others may have sent it.
  const Time said = whole(notice->last);
  if (said > whole(now) + kAhead) {
    return;
  }
  if (notice->sent) {
    entry.sent = std::max(entry.sent, std::optional(whole(*notice->sent)));
  }
  if (entry.pending.empty()) {
    entry.to_tell = entry.last > said;
    // A schedule that has just been taken goes on where the fleet was.
    entry.last = fresh ? said : std::max(entry.last, said);
  }
}

void Scheduler::compare(Entry& entry, const std::string& definition, const std::string& host, const std::string& file) {
  if (host == host_) {
    return;  // It has been changed here.
  }
  std::string text = "schedule '" + entry.schedule.config.name + "' is not the same everywhere: here " +
                     entry.schedule.file + " has " + entry.definition + ", on host " + host + " " + file + " has " +
                     definition + "; both send. Make the files the same and reload, or give one of them another name";
  if (text != entry.warned) {
    entry.warned = text;
    lines_.push_back({true, std::move(text)});
  }
}

void Scheduler::sent(const std::string& name, Time due, const queue::SendResult& result, WallTime now) {
  Entry& entry = entries_.at(name);
  const bool refused = result.status == queue::SendStatus::failed && !result.error.transient();
  if (result.status == queue::SendStatus::failed && !refused) {
    return failed(entry, "cannot send", result.error, now);
  }
  if (refused) {
    lines_.push_back({true, "schedule '" + name + "' of " + entry.schedule.file + " cannot be sent, and the one of " +
                                entry.times.text(due) + " is let go: " + result.error.message()});
  } else {
    succeeded(entry);
    entry.sent = std::max(entry.sent, std::optional(due));
    if (result.status == queue::SendStatus::sent) {
      lines_.push_back({false, "schedule '" + name + "' sent " + result.id + " for " + entry.times.text(due)});
    }
  }
  entry.pending.pop_front();
  entry.last = std::max(entry.last, due);
  entry.to_tell = true;
}

void Scheduler::told(const std::string& name, const Result<std::int64_t>& posted, WallTime now) {
  Entry& entry = entries_.at(name);
  if (posted) {
    entry.version = *posted;
    entry.to_tell = false;
    entry.tell_at = now + kTellInterval;
  } else if (posted.error().code() == ErrorCode::conflict || posted.error().code() == ErrorCode::unknown_outcome) {
    entry.known = false;  // What it says now may be that two hosts differ.
    entry.tell_at = now + kTellInterval;
  } else {
    failed(entry, "cannot be noted down", posted.error(), now);
  }
}

void Scheduler::failed(Entry& entry, const std::string& what, const Error& error, WallTime now) {
  entry.pause = std::clamp(entry.pause * 2, kFirstPause, kLongestPause);
  entry.retry_at = now + entry.pause;
  if (entry.trouble != what) {
    entry.trouble = what;
    lines_.push_back(
        {true, "schedule '" + entry.schedule.config.name + "' " + what + ", trying again: " + error.message()});
  }
}

void Scheduler::succeeded(Entry& entry) {
  entry.pause = {};
  entry.retry_at = {};
  if (!entry.trouble.empty()) {
    entry.trouble.clear();
    lines_.push_back({false, "schedule '" + entry.schedule.config.name + "' works again"});
  }
}

SteadyTime ScheduleService::step(const std::stop_token& /*stop*/) {
  const WallTime now = clock_.wall_now();
  {
    const MutexLock lock(mutex_);
    if (const auto taken = std::exchange(taken_, std::nullopt)) {
      scheduler_.take(taken->first, taken->second);
    }
  }
  const Scheduler::Order order = scheduler_.next(now);
  carry_out(order);
  for (const Scheduler::Line& line : scheduler_.take_lines()) {
    log_.write(line.bad ? observe::LogLevel::warn : observe::LogLevel::info, line.text);
  }
  if (order.duty != Scheduler::Duty::none) {
    return SteadyTime::min();
  }
  if (order.wake == WallTime::max()) {
    return SteadyTime::max();  // There is no schedule.
  }
  const Duration wait = order.wake > now + kLongestWait ? kLongestWait : Duration(order.wake - now);
  return clock_.steady_now() + std::max(wait, Duration::zero());
}

void ScheduleService::carry_out(const Scheduler::Order& order) {
  using Duty = Scheduler::Duty;
  const Deadline deadline = Deadline::after(clock_, kCallTimeout);
  if (order.duty == Duty::look) {
    const auto board = board_of(order.queue);
    const auto found = board ? (*board)->read(queue::Topic::schedules, order.name, deadline) : board.error();
    scheduler_.looked(order.name, found, clock_.wall_now());
  } else if (order.duty == Duty::send) {
    const auto sender = opened(senders_, order.queue, [&] { return queues_.open_sender(order.queue); });
    const auto result = sender ? (*sender)->send(std::span(&order.message, 1), deadline).front()
                               : queue::SendResult{queue::SendStatus::failed, {}, sender.error()};
    scheduler_.sent(order.name, order.due, result, clock_.wall_now());
  } else if (order.duty == Duty::tell) {
    const auto board = board_of(order.queue);
    const auto posted = board ? (*board)->post(queue::Topic::schedules, order.notice, deadline) : board.error();
    scheduler_.told(order.name, posted, clock_.wall_now());
  }
}

}  // namespace sluice::runtime
