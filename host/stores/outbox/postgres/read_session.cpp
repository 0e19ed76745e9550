#include <algorithm>
#include <utility>

#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

/// Whether an index leads from a group to its rows: one that begins with both columns, in either order.
Result<bool> has_group_index(Connection& connection, const TableSql& sql, Deadline deadline) {
  const Columns& names = sql.settings().columns;
  SLUICE_TRY(
      found,
      connection.run(
          {"SELECT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND "
           "(SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = i.indrelid "
           "AND "
           "a.attnum IN (i.indkey[0], i.indkey[1])) = (SELECT array_agg(n ORDER BY n) FROM unnest($2::text[]) n))",
           {sql.table(), array_of(std::vector<std::string>{names.aggregate_type, names.aggregate_id})}},
          deadline));
  return found->flag(0, 0);
}

}  // namespace

Result<std::unique_ptr<ReadSession>> PostgresReader::open(const Settings& settings, const TableSql& sql, bool listen,
                                                          Deadline deadline) {
  // Rows are wanted by id and few at a time; a plan that reads all of them to sort them is never the better one.
  SLUICE_TRY(connection,
             open_session(settings, {{"enable_seqscan", "off"}, {"enable_bitmapscan", "off"}, {"enable_sort", "off"}},
                          deadline));
  if (listen && !settings.connect.side_table) {
    SLUICE_PASS_ON((*connection)->run({std::string("LISTEN ") + kChannel}, deadline));
  }
  SLUICE_TRY(indexed, has_group_index(**connection, sql, deadline));
  return std::unique_ptr<ReadSession>(new PostgresReader(std::move(*connection), sql, *indexed));
}

Result<SourceId> PostgresReader::source_id(Deadline deadline) { return source_id_of(*connection_, sql_, deadline); }

Result<Page> PostgresReader::fetch(const FetchRequest& request, Deadline deadline) {
  Page page;
  std::size_t bytes = 0;
  SLUICE_TRY(all, connection_->stream(
                      sql_.page(request),
                      [&](const Answer& answer) {
                        page.rows.push_back(sql_.row_of(answer, 0));
                        bytes += page.rows.back().payload.size();
                        return bytes <= request.bytes;
                      },
                      deadline));
  page.more = !*all || page.rows.size() >= request.limit;
  return page;
}

Result<std::vector<GroupRows>> PostgresReader::fetch_groups(std::span<const Group> groups, std::size_t limit,
                                                            const FetchRequest& request, Deadline deadline) {
  std::vector<GroupRows> answers(groups.size());
  std::size_t bytes = 0;
  std::size_t last = 0;
  SLUICE_TRY(all, connection_->stream(
                      sql_.groups(groups, limit, request, indexed_),
                      [&](const Answer& answer) {
                        last = static_cast<std::size_t>(answer.number(0, sql_.row_width())) - 1;
                        GroupRows& group = answers[last];
                        group.rows.push_back(sql_.row_of(answer, 0));
                        group.more = group.rows.size() >= limit;
                        bytes += group.rows.back().payload.size();
                        return bytes <= request.bytes;
                      },
                      deadline));
  for (std::size_t i = last; !*all && i < answers.size(); ++i) {
    answers[i].more = true;
  }
  return answers;
}

Result<ReadSession::News> PostgresReader::wait(int wake, Deadline deadline) {
  const std::string& table = sql_.settings().table;
  SLUICE_TRY(told, connection_->wait(wake, deadline));
  const auto has = [&](const std::string& payload) {
    return std::find(told->begin(), told->end(), payload) != told->end();
  };
  return has("changed:" + table) ? News::changed : has("rows:" + table) ? News::rows : News::none;
}

}  // namespace sluice::queue::outbox::postgres
