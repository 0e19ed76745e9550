#include "config/files.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "config/reader.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kMaxFile = 1024 * 1024;
constexpr std::size_t kMaxJobFiles = 1024;

std::vector<ConfigError> one_error(const std::string& file, std::string message) {
  return {{{file}, std::move(message)}};
}

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Parsed<std::string> read_config_file(const std::string& file) {
  // Non-blocking, so that a FIFO without a writer is an error instead of a host that hangs.
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
    return one_error(file, errno == ENOENT ? "there is no such file" : "cannot be read: " + reason(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return one_error(file, "is a folder, not a file");
  }
  if (!S_ISREG(status.st_mode)) {
    return one_error(file, "is not a regular file");
  }
  std::string text(kMaxFile + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(descriptor.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return one_error(file, "cannot be read: " + reason(errno));
    }
    if (got == 0) {
      text.resize(size);
      return text;
    }
    size += static_cast<std::size_t>(got);
  }
  return one_error(file, "is larger than 1 MiB, the limit for a configuration file");
}

MatchedFiles match_files(const HostConfig& host) {
  const std::string& host_file = host.file;
  std::set<std::string> found;
  std::vector<ConfigError> errors;
  for (std::size_t index = 0; index < host.jobs.size(); ++index) {
    const std::filesystem::path path(host.jobs[index]);
    const std::string name = path.filename().string();
    const Place named = index < host.job_places.size() ? host.job_places[index] : Place{host_file};
    if (name.find_first_of("*?") == std::string::npos) {
      const std::string file = path.lexically_normal().string();
      if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
        found.insert(file);
      } else {
        errors.push_back({named, "'jobs' names " + file + ", and there is no such file"});
      }
      continue;
    }
    const std::string pattern = boost::replace_all_copy(name, "[", "[[]");  // which stands for itself
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code failure;
    std::filesystem::directory_iterator entry(folder, failure);
    for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
      const std::string candidate = entry->path().filename().string();
      if (::fnmatch(pattern.c_str(), candidate.c_str(), FNM_NOESCAPE | FNM_PERIOD) == 0) {
        found.insert((path.parent_path() / candidate).lexically_normal().string());
      }
    }
    if (failure && failure != std::errc::no_such_file_or_directory) {
      errors.push_back({named, "cannot list '" + folder.string() + "' for jobs: " + failure.message()});
    }
  }
  if (found.size() > kMaxJobFiles) {
    errors.push_back(
        {{host_file},
         "'jobs' names " + std::to_string(found.size()) + " files; the limit is " + std::to_string(kMaxJobFiles)});
    found.clear();
  }
  return {{found.begin(), found.end()}, std::move(errors)};
}

std::string installed_plugin_dir() {
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  const std::filesystem::path folder = program.parent_path().parent_path() / "lib/sluice/plugins";
  return !code && std::filesystem::is_directory(folder, code) ? folder.string() : std::string();
}

std::vector<std::string> plugin_folders(const HostConfig& host) {
  const std::string usual = resolve_path(HostConfig().plugin_dirs.front(), host.file);
  std::vector<std::string> folders = host.plugin_dirs;
  std::error_code ignored;
  if (!host.names_plugin_dirs && folders.size() > 1 && folders.front() == usual &&
      !std::filesystem::exists(usual, ignored)) {
    folders.erase(folders.begin());
  }
  return folders;
}

std::string resolve_path(const std::string& path, const std::string& file) {
  return path.empty() ? "" : (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

namespace {

// As the kernel's own limit on the way through links.
constexpr int kLinkLimit = 40;
constexpr const char* kWayOut = ", or allow it with --allow-insecure-files";

/// The private group that many systems give each user, which nobody else is in: the owner's, or this process's own, as
/// the fsGroup of a pod is.
bool is_private_group(gid_t group, uid_t owner) {
  if (group != owner && group != ::geteuid()) {
    return false;
  }
  std::array<char, 16384> buffer{};
  struct group entry {};
  struct group* found = nullptr;
  const int failed = ::getgrgid_r(group, &entry, buffer.data(), buffer.size(), &found);
  return failed == 0 && (found == nullptr || found->gr_mem[0] == nullptr);
}

bool is_read_only(const std::string& path) {
  struct statvfs system {};
  return ::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_RDONLY) != 0;
}

std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", mode & 07777U);
  return text.data();
}

/// What is wrong with one file, folder or link, as text that follows its name; nothing when it is in order.
std::optional<std::string> complaint(const struct stat& status) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return " belongs to user " + std::to_string(status.st_uid) + ", who may change what this host (user " +
           std::to_string(::geteuid()) + ") does: run as that user, chown it, mount it read-only" + kWayOut;
  }
  if (S_ISLNK(status.st_mode) || (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0)) {
    return std::nullopt;
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return " may be written by everybody (mode " + mode_text(status.st_mode) + "): chmod go-w it" + kWayOut;
  }
  if ((status.st_mode & S_IWGRP) != 0 && !is_private_group(status.st_gid, status.st_uid)) {
    return " may be written by group " + std::to_string(status.st_gid) + " (mode " + mode_text(status.st_mode) +
           "): chmod g-w it" + kWayOut;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> distrust(const std::string& file) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(file, failed);
  std::deque<std::filesystem::path> ahead(whole.begin(), whole.end());
  std::filesystem::path here;
  for (int links = 0; !ahead.empty() && links <= kLinkLimit;) {
    const std::filesystem::path next = here / ahead.front();
    ahead.pop_front();
    struct stat status {};
    if (::lstat(next.c_str(), &status) != 0) {
      return std::nullopt;
    }
    if (const auto wrong = complaint(status); wrong && !is_read_only(next.string())) {
      const std::string it = next == whole ? "it" : (S_ISDIR(status.st_mode) ? "the folder " : "") + next.string();
      return "is not used, because " + it + *wrong;
    }
    if (!S_ISLNK(status.st_mode)) {
      here = next;
      continue;
    }
    ++links;
    const std::filesystem::path target = std::filesystem::read_symlink(next, failed);
    ahead.insert(ahead.begin(), target.begin(), target.end());
    if (target.is_absolute()) {
      here.clear();
    }
  }
  return std::nullopt;
}

namespace {

void append(std::vector<ConfigError>& errors, std::vector<ConfigError> more) {
  errors.insert(errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

template <typename Config>
Parsed<Config> load(const std::string& file, const Environment& environment,
                    Parsed<Config> (*parse)(const std::string&, const std::string&, const Environment&)) {
  SLUICE_TRY(text, read_config_file(file));
  return parse(*text, file, environment);
}

/// "jobs.d/a.toml:2", or only the file where the name is the file's.
std::string line_of(const Place& place) {
  return place.line == 0 ? place.file : place.file + ":" + std::to_string(place.line);
}

/// The name makes the deduplication id by which one message is sent, however many hosts and files there are.
void check_schedules(const JobConfig& job, std::map<std::string, Place>& names, std::vector<ConfigError>& errors) {
  for (const ScheduleConfig& schedule : job.schedules) {
    const auto [first, added] = names.emplace(schedule.name, schedule.place);
    if (!added) {
      errors.push_back({schedule.place, "the schedule name '" + schedule.name + "' is taken by " +
                                            line_of(first->second) + "; give one of them another name"});
    }
  }
}

/// What only shows when a job is seen beside the host and the other jobs.
std::vector<ConfigError> check_together(const std::vector<JobConfig>& jobs, const HostConfig& host) {
  std::vector<ConfigError> errors;
  std::map<std::string, Place> names;
  std::map<std::string, Place> schedules;
  for (const JobConfig& job : jobs) {
    check_schedules(job, schedules, errors);
    const auto [first, added] = names.emplace(job.name, job.name_place);
    if (!added) {
      errors.push_back({job.name_place, "the job name '" + job.name + "' is taken by " + line_of(first->second) +
                                            "; give one of them another 'name' in [job]"});
    }
    for (const std::string& queue : job.queue_names()) {
      if (!outbox_named(queue) && host.store_of(queue).kind == StoreKind::dynamodb &&
          table_complaint(host.queue(queue).table) != nullptr) {
        errors.push_back({job.queue_place, "the queue's name '" + queue +
                                               "' cannot be a table's, which has 3 to 255 characters; set 'table' in "
                                               "[queues." +
                                               queue + "] of " + host.file});
      }
    }
  }
  return errors;
}

}  // namespace

Parsed<HostConfig> load_host_config(const std::string& file, const Environment& environment) {
  return load(file, environment, parse_host_config);
}

JobFiles load_job_files(const HostConfig& host, const Environment& environment) {
  JobFiles result;
  MatchedFiles matched = match_files(host);
  result.errors = std::move(matched.errors);
  for (const std::string& file : matched.files) {
    if (auto job = load(file, environment, parse_job_config)) {
      result.jobs.push_back(std::move(*job));
    } else {
      append(result.errors, job.error());
    }
  }
  append(result.errors, check_together(result.jobs, host));
  append(result.errors, join_outboxes(result.jobs, host));
  return result;
}

}  // namespace sluice::config
