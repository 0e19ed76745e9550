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

// Receipts of unconfirmed writes: more than a host has in hand at one time. The oldest are forgotten.
constexpr std::size_t kMostUnconfirmed = 100'000;

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

void Unconfirmed::Latest::add(const Receipt& receipt) {
  const Key key{receipt.locator, receipt.version};
  if (set.insert(key).second) {
    order.push_back(key);
  }
  if (order.size() > kMostUnconfirmed) {
    set.erase(order.front());
    order.pop_front();
  }
}

void Unconfirmed::add_settled(std::span<const Completion> completions, std::span<const SettleResult> results) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i].status == SettleStatus::applied) {
      settled_.add(completions[i].receipt);
      any_ = true;
    }
  }
}

void Unconfirmed::add_extended(std::span<const Receipt> receipts, std::span<const ExtendResult> results) {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (results[i].status == SettleStatus::applied) {
      extended_.add(receipts[i]);
      any_ = true;
    }
  }
}

bool Unconfirmed::settled(const Receipt& receipt) const {
  if (!any_) {
    return false;
  }
  const MutexLock lock(mutex_);
  return settled_.set.contains({receipt.locator, receipt.version});
}

Receipt Unconfirmed::current(Receipt receipt) const {
  if (any_) {
    const MutexLock lock(mutex_);
    while (extended_.set.contains({receipt.locator, receipt.version})) {
      ++receipt.version;
    }
  }
  return receipt;
}

void Writer::begin() {
  records.begin();
  keys.begin();
  effects.begin();
}

void Writer::finish() {
  records.finish();
  keys.finish();
}

// Its threads may hang in the system. Then all of it is left to them.
struct SharedStore::Core {
  Core(const SqliteOptions& options)
      : file(options), doorbell([this](const QueueAddress& address) { ring(address); }) {}

  Result<void> await_log() const;
  Result<void> await_one_log() const;
  Result<void> refuse_another_file() const;
  Result<void> open_writer(const SqliteOptions& options, const Clock& clock);
  Result<void> open_reader(const Clock& clock);
  void ring(const QueueAddress& address);
  /// False: one of them still runs.
  bool stop_by(SteadyTime limit);

  StoreFile file;
  std::unique_ptr<StoreLockFile> lock_file;
  Doorbell doorbell;
  Unconfirmed unconfirmed;
  std::optional<Error> read_only;
  // In the order in which they use each other: the last one first to go.
  std::unique_ptr<Writer> writer;
  std::unique_ptr<Checkpointer> checkpointer;
  std::unique_ptr<Flusher> flusher;
  std::unique_ptr<CommitQueue> commits;
  std::unique_ptr<ReadThread> reads;
};

// SQLite would take the log that lies there for that of whatever file is at the path now, or remove it: with it goes
// what others were told is stored.
Result<void> SharedStore::Core::refuse_another_file() const {
  if (!SLUICE_GUARD(store_watched)) {
    return {};
  }
  const std::string door = file.path() + "-door";
  const auto entrance = file.number_at_path() || std::filesystem::exists(door) ? StoreLockFile::open(door) : nullptr;
  if (!entrance || !entrance->others_stay()) {
    return {};
  }
  // Looked at only now: who stays may have made the file a moment ago.
  const auto at_path = file.number_at_path();
  const bool another = !at_path || entrance->others_stay_with_other_store(*at_path);
  return another ? Result<void>(moved_store(file.path())) : Result<void>();
}

// Who has the store open while its log is gone writes what that held when he ends, over whatever another has put into a
// new one meanwhile.
Result<void> SharedStore::Core::await_log() const {
  if (!file.lacks_log() || !SLUICE_GUARD(log_watched)) {
    return {};
  }
  const auto entrance = StoreLockFile::open(file.path() + "-door");
  Connection patience(file.path());
  patience.wait_for_locks_until(machine_after(kLogPatience));
  for (int tries = 0; entrance && entrance->others_stay() && file.lacks_log(); ++tries) {
    if (!patience.wait_for_lock(tries)) {
      return removed_log(file.path());
    }
  }
  return {};
}

// A process that had a part of the store open when the log was removed makes a new one as it opens the rest. Then there
// is a log, and it is not the one that the others have.
Result<void> SharedStore::Core::await_one_log() const {
  if (!SLUICE_GUARD(log_watched)) {
    return {};
  }
  Connection patience(file.path());
  patience.wait_for_locks_until(machine_after(kLogPatience));
  for (int tries = 0; lock_file && lock_file->others_stay_with_other_log(file.numbers()); ++tries) {
    if (!patience.wait_for_lock(tries)) {
      return removed_log(file.path());
    }
  }
  return file.check();
}

Result<void> SharedStore::Core::open_writer(const SqliteOptions& options, const Clock& clock) {
  SLUICE_PASS_ON(refuse_another_file());
  SLUICE_PASS_ON(await_log());
  SLUICE_TRY(connection, file.open_writer());
  writer = std::make_unique<Writer>(std::move(*connection), options.max_body_bytes);
  if (writer->connection->failed()) {
    return writer->connection->failure();
  }
  SLUICE_TRY(second, file.open_checkpointer());
  lock_file = StoreLockFile::open(file.path() + "-door");
  if (lock_file) {
    lock_file->stay(file.numbers());
  }
  SLUICE_PASS_ON(await_one_log());
  checkpointer = std::make_unique<Checkpointer>(std::move(*second), options.report);
  flusher = std::make_unique<Flusher>(file, *checkpointer);
  commits = std::make_unique<CommitQueue>(
      clock,
      CommitQueue::Tools{.file = file,
                         .connection = *writer->connection,
                         .checkpointer = *checkpointer,
                         .flusher = *flusher,
                         .lock_file = lock_file.get(),
                         .durable = options.durable},
      CommitQueue::Hooks{.begin = [this] { writer->begin(); }, .finish = [this] { writer->finish(); }});
  return {};
}

Result<void> SharedStore::Core::open_reader(const Clock& clock) {
  SLUICE_TRY(connection, file.open_reader());
  Connection& opened = **connection;
  // Opened already: a file that cannot be read is told now.
  reads = std::make_unique<ReadThread>(
      clock, file, [this] { return file.open_reader(); }, std::move(*connection));
  return opened.failed() ? Result<void>(opened.failure()) : Result<void>();
}

void SharedStore::Core::ring(const QueueAddress& address) {
  if (lock_file) {
    lock_file->ring(lock_file->bell_of(address));
  }
}

bool SharedStore::Core::stop_by(SteadyTime limit) {
  const auto stopped = [limit](const auto& thread) {
    if (thread) {
      thread->request_stop();
    }
    return !thread || thread->ended_by(limit);
  };
  // Who hands work on ends before who takes it.
  return stopped(reads) && stopped(commits) && stopped(flusher) && stopped(checkpointer);
}

SharedStore::SharedStore(SqliteOptions options, const Clock& clock, Random& random)
    : options_(std::move(options)), clock_(clock), random_(random), core_(std::make_unique<Core>(options_)) {}

SharedStore::~SharedStore() {
  if (!core_->stop_by(SLUICE_GUARD(hung_disk_left) ? machine_after(kStopPatience) : SteadyTime::max())) {
    // On purpose: what a thread is still inside of must stay.
    static_cast<void>(core_.release());
  }
}

Result<void> SharedStore::open() try {
  if (auto writer = core_->open_writer(options_, clock_); !writer) {
    if (writer.error().code() != ErrorCode::denied || !core_->open_reader(clock_)) {
      return writer.error();
    }
    core_->read_only = writer.error();
    return {};
  }
  return core_->open_reader(clock_);
} catch (const std::system_error& error) {
  return Error(ErrorCode::unavailable, std::string("cannot make a thread for the store: ") + error.what() +
                                           "; raise the limit of processes (ulimit -u) or of memory");
}

const std::optional<Error>& SharedStore::read_only() const { return core_->read_only; }
Doorbell& SharedStore::doorbell() { return core_->doorbell; }
StoreLockFile* SharedStore::lock_file() { return core_->lock_file.get(); }
Unconfirmed& SharedStore::unconfirmed() { return core_->unconfirmed; }

Writer* SharedStore::writer() const { return core_->writer.get(); }

Result<void> SharedStore::commit(CommitQueue::Task task, Deadline deadline) {
  return core_->read_only ? Result<void>(*core_->read_only) : core_->commits->run(std::move(task), deadline);
}

Result<void> SharedStore::look(std::function<void(RecordReader&)> work, Deadline deadline) {
  return core_->reads->run(std::move(work), deadline);
}

}  // namespace sluice::queue::sqlite
