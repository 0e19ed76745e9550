#include "host/operate/line_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace sluice::operate {

namespace {

constexpr std::size_t kReadBytes = 64UL * 1024;
constexpr int kForEver = -1;

}  // namespace

bool LineReader::line_buffered() {
  if (passing_) {
    // It goes as it comes.
    const std::size_t end = buffer_.find('\n', begin_);
    passing_ = end == std::string::npos;
    begin_ = scanned_ = passing_ ? buffer_.size() : end + 1;
  }
  const std::size_t end = buffer_.find('\n', scanned_);
  scanned_ = std::min(end, buffer_.size());
  return end != std::string::npos;
}

LineReader::Wait LineReader::wait(int milliseconds) const {
  std::array<pollfd, 2> watched{pollfd{input_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  const int count = ::poll(watched.data(), watched.size(), milliseconds);
  if (watched[1].revents != 0) {
    return Wait::stopped;
  }
  return count > 0 ? Wait::readable : Wait::paused;
}

void LineReader::fill() {
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  const auto count = ::read(input_, buffer_.data() + before, kReadBytes);
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) {
    failure_ = count < 0 ? errno : 0;
    ended_ = true;
  }
}

LineReader::Status LineReader::next(std::string_view& line) {
  while (!line_buffered() && !too_long() && !ended_) {
    const Wait waited = wait(kForEver);
    if (waited == Wait::stopped) {
      return Status::stopped;
    }
    if (waited == Wait::readable) {
      fill();
    }
  }
  if (too_long()) {
    passing_ = true;
    return Status::too_long;
  }
  const bool whole = scanned_ < buffer_.size();
  if (!whole && failure_ != 0) {
    errno = failure_;
    return Status::failed;
  }
  if (!whole && begin_ == buffer_.size()) {
    return Status::end;
  }
  line = std::string_view(buffer_).substr(begin_, scanned_ - begin_);  // the last line needs no line break
  begin_ = scanned_ = scanned_ + (whole ? 1 : 0);
  return Status::line;
}

bool LineReader::ready(Duration patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  while (!line_buffered()) {
    if (ended_ || too_long()) {
      return true;
    }
    const Wait waited = wait(static_cast<int>(milliseconds));
    if (waited != Wait::readable) {
      return waited == Wait::stopped;
    }
    fill();
  }
  return true;
}

}  // namespace sluice::operate
