#include "base/process_mark.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice {
namespace {

std::string read_mark_of_here() {
  constexpr std::size_t kBootDigits = 8;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code failed;
  const std::string space = std::filesystem::read_symlink("/proc/self/ns/pid", failed).string();  // "pid:[4026531836]"
  const std::size_t at = space.find('[') + 1;
  return boot.empty() || at == 0 ? std::string()
                                 : boot.substr(0, kBootDigits) + "-" + space.substr(at, space.rfind(']') - at) + "-";
}

/// Of this boot and this namespace of process ids, read once; empty where the kernel does not tell.
const std::string& mark_of_here() {
  static const std::string mark = read_mark_of_here();
  return mark;
}

/// When it began, in ticks since the boot; empty for one that is not there, or has ended and waits for its parent to
/// take note. Of /proc/PID/stat, from the state on, which follows the parenthesised command name: proc(5).
std::string start_of(std::int64_t process) {
  constexpr int kToStart = 19;
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.rfind(')'), line.size() - 1) + 1));
  std::string field;
  bool ended = false;
  for (int i = 0; i <= kToStart && rest >> field; ++i) {
    ended = ended || (i == 0 && (field == "Z" || field == "X"));
  }
  return rest && !ended ? field : std::string();
}

}  // namespace

std::string process_mark(std::int64_t process) {
  const std::string& here = mark_of_here();
  const std::string start = start_of(process);
  return here.empty() || start.empty() ? std::string() : here + start;
}

ProcessLife life_of(std::int64_t process, const std::string& mark) {
  const std::string& here = mark_of_here();
  if (here.empty() || !mark.starts_with(here) || process <= 0) {
    return ProcessLife::unknown;
  }
  std::error_code failed;
  const std::filesystem::path entry("/proc/" + std::to_string(process));
  if (std::filesystem::exists(entry, failed)) {
    return here + start_of(process) == mark ? ProcessLife::alive : ProcessLife::gone;
  }
  // Where /proc hides the processes of other users, it may live all the same.
  return ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH ? ProcessLife::gone : ProcessLife::unknown;
}

}  // namespace sluice
