#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <variant>

#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/json_text.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

using queue::QueueStats;
using queue::QueueType;

struct BothHalves {
  QueueStats standard;
  QueueStats dlq;
};

OrExit<BothHalves> count(QueueSession& session, const std::string& name) {
  const auto standard = session.store().stats({name, QueueType::standard}, session.deadline());
  if (standard.has_error()) {
    return Exit::failure(standard.error());
  }
  const auto dlq = session.store().stats({name, QueueType::dlq}, session.deadline());
  if (dlq.has_error()) {
    return Exit::failure(dlq.error());
  }
  return BothHalves{*standard, *dlq};
}

std::string seconds_text(Duration duration) {
  const double seconds = std::chrono::duration<double>(std::max(duration, Duration::zero())).count();
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 3);
  return {text.data(), end.ptr};
}

void write(JsonText& json, const std::string& name, const BothHalves& halves, WallTime now) {
  const QueueStats& standard = halves.standard;
  json.begin_object();
  json.member("queue", name);
  json.member("total", standard.total());
  json.member("ready", standard.ready);
  json.member("in_flight", standard.in_flight);
  json.member("delayed", standard.delayed);
  json.member("dlq", halves.dlq.total());
  json.key("oldest_ready_seconds");
  if (standard.oldest_ready) {
    json.word(seconds_text(now - *standard.oldest_ready));
  } else {
    json.null();
  }
  json.end_object();
}

OrExit<std::set<std::string>> configured_queues(const config::HostConfig& host) {
  const auto jobs = config::load_job_configs(host, config::process_environment());
  if (const auto* errors = std::get_if<std::vector<config::ConfigError>>(&jobs)) {
    return configuration_exit(*errors);
  }
  std::set<std::string> names;
  for (const auto& [name, settings] : host.queues) {
    names.insert(name);
  }
  for (const auto& job : std::get<std::vector<config::JobConfig>>(jobs)) {
    names.insert(job.queue);
  }
  return names;
}

/// All of them as an array. A queue that cannot be counted is named on standard error and left out.
Exit count_all(QueueSession& session, Console& console) {
  const auto names = configured_queues(session.host());
  if (names.has_error()) {
    return names.error();
  }
  JsonText json(JsonText::Layout::indented);
  std::vector<std::string> failures;
  json.begin_array();
  for (const auto& name : *names) {
    const auto counted = count(session, name);
    if (counted.has_value()) {
      write(json, name, *counted, session.clock().wall_now());
    } else {
      failures.push_back(counted.error().lines().front());
    }
  }
  json.end_array();
  console.out(json.take_line());
  return failures.empty() ? Exit::ok() : Exit(kExitFailure, std::move(failures));
}

Exit stats(const Arguments& arguments, Console& console) {
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const std::string name = arguments.get("queue");
  if (!arguments.has("queue")) {
    return count_all(*session, console);
  }
  const auto counted = count(*session, name);
  if (counted.has_error()) {
    return counted.error();
  }
  JsonText json(JsonText::Layout::indented);
  write(json, name, *counted, session->clock().wall_now());
  console.out(json.take_line());
  return Exit::ok();
}

}  // namespace

Command stats_command() {
  return {
      .name = "stats",
      .group = "Queues",
      .summary = "Count the messages of one queue, or of all, by state",
      .usage = "[--queue QUEUE] [--config FILE]",
      .description =
          "Prints a JSON object for one queue, an array of them for all that the host file and its jobs "
          "name. total = ready + in_flight + delayed; dlq counts the dead-letter half.",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "the queue [default: all configured ones]"}, config_flag()},
      .examples = "sluice stats --queue orders",
      .run = stats,
  };
}

}  // namespace sluice::cli
