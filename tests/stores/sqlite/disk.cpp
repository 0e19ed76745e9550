#include "tests/stores/sqlite/disk.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <stdexcept>

#include "base/mutex.hpp"

namespace sluice::test {

namespace {

struct State {
  Mutex mutex;
  Condition changed;
  bool watched SLUICE_GUARDED_BY(mutex) = false;
  bool hangs SLUICE_GUARDED_BY(mutex) = false;
  int hanging SLUICE_GUARDED_BY(mutex) = 0;
  int error SLUICE_GUARDED_BY(mutex) = 0;
  std::string unreadable SLUICE_GUARDED_BY(mutex);  ///< how its name ends; empty: none
  int good_reads SLUICE_GUARDED_BY(mutex) = 0;      ///< before the first one that fails
  int read_error SLUICE_GUARDED_BY(mutex) = 0;
  bool failed_reads SLUICE_GUARDED_BY(mutex) = false;
  std::map<std::string, int> flushes SLUICE_GUARDED_BY(mutex);
};

State& state() {
  static State one;
  return one;
}

std::string name_of(int file) {
  std::array<char, 4096> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t size = ::readlink(link.c_str(), name.data(), name.size());
  return size < 0 ? std::string() : std::string(name.data(), static_cast<std::size_t>(size));
}

ssize_t read(int file, void* to, std::size_t size, off_t place) {
  State& disk = state();
  {
    const MutexLock lock(disk.mutex);
    if (disk.watched && !disk.unreadable.empty() && name_of(file).ends_with(disk.unreadable) &&
        disk.good_reads-- <= 0) {
      disk.failed_reads = true;
      errno = disk.read_error;
      return -1;
    }
  }
  return ::syscall(SYS_pread64, file, to, size, place);
}

int flush(int file, long call) {
  State& disk = state();
  {
    const MutexLock lock(disk.mutex);
    if (disk.watched) {
      ++disk.flushes[name_of(file)];
      ++disk.hanging;
      disk.changed.notify_all();
      disk.changed.wait_until(disk.mutex, SteadyTime::max(),
                              [&disk]() SLUICE_REQUIRES(disk.mutex) { return !disk.hangs; });
      --disk.hanging;
      if (disk.error != 0) {
        errno = disk.error;
        return -1;
      }
    }
  }
  return static_cast<int>(::syscall(call, file));
}

}  // namespace

Disk::Disk() {
  const MutexLock lock(state().mutex);
  state().watched = true;
  state().flushes.clear();
}

Disk::~Disk() {
  let_go();
  const MutexLock lock(state().mutex);
  state().watched = false;
  state().error = 0;
  state().unreadable.clear();
}

void Disk::fail_reads(const std::string& suffix, int good_reads, int error) {
  const MutexLock lock(state().mutex);
  state().unreadable = suffix;
  state().good_reads = good_reads;
  state().read_error = error;
  state().failed_reads = false;
}

bool Disk::failed_reads() const {
  const MutexLock lock(state().mutex);
  return state().failed_reads;
}

int Disk::flushes(const std::string& suffix) const {
  const MutexLock lock(state().mutex);
  int count = 0;
  for (const auto& [name, flushes] : state().flushes) {
    count += name.ends_with(suffix) ? flushes : 0;
  }
  return count;
}

void Disk::fail(int error) {
  const MutexLock lock(state().mutex);
  state().error = error;
}

void Disk::hang() {
  const MutexLock lock(state().mutex);
  state().hangs = true;
}

void Disk::let_go() {
  const MutexLock lock(state().mutex);
  state().hangs = false;
  state().changed.notify_all();
}

int Disk::hanging() const {
  const MutexLock lock(state().mutex);
  return state().hanging;
}

void Disk::wait_until_one_hangs() {
  const MutexLock lock(state().mutex);
  state().changed.wait_until(state().mutex, SteadyTime::max(),
                             []() SLUICE_NO_TSA { return state().hangs && state().hanging > 0; });
}

}  // namespace sluice::test

extern "C" {
int fdatasync(int file) { return sluice::test::flush(file, SYS_fdatasync); }
ssize_t pread64(int file, void* to, std::size_t size, off_t place) { return sluice::test::read(file, to, size, place); }
int fsync(int file) { return sluice::test::flush(file, SYS_fsync); }
}
