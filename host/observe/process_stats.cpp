#include "host/observe/process_stats.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace sluice::observe {

namespace {

// Fields of /proc/self/stat counted from the state, which follows the parenthesised command name: proc(5).
constexpr std::size_t kUserTicks = 11;
constexpr std::size_t kSystemTicks = 12;
constexpr std::size_t kThreads = 17;
constexpr std::size_t kStartTicks = 19;
constexpr std::size_t kResidentPages = 21;

std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    return {};
  }
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) {
    fields.push_back(field);
  }
  return fields;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("btime ", 0) == 0) {
      return std::strtod(line.c_str() + 6, nullptr);
    }
  }
  return 0;
}

std::uint64_t count_open_files() {
  std::error_code failed;
  std::filesystem::directory_iterator entries("/proc/self/fd", failed);
  std::uint64_t count = 0;
  while (!failed && entries != std::filesystem::directory_iterator()) {
    ++count;
    entries.increment(failed);
  }
  return count == 0 ? 0 : count - 1;  // the one that looks
}

}  // namespace

ProcessStats read_process_stats() {
  ProcessStats stats;
  const auto fields = stat_fields();
  if (fields.size() > kResidentPages) {
    const auto number = [&fields](std::size_t index) { return std::strtod(fields[index].c_str(), nullptr); };
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    stats.cpu_seconds = (number(kUserTicks) + number(kSystemTicks)) / ticks;
    stats.start_time = boot_time() + number(kStartTicks) / ticks;
    stats.threads = static_cast<std::uint64_t>(number(kThreads));
    stats.resident =
        static_cast<std::uint64_t>(number(kResidentPages)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  stats.open_files = count_open_files();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    stats.open_files_limit = limit.rlim_cur;
  }
  return stats;
}

}  // namespace sluice::observe
