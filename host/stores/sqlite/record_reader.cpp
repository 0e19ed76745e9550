#include "host/stores/sqlite/record_reader.hpp"

#include <algorithm>

#include "host/queue/error_groups.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

namespace {

std::string select_record(std::string_view content) {
  return "SELECT " + std::string(kRecordColumns) + ", m.created_at, d.updated_at, " + std::string(content) +
         std::string(kOfOneMessage);
}

// Those that wait for their time lie in another order: a look at all of them.
constexpr std::string_view kWaiting =
    "SELECT sent_at, seq FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until IS NOT NULL";

/// Places of a half beyond ?2 and ?3. Where it keeps an order, turns say nothing of when a message was sent: then all
/// that lies there is looked at.
std::string list_sql(bool ordered, bool newest_first) {
  const std::string beyond = newest_first ? "< (?2, ?3)" : "> (?2, ?3)";
  const std::string direction = newest_first ? " DESC" : " ASC";
  const std::string end = " ORDER BY 1" + direction + ", 2" + direction + " LIMIT ?4";
  if (ordered) {
    return "SELECT m.sent_at, m.seq FROM (" + all_of_half() +
           ") AS p CROSS JOIN sluice_messages AS m ON m.seq = p.seq WHERE (m.sent_at, m.seq) " + beyond + end;
  }
  const std::string rest = " AND (sent_at, seq) " + beyond + end + ")";
  return in_each_range("SELECT * FROM (SELECT sent_at, seq FROM sluice_ready WHERE half = %" + rest) +
         " UNION ALL SELECT * FROM (" + std::string(kWaiting) + rest + end;
}

// How many there are, wait for their time, and of these are leased; how many ready ones are of the future, as are only
// after the clock has gone back or when a delayed message was made visible before its time; and the oldest ready one:
// where an order is kept, among the ?3 whose turn comes next, which is near enough, and cheap.
std::string stats_sql() {
  const std::string waiting =
      "FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until IS NOT "
      "NULL AND until ";
  return "SELECT (SELECT messages FROM sluice_halves WHERE half = ?1), (SELECT count(*) " + waiting +
         ">= ?2), (SELECT total(leased) " + waiting + ">= ?2), (SELECT sum(n) FROM (" +
         in_each_range("SELECT count(*) AS n FROM sluice_ready WHERE half = % AND sent_at > ?2") +
         ")) + (SELECT count(*) " + waiting + "< ?2 AND sent_at > ?2), (SELECT min(at) FROM (" +
         in_each_range(
             "SELECT min(m.sent_at) AS at FROM (SELECT seq FROM sluice_ready WHERE half = % AND sent_at <= ?2 "
             "ORDER BY sent_at, seq LIMIT ?3) AS p CROSS JOIN sluice_messages AS m ON m.seq = p.seq") +
         " UNION ALL SELECT min(sent_at) FROM (SELECT sent_at " + waiting +
         "< ?2 AND sent_at <= ?2 ORDER BY until LIMIT 1000)))";
}

constexpr std::int64_t kOrderedHeads = 1'000;

Error too_late() { return {ErrorCode::timeout, "the deadline passed before the store had read; allow more time"}; }

}  // namespace

RecordReader::RecordReader(Connection& connection)
    : connection_(connection),
      record_(connection, select_record("m.content_type, m.attributes, m.body")),
      head_(connection, select_record("NULL, NULL, NULL")),
      list_{Statement(connection, list_sql(false, false)), Statement(connection, list_sql(false, true)),
            Statement(connection, list_sql(true, false)), Statement(connection, list_sql(true, true))},
      stats_(connection, stats_sql()),
      hidden_(connection, "SELECT seq FROM (" + std::string(kWaiting) +
                              " AND (until >= ?2 OR sent_at > ?2) UNION ALL " +
                              in_each_range("SELECT sent_at, seq FROM sluice_ready WHERE half = % AND sent_at > ?2") +
                              ") ORDER BY sent_at, seq LIMIT ?3") {}

std::vector<std::string> RecordReader::queues() {
  std::vector<std::string> names;
  queues_.each([&] { names.emplace_back(queues_.bytes(0)); });
  return names;
}

std::optional<StoredMessage> RecordReader::find(std::int64_t queue, const std::string& id) {
  const auto seq = by_id_.bind(std::string_view(id), queue).only();
  return seq ? read(*seq) : std::nullopt;
}

std::optional<StoredMessage> RecordReader::read(Statement& statement, std::int64_t seq) {
  return statement.bind(seq).only([&] {
    StoredMessage found;
    MessageRecord record = read_record(statement, seq);
    record.state.put_into(found);
    found.message.id = std::move(record.id);
    found.created_at = loaded(statement.integer(kAfterRecord));
    found.updated_at = loaded(statement.optional_integer(kAfterRecord + 1)).value_or(found.created_at);
    if (!read_content(statement, kAfterRecord + 2, found.message)) {
      // They are shown as they are, so that an operator sees why nobody claims the message.
      found.message.attributes.emplace("(unreadable)", statement.bytes(kAfterRecord + 3));
    }
    return found;
  });
}

std::string RecordReader::text(Statement& statement, std::int64_t seq) {
  return statement.bind(seq).only([&] { return std::string(statement.bytes(0)); }).value_or(std::string());
}

std::string RecordReader::native(std::int64_t seq) { return text(native_, seq); }

bool RecordReader::ordered(std::int64_t half) {
  return GroupOrder::kept_in(kept_.bind(half / 2).only().value_or(0), half) != Kept::none;
}

std::vector<Place> RecordReader::list(std::int64_t half, const Place& from, std::size_t limit, bool newest_first) {
  Statement& statement = list_[(ordered(half) ? 2U : 0U) + (newest_first ? 1U : 0U)];
  std::vector<Place> found;
  statement.bind(half, from.first, from.second, static_cast<std::int64_t>(limit)).each([&] {
    found.emplace_back(statement.integer(0), statement.integer(1));
  });
  return found;
}

QueueStats RecordReader::stats(std::int64_t half, WallTime now) {
  QueueStats stats;
  stats_.bind(half, stored(now), ordered(half) ? kOrderedHeads : std::int64_t{1});
  if (stats_.row()) {
    const auto count = [this](int column) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(0, stats_.integer(column)));
    };
    stats.in_flight = count(2);
    stats.delayed = count(1) - stats.in_flight + count(3);
    stats.ready = count(0) - std::min(count(0), stats.in_flight + stats.delayed);
    stats.oldest_ready = loaded(stats_.optional_integer(4));
  }
  stats_.reset();
  return stats;
}

QueueOverview RecordReader::overview(std::int64_t half, std::size_t ids, std::size_t errors, WallTime now) {
  QueueOverview seen;
  seen.counts = stats(half, now);
  for (const Place& place : list(half, kFirst, ids)) {
    seen.first_ids.push_back(text(id_, place.second));
  }
  hidden_.bind(half, stored(now), static_cast<std::int64_t>(ids)).each([&] {
    seen.first_in_flight_ids.push_back(text(id_, hidden_.integer(0)));
  });
  if (errors > 0) {
    ErrorGroups groups(now);
    failures_.bind(half).each([&] { groups.add(std::string(failures_.bytes(1)), decode_failure(failures_.bytes(0))); });
    seen.errors = std::move(groups).finish(errors, seen.unlisted_errors);
  }
  return seen;
}

ReadThread::ReadThread(const Clock& clock, const StoreFile& file, std::unique_ptr<Connection> connection)
    : clock_(clock),
      file_(file),
      connection_(std::move(connection)),
      reader_(*connection_),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

Result<void> ReadThread::run(Work work, Deadline deadline) {
  if (deadline.passed(clock_.steady_now())) {
    return too_late();
  }
  const SteadyTime limit = machine_after(deadline.left(clock_.steady_now()));
  const auto request = std::make_shared<Request>();
  request->work = std::move(work);
  request->deadline = deadline;
  const MutexLock lock(mutex_);
  waiting_.push_back(request);
  work_there_.notify_one();
  if (!request->changed.wait_until(mutex_, limit, [&request] { return request->outcome.has_value(); })) {
    std::erase(waiting_, request);
    return too_late();
  }
  return *request->outcome;
}

void ReadThread::serve(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Request> request;
    {
      const MutexLock lock(mutex_);
      if (!work_there_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !waiting_.empty(); })) {
        return;
      }
      request = waiting_.front();
      waiting_.pop_front();
    }
    auto outcome = read(*request);
    const MutexLock lock(mutex_);
    request->outcome = std::move(outcome);
    request->changed.notify_one();
  }
}

Result<void> ReadThread::read(const Request& request) {
  const auto passed = [this, &request] { return request.deadline.passed(clock_.steady_now()); };
  if (passed()) {
    return too_late();
  }
  SLUICE_PASS_ON(file_.check());
  connection_->wait_for_locks_until(machine_after(request.deadline.left(clock_.steady_now())));
  connection_->interrupt_when(passed);
  connection_->execute("BEGIN");
  request.work(reader_);
  Result<void> outcome = connection_->state();
  connection_->clear();
  connection_->interrupt_when({});
  if (connection_->in_transaction()) {
    connection_->execute("COMMIT");
    connection_->clear();
  }
  return outcome;
}

}  // namespace sluice::queue::sqlite
