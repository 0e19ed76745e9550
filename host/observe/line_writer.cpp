#include "host/observe/line_writer.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/guard.hpp"

namespace sluice::observe {
namespace {

constexpr int kStopLookMilliseconds = 50;
constexpr std::size_t kFileChunk = std::size_t{1} << 16;

std::size_t chunk_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? kFileChunk : PIPE_BUF;
}

/// Whole lines, as far as they fit, because others write to the same place.
std::size_t next_size(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return text.size();
  }
  const std::size_t line_end = text.rfind('\n', limit - 1);
  return line_end == std::string_view::npos ? limit : line_end + 1;
}

}  // namespace

LineWriter::LineWriter(int descriptor)
    : descriptor_(descriptor),
      chunk_(chunk_of(descriptor)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

LineWriter::~LineWriter() { static_cast<void>(flush(kLastWait)); }

bool LineWriter::put(std::string_view lines) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() + lines.size() > kRoom && SLUICE_GUARD(log_bounded)) {
      return false;
    }
    waiting_ += lines;
  }
  changed_.notify_all();
  return true;
}

bool LineWriter::flush(Duration limit) {
  const SteadyTime end = std::chrono::steady_clock::now() + limit;
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, end, [this]() SLUICE_NO_TSA { return waiting_.empty() && !writing_; });
}

void LineWriter::run(const std::stop_token& stop) {
  std::string batch;
  while (true) {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      changed_.notify_all();
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return !waiting_.empty(); })) {
        return;
      }
      batch.clear();
      batch.swap(waiting_);
      writing_ = true;
    }
    write(batch, stop);
  }
}

void LineWriter::write(std::string_view text, const std::stop_token& stop) const {
  while (!text.empty()) {
    pollfd ready{descriptor_, POLLOUT, 0};
    const int count = ::poll(&ready, 1, kStopLookMilliseconds);
    if (count == 0 || (count < 0 && errno == EINTR)) {
      if (stop.stop_requested()) {
        return;
      }
      continue;
    }
    const ssize_t written = ::write(descriptor_, text.data(), next_size(text, chunk_));
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return;
    }
  }
}

}  // namespace sluice::observe
