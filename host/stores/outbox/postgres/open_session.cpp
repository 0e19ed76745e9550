#include <utility>

#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

Statement set_all(const ServerSettings& settings, bool transaction_only) {
  Statement statement{"SELECT "};
  for (const auto& [name, value] : settings) {
    statement.sql += (statement.parameters.empty() ? "" : ", ") + std::string("set_config('") + name + "', $" +
                     std::to_string(statement.parameters.size() + 1) + (transaction_only ? ", true)" : ", false)");
    statement.parameters.emplace_back(value);
  }
  return statement;
}

}  // namespace

Result<std::unique_ptr<Connection>> open_session(const Settings& settings, const ServerSettings& more,
                                                 Deadline deadline) {
  auto connection = Connection::open(settings.connect, deadline);
  if (!connection) {
    return connection;
  }
  ServerSettings all{{"timezone", "UTC"}, {"datestyle", "ISO"}, {"statement_timeout", "60s"}, {"lock_timeout", "5s"}};
  all.insert(all.end(), more.begin(), more.end());
  if (settings.connect.side_table) {
    (*connection)->begin_each_with(set_all(all, true));
    return connection;
  }
  const auto done = (*connection)->run(set_all(all, false), deadline);
  return done ? std::move(connection) : Result<std::unique_ptr<Connection>>(done.error());
}

}  // namespace sluice::queue::outbox::postgres
