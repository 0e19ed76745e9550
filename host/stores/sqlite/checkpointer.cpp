#include "host/stores/sqlite/checkpointer.hpp"

#include <utility>

namespace sluice::queue::sqlite {

namespace {

// Pages of 4 KiB in the log before they are written to their places: enough that a page of the head or tail, which
// changes with each batch, is written once for many of them.
constexpr std::int64_t kPages = 4'000;
// A log of 256 MiB is not reached unless somebody reads from it all the time.
constexpr std::int64_t kReportedPages = 65'536;
constexpr Duration kReportInterval = std::chrono::minutes(1);

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<Connection> connection, Report report)
    : path_(connection->path()),
      report_(std::move(report)),
      connection_(std::move(connection)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

bool Checkpointer::log_has(std::int64_t pages) {
  const MutexLock lock(mutex_);
  if (pages < seen_) {
    // It has begun anew.
    seen_ = 0;
    rest_is_small_ = false;
  }
  if (std::exchange(rest_is_small_, false)) {
    return true;
  }
  // Looking at a log that a reader keeps costs the more the longer it is, so that it is done once for so many pages.
  if (!wanted_ && pages >= seen_ + kPages) {
    seen_ = pages;
    wanted_ = true;
    changed_.notify_one();
  }
  return false;
}

void Checkpointer::serve(const std::stop_token& stop) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return wanted_; })) {
        return;
      }
    }
    judge(write());
  }
}

Connection::Written Checkpointer::write() {
  const MutexLock lock(connection_mutex_);
  const Connection::Written written = connection_->checkpoint();
  // What is committed lies safe in the log. If there is something wrong with the file, the next commit tells.
  connection_->clear();
  return written;
}

void Checkpointer::judge(const Connection::Written& written) {
  const bool all = written.pages == written.log_pages && written.log_pages > 0;
  {
    const MutexLock lock(mutex_);
    wanted_ = false;
    rest_is_small_ = all;
  }
  const SteadyTime now = machine_now();
  if (!all && written.log_pages >= kReportedPages && now >= next_report_ && report_) {
    next_report_ = now + kReportInterval;
    report_("the log \"" + path_ + "-wal\" has grown to " + std::to_string(written.log_pages / 256) +
            " MiB, because another process keeps reading an old state of the store; end that one: fuser " + path_ +
            "-wal");
  }
}

void Checkpointer::write_and_empty() {
  const MutexLock lock(connection_mutex_);
  connection_->checkpoint();
  connection_->clear();
  connection_->empty_log();
}

Result<void> Checkpointer::write_all() {
  const MutexLock lock(connection_mutex_);
  const Connection::Written written = connection_->checkpoint();
  const bool failed = connection_->failed();
  const Error error = connection_->failure();
  connection_->clear();
  if (failed) {
    return error;
  }
  if (written.log_pages < 0 || written.pages < written.log_pages) {
    return Error(ErrorCode::unavailable,
                 "the log of store \"" + path_ +
                     "\" could not be flushed, and cannot be written to the file while another process reads an old "
                     "state of it; end that one: fuser " +
                     path_ + "-wal");
  }
  return {};
}

}  // namespace sluice::queue::sqlite
