#include "host/stores/sqlite/embedded_store.hpp"

#include <algorithm>
#include <utility>

#include "base/uuid.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of one transaction: large enough to share its flush, small enough that nobody waits long for it.
constexpr std::size_t kBatchItems = 1'000;
// Sends share more than the flush: entries of the id index that fall on the same page.
constexpr std::size_t kSendItems = 8'000;
constexpr std::size_t kBatchBytes = std::size_t{8} * 1024 * 1024;
constexpr std::size_t kIdLimit = 2'048;
constexpr std::size_t kQueueNameLimit = 1'024;

/// How many of `messages` go into the next transaction.
std::size_t batch_of(std::span<const NewMessage> messages) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < messages.size() && count < kSendItems && (count == 0 || bytes < kBatchBytes)) {
    bytes += content_bytes(messages[count++]);
  }
  return count;
}

}  // namespace

EmbeddedStore::EmbeddedStore(SqliteOptions options, const Clock& clock, Random& random)
    : options_(std::move(options)), clock_(clock), random_(random), file_(options_) {}

Result<void> EmbeddedStore::open() {
  auto writer = file_.open_writer();
  if (!writer) {
    return writer.error();
  }
  writer_ = std::move(*writer);
  records_ = std::make_unique<Records>(*writer_);
  writer_reader_ = std::make_unique<RecordReader>(*writer_);
  changes_ = std::make_unique<Changes>(*records_);
  commits_ = std::make_unique<CommitQueue>(
      clock_, file_, *writer_, options_.durable,
      CommitQueue::Hooks{.begin = [this] { records_->begin(); }, .finish = [this] { records_->finish(); }});
  if (writer_->failed()) {
    return writer_->failure();
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

Result<std::vector<Claim>> EmbeddedStore::claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                                Deadline deadline) {
  std::vector<Claim> claims;
  const auto work = [&] {
    claims.clear();
    if (const auto queue = records_->queue(address.queue)) {
      const WallTime now = clock_.wall_now();
      claims = records_->deliveries().claim(half_of(*queue, address.type), std::min(max, kClaimLimit),
                                            later(now, visibility), now);
    }
  };
  if (auto done = commits_->run(work, false, deadline); !done) {
    return done.error();
  }
  return claims;
}

std::vector<SettleResult> EmbeddedStore::settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                                Deadline deadline) {
  std::vector<SettleResult> results(settlements.size());
  for (std::size_t from = 0; from < settlements.size(); from += kBatchItems) {
    const std::size_t end = std::min(settlements.size(), from + kBatchItems);
    const auto work = [&] {
      const WallTime now = clock_.wall_now();
      const auto queue = records_->queue(address.queue);
      const auto batch = std::span(results).subspan(from, end - from);
      if (queue) {
        records_->deliveries().settle(half_of(*queue, address.type), settlements.subspan(from, end - from), batch, now);
      } else {
        std::fill(batch.begin(), batch.end(), SettleResult{SettleStatus::lost, {}});
      }
    };
    if (auto done = commits_->run(work, true, deadline); !done) {
      std::fill(results.begin() + static_cast<std::ptrdiff_t>(from), results.begin() + static_cast<std::ptrdiff_t>(end),
                SettleResult{SettleStatus::failed, done.error()});
    }
  }
  return results;
}

std::vector<ExtendResult> EmbeddedStore::extend(const QueueAddress& address, std::span<const Receipt> receipts,
                                                Duration visibility, Deadline deadline) {
  std::vector<ExtendResult> results(receipts.size());
  for (std::size_t from = 0; from < receipts.size(); from += kBatchItems) {
    const std::size_t end = std::min(receipts.size(), from + kBatchItems);
    const auto work = [&] {
      const WallTime now = clock_.wall_now();
      const WallTime until = later(now, visibility);
      const auto queue = records_->queue(address.queue);
      for (std::size_t i = from; i < end; ++i) {
        const auto renewed = queue
                                 ? records_->deliveries().extend(half_of(*queue, address.type), receipts[i], until, now)
                                 : std::nullopt;
        results[i] = renewed ? ExtendResult{SettleStatus::applied, *renewed, until, {}}
                             : ExtendResult{SettleStatus::lost, receipts[i], {}, {}};
      }
    };
    if (auto done = commits_->run(work, false, deadline); !done) {
      for (std::size_t i = from; i < end; ++i) {
        results[i] = {SettleStatus::failed, receipts[i], {}, done.error()};
      }
    }
  }
  return results;
}

std::optional<Error> EmbeddedStore::refusal(const std::string& queue, const std::string& id, std::size_t bytes) const {
  if (queue.empty() || queue.size() > kQueueNameLimit) {
    return Error(ErrorCode::invalid, "a queue name has 1 to " + std::to_string(kQueueNameLimit) +
                                         " bytes, this one has " + std::to_string(queue.size()) + "; choose another");
  }
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

std::vector<SendResult> EmbeddedStore::send(const std::string& queue, std::span<const NewMessage> messages,
                                            Deadline deadline) {
  std::vector<SendResult> results(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    results[i].id = messages[i].id.empty() ? make_uuid(random_) : messages[i].id;
  }
  for (std::size_t from = 0; from < messages.size();) {
    const std::size_t count = batch_of(messages.subspan(from));
    send_batch(queue, messages.subspan(from, count), std::span(results).subspan(from, count), deadline);
    from += count;
  }
  return results;
}

void EmbeddedStore::send_batch(const std::string& queue, std::span<const NewMessage> messages,
                               std::span<SendResult> results, Deadline deadline) {
  bool any = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (auto refused = refusal(queue, results[i].id, content_bytes(messages[i]))) {
      results[i].status = SendStatus::failed;
      results[i].error = std::move(*refused);
    } else {
      any = true;
    }
  }
  if (!any) {
    return;
  }
  const auto work = [&] {
    const WallTime now = clock_.wall_now();
    records_->sending().insert(records_->make_queue(queue), messages, results, now);
  };
  if (auto done = commits_->run(work, true, deadline); !done) {
    for (SendResult& result : results) {
      if (result.status != SendStatus::failed) {
        result.status = SendStatus::failed;
        result.error = done.error();
      }
    }
  }
}

}  // namespace sluice::queue::sqlite
