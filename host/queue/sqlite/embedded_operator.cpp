// The half of EmbeddedStore that operators use.

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "host/queue/sqlite/embedded_store.hpp"
#include "host/queue/sqlite/row_codec.hpp"
#include "host/queue/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kListLimit = 1'000;
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;
constexpr std::size_t kPurgeBatch = 500;

Error no_message(const std::string& queue, const std::string& id) {
  return {ErrorCode::not_found, "no message \"" + id + "\" in queue \"" + queue + "\""};
}

std::int64_t half_of(std::int64_t queue, QueueType type) { return queue * 2 + (type == QueueType::dlq ? 1 : 0); }

std::string write_cursor(const RecordReader::Place& place) {
  return std::to_string(place.first) + ":" + std::to_string(place.second);
}

std::optional<RecordReader::Place> read_cursor(const std::string& cursor) {
  RecordReader::Place place{std::numeric_limits<std::int64_t>::min(), 0};
  if (cursor.empty()) {
    return place;
  }
  const char* end = cursor.data() + cursor.size();
  const auto time = std::from_chars(cursor.data(), end, place.first);
  if (time.ec != std::errc() || time.ptr == end || *time.ptr != ':') {
    return std::nullopt;
  }
  const auto seq = std::from_chars(time.ptr + 1, end, place.second);
  return seq.ec == std::errc() && seq.ptr == end ? std::optional(place) : std::nullopt;
}

/// A page of at most `limit` records from these places; the cursor leads on when there are more of them.
ListPage page_of(RecordReader& reader, const std::vector<RecordReader::Place>& places, std::size_t limit) {
  ListPage page;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < places.size() && i < limit; ++i) {
    if (auto record = reader.read(places[i].second)) {
      bytes += record->message.body.size();
      page.messages.push_back(std::move(*record));
    }
    if (i + 1 < places.size() && (i + 1 == limit || bytes >= kListBytes)) {
      page.next = write_cursor(places[i]);
      break;
    }
  }
  return page;
}

}  // namespace

Result<void> EmbeddedStore::read(Deadline deadline, const std::function<void(RecordReader&)>& work) {
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

Result<StoredMessage> EmbeddedStore::get(const std::string& queue, const std::string& id, Deadline deadline) {
  std::optional<StoredMessage> found;
  auto done = read(deadline, [&](RecordReader& reader) {
    if (const auto number = reader.queue(queue)) {
      found = reader.find(*number, id);
    }
  });
  if (!done) {
    return done.error();
  }
  if (!found) {
    return no_message(queue, id);
  }
  return std::move(*found);
}

Result<ListPage> EmbeddedStore::list(const ListRequest& request, Deadline deadline) {
  const auto after = read_cursor(request.cursor);
  if (!after) {
    return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
  }
  const std::size_t limit = std::min(request.limit, kListLimit);
  ListPage page;
  auto done = read(deadline, [&](RecordReader& reader) {
    if (const auto queue = reader.queue(request.address.queue)) {
      page = page_of(reader, reader.list(half_of(*queue, request.address.type), *after, limit + 1), limit);
    }
  });
  if (!done) {
    return done.error();
  }
  return page;
}

Result<QueueStats> EmbeddedStore::stats(const QueueAddress& address, Deadline deadline) {
  QueueStats counted;
  auto done = read(deadline, [&](RecordReader& reader) {
    if (const auto queue = reader.queue(address.queue)) {
      counted = reader.stats(half_of(*queue, address.type), clock_.wall_now());
    }
  });
  if (!done) {
    return done.error();
  }
  return counted;
}

Result<void> EmbeddedStore::on_message(const std::string& queue, const std::string& id, Deadline deadline,
                                       const std::function<std::optional<Error>(const Standing&, WallTime now)>& work) {
  std::optional<Error> refused;
  const auto whole = [&] {
    const auto number = records_->queue(queue);
    const auto standing = number ? records_->find(*number, id) : std::nullopt;
    refused = standing ? work(*standing, clock_.wall_now()) : std::optional<Error>(no_message(queue, id));
  };
  if (auto done = commits_->run(whole, true, deadline); !done) {
    return done.error();
  }
  if (refused) {
    return std::move(*refused);
  }
  return {};
}

Result<StoredMessage> EmbeddedStore::edit(const std::string& queue, const StoredMessage& expected,
                                          const NewMessage& content, Deadline deadline) {
  const std::string& id = expected.message.id;
  if (auto refused = refusal(queue, id, content)) {
    return std::move(*refused);
  }
  std::optional<StoredMessage> edited;
  auto done = on_message(queue, id, deadline, [&](const Standing& standing, WallTime now) -> std::optional<Error> {
    if (standing.version != expected.version) {
      return Error(ErrorCode::conflict, "message \"" + id + "\" was changed in between; read it again");
    }
    records_->replace_content(standing, content, now);
    edited = writer_reader_->read(standing.seq);
    return std::nullopt;
  });
  if (!done) {
    return done.error();
  }
  if (!edited) {
    return no_message(queue, id);
  }
  return std::move(*edited);
}

Result<void> EmbeddedStore::remove(const std::string& queue, const std::string& id, Deadline deadline) {
  return on_message(queue, id, deadline, [&](const Standing& standing, WallTime) -> std::optional<Error> {
    records_->deliveries().remove(standing);
    return std::nullopt;
  });
}

Result<BulkResult> EmbeddedStore::purge(const QueueAddress& address, const BulkProgress& progress, Deadline deadline) {
  BulkResult result;
  // What is sent while the purge runs stays, or a busy sender would keep it running.
  std::optional<std::int64_t> end;
  while (true) {
    std::size_t removed = 0;
    const auto work = [&] {
      const auto queue = records_->queue(address.queue);
      end = end.value_or(records_->end());
      removed = queue ? records_->purge(half_of(*queue, address.type), *end, kPurgeBatch) : 0;
    };
    if (auto done = commits_->run(work, true, deadline); !done) {
      return done.error();
    }
    result.done += removed;
    if (removed == 0 || (progress && !progress(result.done))) {
      return result;
    }
  }
}

Result<void> EmbeddedStore::dead_letter(const std::string& queue, const std::string& id, const Failure& failure,
                                        Deadline deadline) {
  return on_message(queue, id, deadline, [&](const Standing& standing, WallTime now) -> std::optional<Error> {
    if ((standing.half & 1) == 0) {
      auto reason = failure.empty() ? standing.failure : std::optional<std::string>(encode_failure(failure));
      records_->deliveries().move(standing, standing.half | 1, std::move(reason), now);
    }
    return std::nullopt;
  });
}

Result<void> EmbeddedStore::redrive(const std::string& queue, const std::string& id, Deadline deadline) {
  return on_message(queue, id, deadline, [&](const Standing& standing, WallTime now) -> std::optional<Error> {
    if ((standing.half & 1) == 0) {
      return Error(ErrorCode::conflict, "message \"" + id + "\" is not in the DLQ of queue \"" + queue + "\"");
    }
    if (standing.until && now <= *standing.until && standing.received_at) {
      return Error(ErrorCode::conflict, "message \"" + id + "\" in the DLQ of queue \"" + queue +
                                            "\" is being worked on; try again when it is back");
    }
    records_->deliveries().move(standing, standing.half & ~std::int64_t{1}, std::nullopt, now);
    return std::nullopt;
  });
}

}  // namespace sluice::queue::sqlite
