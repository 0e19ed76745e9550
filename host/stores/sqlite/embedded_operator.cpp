// The part of EmbeddedStore that looks.

#include <algorithm>
#include <charconv>
#include <utility>

#include "host/queue/message_errors.hpp"
#include "host/stores/sqlite/embedded_store.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kListLimit = 1'000;
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;

std::string write_cursor(const RecordReader::Place& place) {
  return std::to_string(place.first) + ":" + std::to_string(place.second);
}

std::optional<RecordReader::Place> read_cursor(const std::string& cursor) {
  RecordReader::Place place = RecordReader::kFirst;
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
ListPage page_of(RecordReader& reader, const ListRequest& request, const std::vector<RecordReader::Place>& places,
                 std::size_t limit) {
  ListPage page;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < places.size() && i < limit; ++i) {
    const std::int64_t seq = places[i].second;
    if (auto record = request.content ? reader.read(seq) : reader.read_head(seq)) {
      if (request.native) {
        record->native = reader.native(seq);
      }
      bytes += record->message.body.size() + record->native.size();
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
      page = page_of(reader, request, reader.list(half_of(*queue, request.address.type), *after, limit + 1), limit);
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

Result<QueueOverview> EmbeddedStore::overview(const OverviewRequest& request, Deadline deadline) {
  QueueOverview seen;
  auto done = read(deadline, [&](RecordReader& reader) {
    if (const auto queue = reader.queue(request.address.queue)) {
      seen = reader.overview(half_of(*queue, request.address.type), request.ids, request.errors, clock_.wall_now());
    }
  });
  if (!done) {
    return done.error();
  }
  return seen;
}

}  // namespace sluice::queue::sqlite
