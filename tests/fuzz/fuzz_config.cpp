// Host and job files from arbitrary bytes: every text is answered with a value or with errors that are one line each
// and say where; what is answered with a value keeps the promises of config.hpp.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "config/config.hpp"

namespace {

using namespace sluice::config;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_errors(const std::vector<ConfigError>& errors) {
  require(!errors.empty());
  for (const ConfigError& error : errors) {
    require(!error.message.empty() && error.text().find('\n') == std::string::npos);
    require(error.place.file == "fuzz.toml");
  }
}

void check_host(const Parsed<HostConfig>& parsed) {
  if (!parsed) {
    return check_errors(parsed.error());
  }
  const HostConfig& host = *parsed;
  require(host.drain_timeout >= Duration::zero() && changed_keys(host, host).empty());
  for (const auto& [name, queue] : host.queues) {
    require(!name.empty() && !host.queue(name).table.empty());
    require(queue.visibility_timeout >= std::chrono::seconds(1));
  }
}

void check_job(const Parsed<JobConfig>& parsed) {
  if (!parsed) {
    return check_errors(parsed.error());
  }
  const JobConfig& job = *parsed;
  require(!job.name.empty() && !job.queue.empty() && !job.handler.empty());
  require(job.concurrency >= 1 && job.concurrency <= 1024 && job.timeout > Duration::zero() && job.rate_limit >= 0);
  require(job.retry.max_attempts >= 1 && job.retry.base <= job.retry.max);
  require(job.same_job(job));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Environment environment = [](const std::string& name) -> std::optional<std::string> {
    return name.size() % 2 == 0 ? std::optional<std::string>("value") : std::nullopt;
  };
  check_host(parse_host_config(text, "fuzz.toml", environment));
  check_job(parse_job_config(text, "fuzz.toml", environment));
  if (const auto duration = parse_duration(text)) {
    require(parse_duration(format_duration(*duration)) == duration);
  }
  return 0;
}
