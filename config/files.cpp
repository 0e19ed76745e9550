#include "config/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

namespace sluice::config {

namespace {

constexpr std::size_t kMaxFile = 1024 * 1024;
constexpr std::size_t kMaxJobFiles = 1024;

/// Closes a descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

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

bool matches(const std::string& name, const std::string& pattern) {
  std::size_t at = 0;
  std::size_t i = 0;
  std::size_t star = std::string::npos;
  std::size_t star_at = 0;
  while (at < name.size()) {
    if (i < pattern.size() && pattern[i] == '*') {
      star = i++;
      star_at = at;
    } else if (i < pattern.size() && (pattern[i] == '?' || pattern[i] == name[at])) {
      ++i;
      ++at;
    } else if (star != std::string::npos) {
      i = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  while (i < pattern.size() && pattern[i] == '*') {
    ++i;
  }
  return i == pattern.size();
}

MatchedFiles match_files(const HostConfig& host) {
  const std::string& host_file = host.file;
  std::set<std::string> found;
  std::vector<ConfigError> errors;
  for (std::size_t index = 0; index < host.jobs.size(); ++index) {
    const std::filesystem::path path(host.jobs[index]);
    const std::string name = path.filename().string();
    if (name.find_first_of("*?") == std::string::npos) {
      const std::string file = path.lexically_normal().string();
      if (std::error_code ignored; std::filesystem::exists(file, ignored)) {
        found.insert(file);
      } else {
        errors.push_back({index < host.job_places.size() ? host.job_places[index] : Place{host_file},
                          "'jobs' names " + file + ", and there is no such file"});
      }
      continue;
    }
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    std::error_code failure;
    std::filesystem::directory_iterator entry(folder, failure);
    for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
      const std::string candidate = entry->path().filename().string();
      if ((candidate[0] != '.' || name[0] == '.') && matches(candidate, name)) {
        found.insert((path.parent_path() / candidate).lexically_normal().string());
      }
    }
    if (failure && failure != std::errc::no_such_file_or_directory) {
      errors.push_back({{host_file}, "cannot list '" + folder.string() + "' for jobs: " + failure.message()});
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

std::string resolve_path(const std::string& path, const std::string& file) {
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

}  // namespace sluice::config
