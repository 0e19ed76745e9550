#include "host/runtime/run.hpp"

#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/mend.hpp"
#include "host/cli/queue_place.hpp"

namespace sluice::cli {

namespace {

Exit run(const Arguments& arguments, Console& console) {
  SLUICE_TRY(host_file, find_host_file(arguments));
  runtime::RunOptions options;
  options.config_file = *host_file;
  options.explain = [&arguments](const std::string& queue, const Error& error) {
    return error.message() + mend_of(error, options_of_host_file(arguments, queue));
  };
  options.until_empty = arguments.has("until-empty");
  options.progress = arguments.has("progress");
  options.allow_insecure_files = arguments.has(kAllowInsecureFiles);
  options.drain_report = arguments.get("drain-report");
  console.flush();
  // The host says for itself what went wrong.
  return {runtime::run_host(options), std::vector<std::string>()};
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .group = "Host",
      .summary = "Run the host: work off the queues of all jobs",
      .usage = "[--until-empty] [--progress] [--drain-report FILE] [--allow-insecure-files] [--config FILE]",
      .description =
          "SIGTERM or SIGINT drains: nothing more is claimed, what has not begun is put back, and running handlers "
          "have [host] drain_timeout to finish. A second one stops at once. SIGHUP reloads the job files. The log goes "
          "to standard error; its last line says what became of every claimed message.",
      .flags = {{.name = "until-empty",
                 .value = {},
                 .help = "end when no queue has anything due or in flight; delayed messages stay"},
                {.name = "progress", .value = {}, .help = "show the totals on standard error each second"},
                {.name = "drain-report", .value = "FILE", .help = "write the last line's figures there too, as JSON"},
                allow_insecure_files_flag(),
                config_flag()},
      .examples =
          "sluice run\n"
          "sluice run --config etc/host.toml --until-empty --drain-report drain.json",
      .run = run,
  };
}

}  // namespace sluice::cli
