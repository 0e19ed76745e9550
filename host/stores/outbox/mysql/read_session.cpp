#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>

#include "host/stores/outbox/mysql/names.hpp"
#include "host/stores/outbox/mysql/rows_sql.hpp"
#include "host/stores/outbox/mysql/sessions.hpp"
#include "host/stores/outbox/mysql/source_id.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

/// Rows of one answer, until their payloads are as many bytes as the caller wants to hold.
struct Batch {
  std::vector<ReadRow> rows;
  bool cut = false;
};

class MysqlReadSession final : public ReadSession {
 public:
  MysqlReadSession(std::unique_ptr<Session> session, const TableSettings& table, const Clock& clock)
      : session_(std::move(session)), sql_(table), clock_(clock) {}

  Result<SourceId> source_id(Deadline deadline) override { return source_id_of(*session_, sql_.settings(), deadline); }

  Result<Page> fetch(const FetchRequest& request, Deadline deadline) override {
    std::string statement =
        "SELECT " + sql_.columns() + " FROM " + sql_.table() + " WHERE " + sql_.pending(request.dead);
    if (!request.from_start) {
      statement += " AND " + sql_.id() + ">" + std::to_string(request.after);
    }
    statement += sql_.in_buckets(request.buckets) + sql_.wanted(*request.filter) + sql_.without(request.without) +
                 " ORDER BY " + sql_.id() + " LIMIT " + std::to_string(request.limit);
    SLUICE_TRY(batch, read(statement, request.bytes, deadline));
    Page page;
    page.more = batch->cut || batch->rows.size() >= request.limit;
    for (ReadRow& read : batch->rows) {
      page.rows.push_back(std::move(read.row));
    }
    return page;
  }

  Result<std::vector<GroupRows>> fetch_groups(std::span<const Group> groups, std::size_t limit,
                                              const FetchRequest& request, Deadline deadline) override {
    std::vector<GroupRows> answers(groups.size());
    if (groups.empty()) {
      return answers;
    }
    // Ids alone are numbered, so that the server sorts no payloads.
    const auto numbered =
        session_->rows("SELECT found FROM (SELECT " + sql_.id() + " AS found,ROW_NUMBER() OVER (PARTITION BY " +
                           sql_.group() + " ORDER BY " + sql_.id() + ") AS place FROM " + sql_.table() + " WHERE " +
                           sql_.pending(request.dead) + " AND " + sql_.within(groups) + sql_.wanted(*request.filter) +
                           ") AS numbered WHERE place<=" + std::to_string(limit + 1) + " ORDER BY found",
                       deadline);
    SLUICE_PASS_ON(numbered);
    std::vector<std::int64_t> ids;
    for (const Cells& cells : *numbered) {
      ids.push_back(number_of(cells[0]));
    }
    if (ids.empty()) {
      return answers;
    }
    SLUICE_TRY(batch, read("SELECT " + sql_.columns() + " FROM " + sql_.table() + " WHERE " + sql_.id() + " IN (" +
                               list_of(ids) + ") AND " + sql_.pending(request.dead) + " ORDER BY " + sql_.id(),
                           request.bytes, deadline));
    deal(groups, limit, *batch, answers);
    return answers;
  }

  Result<News> wait(int wake, Deadline deadline) override {
    for (;;) {
      pollfd watched{wake, POLLIN, 0};
      const Duration left = deadline.left(clock_.steady_now());
      if (left == Duration::zero()) {
        return News::none;
      }
      const auto milliseconds =
          std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, std::chrono::hours(1)));
      const int ready = ::poll(&watched, 1, static_cast<int>(milliseconds.count()));
      if (ready > 0 || (ready < 0 && errno != EINTR)) {
        return News::none;
      }
    }
  }

 private:
  Result<Batch> read(const std::string& statement, std::size_t bytes, Deadline deadline) {
    Batch batch;
    std::size_t held = 0;
    SLUICE_PASS_ON(session_->run(
        statement,
        [&](Cells&& cells) {
          if (held > bytes) {
            batch.cut = true;
            return false;
          }
          batch.rows.push_back(sql_.read(std::move(cells)));
          const ReadRow& last = batch.rows.back();
          held += last.payload_missing ? last.payload_size : last.row.payload.size();
          return true;
        },
        deadline));
    for (auto row = batch.rows.begin(); row != batch.rows.end();) {
      if (!row->payload_missing) {
        ++row;
        continue;
      }
      SLUICE_TRY(found, session_->rows(sql_.payload_of(row->row.id), deadline));
      const bool there = !found->empty() && found->front()[0];
      row->row.payload = there ? *found->front()[0] : std::string();
      row = there ? row + 1 : batch.rows.erase(row);  // deleted in between
    }
    return batch;
  }

  /// Each row to its group; what lies beyond the limit only says that there is more.
  static void deal(std::span<const Group> groups, std::size_t limit, Batch& batch, std::vector<GroupRows>& answers) {
    std::map<Group, std::size_t> places;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      places.emplace(groups[i], i);
    }
    for (ReadRow& read : batch.rows) {
      const auto place = places.find(read.row.group);
      if (place == places.end()) {
        continue;
      }
      GroupRows& answer = answers[place->second];
      if (answer.rows.size() < limit) {
        answer.rows.push_back(std::move(read.row));
      } else {
        answer.more = true;
      }
    }
    if (batch.cut) {
      for (GroupRows& answer : answers) {
        answer.more = true;
      }
    }
  }

  const std::unique_ptr<Session> session_;
  const RowsSql sql_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<ReadSession> make_read_session(std::unique_ptr<Session> session, const TableSettings& table,
                                               const Clock& clock) {
  return std::make_unique<MysqlReadSession>(std::move(session), table, clock);
}

}  // namespace sluice::queue::outbox::mysql
