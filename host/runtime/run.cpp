#include "host/runtime/run.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/drain_certificate.hpp"
#include "host/runtime/host.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/host_name.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/init_process.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/signal_watcher.hpp"

namespace sluice::runtime {
namespace {

constexpr int kClean = 0;
constexpr int kAbandoned = 75;
constexpr int kConfiguration = 78;

int refuse(const std::string& why) {
  std::fprintf(stderr, "sluice: %s\n", why.c_str());
  return kConfiguration;
}

int refuse(const std::vector<config::ConfigError>& errors) {
  for (const config::ConfigError& error : errors) {
    std::fprintf(stderr, "sluice: %s\n", error.text().c_str());
  }
  return kConfiguration;
}

/// A second signal while there is no host yet: nothing was claimed, and what the main thread is in, such as the
/// start-up code of a plugin, may never return.
void end_at_once(DrainReportFile& report) {
  DrainCertificate nothing;
  nothing.clean = true;
  if (auto written = report.write(nothing); !written) {
    std::fprintf(stderr, "sluice: %s\n", written.error().message().c_str());
  }
  std::fprintf(stderr, "%s\n", nothing.text().c_str());
  std::fflush(nullptr);
  std::_Exit(kClean);
}

/// Everything of a run, made in the order in which it is needed, ended in the reverse.
class Runner {
 public:
  Runner(const RunOptions& options, HostEvents& events, SignalWatcher& watcher)
      : options_(options), events_(events), watcher_(watcher) {}

  int run(DrainReportFile& report);

 private:
  int serve(const config::HostConfig& config, const std::vector<JobPlan>& plans, plugin::PluginRegistry& plugins,
            DrainReportFile& report);
  int finish(Host& host, const HostQueues& queues, DrainReportFile& report);

  const RunOptions& options_;
  HostEvents& events_;
  SignalWatcher& watcher_;
  SystemClock clock_;
  SeededRandom random_;
};

int Runner::run(DrainReportFile& report) {
  const auto loaded = config::load_host_config(options_.config_file, config::process_environment());
  if (const auto* errors = std::get_if<std::vector<config::ConfigError>>(&loaded)) {
    return refuse(*errors);
  }
  const auto& config = std::get<config::HostConfig>(loaded);
  plugin::PluginRegistry plugins;
  const auto planned = load_job_plans(config, plugins);
  if (const auto* errors = std::get_if<std::vector<config::ConfigError>>(&planned)) {
    return refuse(*errors);
  }
  const auto& plans = std::get<std::vector<JobPlan>>(planned);
  if (plans.empty()) {
    std::string patterns;
    for (const std::string& pattern : config.jobs) {
      patterns += (patterns.empty() ? "" : ", ") + pattern;
    }
    return refuse(
        "no job to run: no file matches " + patterns +
        "; write one, with [job], queue = \"...\" and handler = \"...\" ('sluice plugins' lists the handlers), "
        "or mend [host] jobs in " +
        config.file);
  }
  return serve(config, plans, plugins, report);
}

int Runner::serve(const config::HostConfig& config, const std::vector<JobPlan>& plans, plugin::PluginRegistry& plugins,
                  DrainReportFile& report) {
  observe::Log log(static_cast<observe::LogLevel>(config.log_level),
                   static_cast<observe::LogFormat>(config.log_format));
  for (const plugin::RejectedPlugin& rejected : plugins.rejected()) {
    log.warn("plugin not used", {{"file", rejected.file}, {"why", rejected.why}});
  }
  observe::Metrics metrics;
  HostQueues queues(config, clock_, random_, &metrics);
  const std::string name = host_name(config);
  Host host({config, name, queues, options_.explain, plugins, log, metrics, clock_, random_});
  events_.on_hard_stop([&host] { host.hard_stop(); });
  if (auto started = host.start(plans, events_); !started) {
    watcher_.stop();
    return refuse(started.error().message());
  }
  if (!events_.terminating()) {
    log.info("running", {{"host", name},
                         {"jobs", std::to_string(plans.size())},
                         {"plugins", std::to_string(plugins.plugins().size())}});
  }
  host.run(events_, options_.until_empty, options_.progress);
  const int status = finish(host, queues, report);
  watcher_.stop();  // No signal may reach the host once it is gone.
  return status;
}

int Runner::finish(Host& host, const HostQueues& queues, DrainReportFile& report) {
  const SteadyTime begin = clock_.steady_now();
  const JobSet::Drained drained = host.drain();
  DrainCertificate certificate;
  certificate.jobs = drained.jobs;
  certificate.clean = drained.clean;
  certificate.took = clock_.steady_now() - begin;
  certificate.dynamodb = queues.cost();
  if (auto written = report.write(certificate); !written) {
    std::fprintf(stderr, "sluice: %s\n", written.error().message().c_str());
  }
  std::fprintf(stderr, "%s\n", certificate.text().c_str());
  const int status = drained.clean ? kClean : kAbandoned;
  if (!drained.clean || host.waits_for_store() || events_.hard_stop_requested()) {
    // A handler or a call of the store may be under way, whose thread uses what destructors would take away: they would
    // wait for it.
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}

}  // namespace

int run_host(const RunOptions& options) {
  // Blocked before the fork below, so that a signal in the first moments is kept for the host and not lost.
  SignalWatcher::block_signals();
  return run_below_init([&options] {
    HostEvents events;
    SignalWatcher watcher([&events](int signal) { events.signal(signal); });
    watcher.start();
    auto report = DrainReportFile::open(options.drain_report);
    if (!report) {
      return refuse(report.error().message());
    }
    events.on_hard_stop([&report] { end_at_once(*report); });
    return Runner(options, events, watcher).run(*report);
  });
}

}  // namespace sluice::runtime
