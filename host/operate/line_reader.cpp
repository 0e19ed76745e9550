#include "host/operate/line_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace sluice::operate {

namespace {

constexpr std::size_t kReadBytes = 256UL * 1024;
constexpr int kForEver = -1;

}  // namespace

bool LineReader::passed_over() {
  const void* found = std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_);
  passing_ = found == nullptr;
  scanned_ = passing_ ? end_ : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) + 1;
  begin_ = scanned_;
  return !passing_;
}

LineReader::Status LineReader::refuse_line() {
  passing_ = true;
  return Status::too_long;
}

bool LineReader::line_buffered() {
  if (passing_ && !passed_over()) {
    return false;
  }
  const void* found = std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_);
  scanned_ = found == nullptr ? end_ : static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
  return found != nullptr;
}

LineReader::Wait LineReader::wait(int milliseconds) const {
  std::array<pollfd, 2> watched{pollfd{input_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  const int count = ::poll(watched.data(), watched.size(), milliseconds);
  if (watched[1].revents != 0) {
    return Wait::stopped;
  }
  return count > 0 ? Wait::readable : Wait::paused;
}

bool LineReader::fill() {
  if (begin_ > 0 && begin_ == end_) {
    begin_ = end_ = scanned_ = 0;
  } else if (begin_ > 0 && buffer_.size() - end_ < kReadBytes) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) {
    buffer_.resize(end_ + kReadBytes);
  }
  const auto count = ::read(input_, buffer_.data() + end_, kReadBytes);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) {
    return true;
  }
  if (count <= 0) {
    failure_ = count < 0 ? errno : 0;
    ended_ = true;
    return false;
  }
  end_ += static_cast<std::size_t>(count);
  return true;
}

LineReader::Status LineReader::next(std::string_view& line) {
  while (!line_buffered()) {
    if (ended_) {
      if (failure_ != 0) {
        errno = failure_;
        return Status::failed;
      }
      if (begin_ == end_) {
        return Status::end;
      }
      if (end_ - begin_ > max_line_) {
        return refuse_line();
      }
      line = std::string_view(buffer_).substr(begin_, end_ - begin_);  // the last line needs no line break
      begin_ = scanned_ = end_;
      return Status::line;
    }
    if (end_ - begin_ > max_line_) {
      return refuse_line();
    }
    const Wait waited = wait(kForEver);
    if (waited == Wait::stopped) {
      return Status::stopped;
    }
    if (waited == Wait::readable) {
      fill();
    }
  }
  if (scanned_ - begin_ > max_line_) {
    return refuse_line();
  }
  line = std::string_view(buffer_).substr(begin_, scanned_ - begin_);
  begin_ = ++scanned_;
  return Status::line;
}

bool LineReader::ready(Duration patience) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  while (!line_buffered()) {
    if (ended_ || end_ - begin_ > max_line_) {
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
