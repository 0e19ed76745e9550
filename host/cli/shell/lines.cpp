#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "host/cli/shell/shell.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kMaxLine = 1024 * 1024;

class PlainLines final : public LineSource {
 public:
  PlainLines(int descriptor, std::function<void(const std::string& prompt)> show)
      : descriptor_(descriptor), show_(std::move(show)) {}

  TypedLine read(const std::string& prompt) override {
    show_(prompt);
    TypedLine line{.kind = TypedLine::Kind::text, .text = {}};
    char byte = 0;
    bool any = false;
    while (take(byte) && byte != '\n') {
      any = true;
      if (line.text.size() < kMaxLine) {
        line.text += byte;
      } else {
        line.kind = TypedLine::Kind::too_long;
      }
    }
    if (!any && byte != '\n') {
      return {};
    }
    if (!line.text.empty() && line.text.back() == '\r') {
      line.text.pop_back();
    }
    return line;
  }

  void remember(const std::string&) override {}

 private:
  bool take(char& byte) const {
    ssize_t count = 0;
    do {
      count = ::read(descriptor_, &byte, 1);
    } while (count < 0 && errno == EINTR);
    return count == 1;
  }

  int descriptor_;
  std::function<void(const std::string& prompt)> show_;
};

constexpr std::size_t kKept = 1000;
constexpr std::size_t kCutAbove = 2 * kKept;
constexpr std::size_t kMaxRemembered = 4096;
constexpr mode_t kOwnerOnly = 0600;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

/// Opens it for its owner alone, whatever mode it has had so far.
int open_owned(const std::string& path, int flags) {
  const int file = ::open(path.c_str(), flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (file >= 0 && ::fchmod(file, kOwnerOnly) != 0) {
    ::close(file);
    return -1;
  }
  return file;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder, ignored)) {
    std::filesystem::create_directories(folder.parent_path(), ignored);
    ::mkdir(folder.c_str(), 0700);
  }
}

void replace(const std::string& path, const std::vector<std::string>& lines) {
  const std::string fresh = path + ".new";
  const int file = open_owned(fresh, O_WRONLY | O_TRUNC);
  if (file < 0) {
    return;
  }
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  std::error_code ignored;
  if (written) {
    std::filesystem::rename(fresh, path, ignored);
  } else {
    std::filesystem::remove(fresh, ignored);
  }
}

}  // namespace

std::unique_ptr<LineSource> make_plain_lines(int descriptor, std::function<void(const std::string& prompt)> show) {
  return std::make_unique<PlainLines>(descriptor, std::move(show));
}

std::optional<HistoryFile> HistoryFile::at_usual_place(const std::string& name) {
  const std::string state = variable("XDG_STATE_HOME");
  // The XDG rules: a relative path is as good as none.
  if (!state.empty() && state.front() == '/') {
    return HistoryFile(state + "/sluice/" + name);
  }
  const std::string home = variable("HOME");
  if (home.empty() || home.front() != '/') {
    return std::nullopt;
  }
  return HistoryFile(home + "/.local/state/sluice/" + name);
}

std::vector<std::string> HistoryFile::load() const {
  std::ifstream file(path_);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.size() <= kMaxRemembered) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.size() <= kKept) {
    return lines;
  }
  const bool grown = lines.size() > kCutAbove;
  lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(kKept));
  if (grown) {
    replace(path_, lines);
  }
  return lines;
}

void HistoryFile::append(const std::string& line) const {
  if (line.empty() || line.size() > kMaxRemembered || line.find('\n') != std::string::npos) {
    return;
  }
  make_folder(std::filesystem::path(path_).parent_path());
  const int file = open_owned(path_, O_WRONLY | O_APPEND);
  if (file < 0) {
    return;
  }
  const std::string text = line + "\n";
  // One write of a file opened for appending is never mixed with another's.
  const auto ignored = ::write(file, text.data(), text.size());
  static_cast<void>(ignored);
  ::close(file);
}

}  // namespace sluice::cli
