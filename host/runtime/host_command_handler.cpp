#include "host/runtime/host_command_handler.hpp"

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

using fleet::Answer;
using fleet::Directive;
using fleet::Wish;

struct NamedLevel {
  std::string_view name;
  observe::LogLevel level;
};

constexpr std::array<NamedLevel, 5> kLevels{{{"trace", observe::LogLevel::trace},
                                             {"debug", observe::LogLevel::debug},
                                             {"info", observe::LogLevel::info},
                                             {"warn", observe::LogLevel::warn},
                                             {"error", observe::LogLevel::error}}};

std::string text_of(const fleet::HostSteering& standing) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  for (const std::string& queue : standing.paused_queues) {
    add("queue " + queue + " paused");
  }
  for (const std::string& job : standing.paused_jobs) {
    add("job " + job + " paused");
  }
  for (const auto& [job, workers] : standing.workers) {
    add("job " + job + " with " + std::to_string(workers) + " workers");
  }
  if (!standing.log_level.empty()) {
    add("log level " + standing.log_level);
  }
  return text.empty() ? "as the files say" : text;
}

}  // namespace

void HostCommandHandler::take(const fleet::HostSteering& standing) {
  parts_.jobs.steer([standing](const config::JobConfig& job) {
    const auto workers = standing.workers.find(job.name);
    const auto queues = work::queues_of(job);
    const bool paused = std::any_of(queues.begin(), queues.end(), [&](const config::WeightedQueue& queue) {
      return standing.pauses(job.name, queue.name);
    });
    return work::JobSteering{.paused = paused, .workers = workers == standing.workers.end() ? 0 : workers->second};
  });
  parts_.log.info("steered by operators", {{"now", text_of(standing)}});
  log_at(standing.log_level.empty() ? parts_.reporter.identity().file_log_level : standing.log_level);
}

void HostCommandHandler::log_at(const std::string& level) {
  for (const NamedLevel& known : kLevels) {
    if (known.name == level) {
      parts_.log.set(known.level, static_cast<observe::LogFormat>(parts_.config.log_format));
      parts_.reporter.set_log_level(level);
    }
  }
}

Answer HostCommandHandler::obey(const Directive& order) {
  Answer answer{.directive = order.id};
  const auto refuse = [&answer](std::string why) {
    answer.text = std::move(why);
    return answer;
  };
  if (const auto flaw = fleet::flaw_of(order)) {
    return refuse(*flaw);
  }
  const fleet::HostRecord& self = parts_.reporter.identity();
  if (order.target == fleet::Target::host && !self.is_called(order.name)) {
    return refuse("this host is " + self.label() + ", not " + order.name);
  }
  switch (order.wish) {
    case Wish::drain:
      answer.text = drain();
      break;
    case Wish::reload:
      answer.text = reload();
      break;
    case Wish::cancel_running:
      if (!parts_.jobs.cancel(order.name)) {
        return refuse("no handler works on message " + order.name + " here");
      }
      answer.text = "the stop token of message " + order.name + " is set";
      break;
    case Wish::pause:
    case Wish::scale:
    case Wish::log_level:
      return refuse(order.text() + " is no order: it is given on the board of the queue");
  }
  answer.done = true;
  parts_.log.info("steered", {{"order", order.text()}, {"by", order.by}, {"result", answer.text}});
  return answer;
}

std::string HostCommandHandler::drain() { return parts_.events.ask_drain() ? "draining" : "it drains already"; }

std::string HostCommandHandler::reload() {
  parts_.events.signal(SIGHUP);
  return "reloading; its log says what came of it";
}

void HostCommandHandler::look_by(std::function<void()> look) {
  const MutexLock lock(mutex_);
  look_ = std::move(look);
}

void HostCommandHandler::look_now() {
  std::function<void()> look;
  {
    const MutexLock lock(mutex_);
    look = look_;
  }
  if (look) {
    look();
  }
}

}  // namespace sluice::runtime
