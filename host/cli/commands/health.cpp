#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/observe/health_probe.hpp"

namespace sluice::cli {

namespace {

constexpr int kHealthy = 200;
constexpr std::chrono::seconds kPatience(3);

Exit health(const Arguments& arguments, Console& console) {
  SLUICE_TRY(host, load_host_file(arguments));
  if (host->http_listen.empty()) {
    return {kExitConfiguration, host->file + " has no [http] listen, so that no host of it can be asked; set it"};
  }
  const auto answer = observe::probe(host->http_listen, arguments.has("ready") ? "/readyz" : "/healthz", kPatience);
  if (answer.has_error()) {
    return Exit::failure(answer.error());
  }
  console.out(answer->text);
  return answer->status == kHealthy ? Exit::ok() : Exit::failure("the host says " + std::to_string(answer->status));
}

}  // namespace

Command health_command() {
  return {
      .name = "health",
      .group = "Host",
      .summary = "Ask the host of this machine whether it is well",
      .usage = "[--ready] [--config FILE]",
      .description =
          "For a container's HEALTHCHECK and for scripts: asks the address of [http] listen for /healthz, prints the "
          "answer, and exits 0 when it is 200, else 1. Unwell is a host that has lost so many workers to handlers "
          "which "
          "do not return that no more take their place; it has to be restarted.",
      .flags = {{.name = "ready", .value = {}, .help = "ask for /readyz: 503 while it starts or drains"},
                config_flag()},
      .examples =
          "sluice health\n"
          "sluice health --ready --config /etc/sluice/host.toml",
      .run = health,
  };
}

}  // namespace sluice::cli
