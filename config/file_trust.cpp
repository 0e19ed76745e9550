#include "config/file_trust.hpp"

#include <grp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>

namespace sluice::config {

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
           std::to_string(::geteuid()) + ") does: chown it, mount it read-only" + kWayOut;
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

}  // namespace sluice::config
