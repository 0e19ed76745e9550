#include "host/stores/sqlite/shared_store.hpp"

#include <utility>

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kIdLimit = 2'048;
constexpr std::size_t kQueueNameLimit = 1'024;

}  // namespace

SharedStore::SharedStore(SqliteOptions options, const Clock& clock, Random& random)
    : options_(std::move(options)), clock_(clock), random_(random), file_(options_) {}

Result<void> SharedStore::open() {
  auto writer = file_.open_writer();
  if (!writer) {
    return writer.error();
  }
  writer_ = std::make_unique<Writer>(std::move(*writer));
  commits_ = std::make_unique<CommitQueue>(clock_, file_, *writer_->connection, options_.durable,
                                           CommitQueue::Hooks{.begin = [this] { writer_->records.begin(); },
                                                              .finish = [this] { writer_->records.finish(); }});
  if (writer_->connection->failed()) {
    return writer_->connection->failure();
  }
  const MutexLock lock(reader_mutex_);
  auto reader = file_.open_reader();
  if (!reader) {
    return reader.error();
  }
  reader_ = std::move(*reader);
  record_reader_ = std::make_unique<RecordReader>(*reader_);
  if (reader_->failed()) {
    return reader_->failure();
  }
  return {};
}

Result<void> SharedStore::write(const Write& work, bool flush, Deadline deadline) {
  return commits_->run([this, &work] { work(*writer_); }, flush, deadline);
}

Result<void> SharedStore::read(const Read& work, Deadline deadline) {
  const auto passed = [this, deadline] { return deadline.passed(clock_.steady_now()); };
  if (passed()) {
    return Error(ErrorCode::timeout, "the deadline passed before the store could read; allow more time");
  }
  if (auto there = file_.check(); !there) {
    return there.error();
  }
  const MutexLock lock(reader_mutex_);
  const SteadyTime now = std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
  const Duration left = deadline.left(clock_.steady_now());
  reader_->wait_for_locks_until(left > SteadyTime::max() - now ? SteadyTime::max() : now + left);
  reader_->interrupt_when(passed);
  reader_->execute("BEGIN");
  work(*record_reader_);
  const bool failed = reader_->failed();
  const Error error = reader_->failure();
  reader_->clear();
  reader_->interrupt_when({});
  if (reader_->in_transaction()) {
    reader_->execute("COMMIT");
    reader_->clear();
  }
  if (failed) {
    return error;
  }
  return {};
}

std::optional<Error> SharedStore::refused_name(const std::string& queue) {
  if (queue.empty() || queue.size() > kQueueNameLimit) {
    return Error(ErrorCode::invalid, "a queue name has 1 to " + std::to_string(kQueueNameLimit) +
                                         " bytes, this one has " + std::to_string(queue.size()) + "; choose another");
  }
  return std::nullopt;
}

std::optional<Error> SharedStore::refused(const std::string& id, std::size_t bytes) const {
  if (id.size() > kIdLimit) {
    return Error(ErrorCode::invalid, "a message id has at most " + std::to_string(kIdLimit) + " bytes, this one has " +
                                         std::to_string(id.size()) + "; make it shorter");
  }
  if (bytes > options_.max_body_bytes) {
    return Error(ErrorCode::invalid, "a message has at most " + std::to_string(options_.max_body_bytes) +
                                         " bytes, this one has " + std::to_string(bytes) +
                                         "; keep the data elsewhere and send its place");
  }
  return std::nullopt;
}

}  // namespace sluice::queue::sqlite
