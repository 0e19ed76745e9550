#include "host/stores/sqlite/shared_store.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr Duration kStopPatience = std::chrono::seconds(1);
// Who opens a store makes its log at once, and who closes it as the last one lets it go right after the log.
constexpr Duration kLogPatience = std::chrono::seconds(1);

Error removed_log(const std::string& path) {
  return {ErrorCode::unavailable,
          "store \"" + path + "\": \"" + path + "-wal\" or \"" + path +
              "-shm\" was removed while other processes have the store open; what is written now would be lost when "
              "they end: end them by SIGTERM first, which saves what was accepted"};
}

Error moved_store(const std::string& path) {
  return {ErrorCode::queue_missing,
          "store \"" + path +
              "\" is open in other processes, but the file at that path is not theirs: it was moved away, "
              "or another one was put in its place; put it back, or end them by SIGTERM first, which saves what was "
              "accepted"};
}

}  // namespace

void Writer::begin() {
  records.begin();
  keys.begin();
  effects.begin();
}

void Writer::finish() {
  records.finish();
  keys.finish();
}

std::string SharedStore::door() const { return file_.path() + "-door"; }

// SQLite would take the log that lies there for that of whatever file is at the path now, or remove it: with it goes
// what others were told is stored.
Result<void> SharedStore::refuse_another_file() const {
  if (!SLUICE_GUARD(store_watched)) {
    return {};
  }
  const auto entrance =
      file_.number_at_path() || std::filesystem::exists(door()) ? StoreLockFile::open(door()) : nullptr;
  if (!entrance || !entrance->others_stay()) {
    return {};
  }
  // Looked at only now: who stays may have made the file a moment ago.
  const auto at_path = file_.number_at_path();
  const bool another = !at_path || entrance->others_stay_with_other_store(*at_path);
  return another ? Result<void>(moved_store(file_.path())) : Result<void>();
}

Result<void> SharedStore::await_end_of(const std::function<bool()>& log_is_gone) const {
  Connection patience(file_.path());
  patience.wait_for_locks_until(machine_after(kLogPatience));
  for (int tries = 0; log_is_gone(); ++tries) {
    if (!patience.wait_for_lock(tries)) {
      return removed_log(file_.path());
    }
  }
  return {};
}

// Who has the store open while its log is gone writes what that held when he ends, over whatever another has put into a
// new one meanwhile.
Result<void> SharedStore::await_log() const {
  if (!file_.lacks_log() || !SLUICE_GUARD(log_watched)) {
    return {};
  }
  const auto entrance = StoreLockFile::open(door());
  return await_end_of([&] { return entrance && entrance->others_stay() && file_.lacks_log(); });
}

// A process that had a part of the store open when the log was removed makes a new one as it opens the rest. Then there
// is a log, and it is not the one that the others have.
Result<void> SharedStore::await_one_log() const {
  if (!SLUICE_GUARD(log_watched)) {
    return {};
  }
  SLUICE_PASS_ON(
      await_end_of([this] { return lock_file_ && lock_file_->others_stay_with_other_log(file_.numbers()); }));
  return file_.check();
}

Result<void> SharedStore::open_writer() {
  SLUICE_PASS_ON(refuse_another_file());
  SLUICE_PASS_ON(await_log());
  SLUICE_TRY(connection, file_.open_writer());
  writer_ = std::make_unique<Writer>(std::move(*connection), options_.max_body_bytes);
  SLUICE_PASS_ON(writer_->connection->state());
  SLUICE_TRY(second, file_.open_checkpointer());
  lock_file_ = StoreLockFile::open(door());
  if (lock_file_) {
    lock_file_->stay(file_.numbers());
  }
  SLUICE_PASS_ON(await_one_log());
  checkpointer_ = std::make_unique<Checkpointer>(std::move(*second), options_.report);
  flusher_ = std::make_unique<Flusher>(file_, *checkpointer_);
  commits_ = std::make_unique<CommitQueue>(
      clock_,
      CommitQueue::Tools{.file = file_,
                         .connection = *writer_->connection,
                         .checkpointer = *checkpointer_,
                         .flusher = *flusher_,
                         .lock_file = lock_file_.get(),
                         .durable = options_.durable},
      CommitQueue::Hooks{.begin = [this] { writer_->begin(); }, .finish = [this] { writer_->finish(); }});
  return {};
}

Result<void> SharedStore::open_reader() {
  SLUICE_TRY(connection, file_.open_reader());
  Connection& opened = **connection;
  reads_ = std::make_unique<ReadThread>(clock_, file_, std::move(*connection));
  return opened.state();
}

SharedStore::SharedStore(SqliteOptions options, const Clock& clock, Random& random)
    : options_(std::move(options)),
      clock_(clock),
      random_(random),
      file_(options_),
      doorbell_([this](const QueueAddress& address) {
        if (lock_file_) {
          lock_file_->ring(lock_file_->bell_of(address));
        }
      }) {}

void SharedStore::close(std::unique_ptr<SharedStore> store) {
  const SteadyTime limit = SLUICE_GUARD(hung_disk_left) ? machine_after(kStopPatience) : SteadyTime::max();
  const auto stopped = [limit](const auto& thread) {
    if (thread) {
      thread->request_stop();
    }
    return !thread || thread->ended_by(limit);
  };
  // Who hands work on ends before who takes it.
  if (!stopped(store->reads_) || !stopped(store->commits_) || !stopped(store->flusher_) ||
      !stopped(store->checkpointer_)) {
    // On purpose: what a thread is still inside of must stay.
    static_cast<void>(store.release());
  }
}

Result<void> SharedStore::open() try {
  if (auto writer = open_writer(); !writer) {
    if (writer.error().code() != ErrorCode::denied || !open_reader()) {
      return writer.error();
    }
    read_only_ = writer.error();
    return {};
  }
  return open_reader();
} catch (const std::system_error& error) {
  return Error(ErrorCode::unavailable, std::string("cannot make a thread for the store: ") + error.what() +
                                           "; raise the limit of processes (ulimit -u) or of memory");
}

}  // namespace sluice::queue::sqlite
