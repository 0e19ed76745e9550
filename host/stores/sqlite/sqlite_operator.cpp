#include "host/stores/sqlite/sqlite_operator.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "host/queue/message.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kListLimit = 1'000;
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;

std::string write_cursor(const RecordReader::Place& place) {
  return std::to_string(place.first) + ":" + std::to_string(place.second);
}

std::optional<RecordReader::Place> read_cursor(const std::string& cursor, bool newest_first) {
  RecordReader::Place place = newest_first ? RecordReader::kLast : RecordReader::kFirst;
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

template <typename Seen>
Result<Seen> SqliteOperator::look(std::function<Seen(RecordReader& reader, std::int64_t queue)> work,
                                  Deadline deadline) {
  // The call's and the store's together, for the caller may leave before the disk answers.
  const auto seen = std::make_shared<Seen>();
  SLUICE_PASS_ON(store_.read(
      [seen, name = queue_, work = std::move(work)](RecordReader& reader) {
        if (const auto queue = reader.queue(name)) {
          *seen = work(reader, *queue);
        }
      },
      deadline));
  return std::move(*seen);
}

Result<StoredMessage> SqliteOperator::get(const std::string& id, Deadline deadline) {
  SLUICE_TRY(found, look<std::optional<StoredMessage>>(
                        [id](RecordReader& reader, std::int64_t queue) { return reader.find(queue, id); }, deadline));
  if (!*found) {
    return no_message(queue_, id);
  }
  return std::move(**found);
}

Result<ListPage> SqliteOperator::list(const ListRequest& request, Deadline deadline) {
  const auto after = read_cursor(request.cursor, request.newest_first);
  if (!after) {
    return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
  }
  return look<ListPage>(
      [request, after = *after](RecordReader& reader, std::int64_t queue) {
        const std::size_t limit = std::min(request.limit, kListLimit);
        const std::int64_t half = half_of(queue, request.half);
        const auto places =
            request.newest_first ? reader.list_newest(half, after, limit + 1) : reader.list(half, after, limit + 1);
        return page_of(reader, request, places, limit);
      },
      deadline);
}

Result<QueueStats> SqliteOperator::stats(const StatsRequest& request, Deadline deadline) {
  return look<QueueStats>(
      [type = request.half, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
        return reader.stats(half_of(queue, type), clock.wall_now());
      },
      deadline);
}

Result<QueueOverview> SqliteOperator::overview(const OverviewRequest& request, Deadline deadline) {
  return look<QueueOverview>(
      [request, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
        return reader.overview(half_of(queue, request.half), request.ids, request.errors, clock.wall_now());
      },
      deadline);
}

}  // namespace sluice::queue::sqlite
