#include "host/runtime/outbox_stores.hpp"

#include <utility>

#include "host/queue/error_groups.hpp"
#include "host/runtime/host_name.hpp"
#include "host/stores/outbox/dynamodb/dynamodb_outbox.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/mysql/url.hpp"
#include "host/stores/outbox/postgres/connection.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"

namespace sluice::runtime {

namespace {

using queue::outbox::Database;
using queue::outbox::Settings;

// Names of tables have 63 bytes in PostgreSQL and 64 characters in MySQL, "_sluice" among them.
constexpr std::size_t kLongestWithSideTable = 56;

Settings settings_of(const config::OutboxConfig& outbox, const std::string& name, const std::string& host) {
  Settings settings{.name = name};
  settings.connect = {.url = outbox.url,
                      .username = outbox.username,
                      .password = outbox.password,
                      .lease = outbox.lease,
                      .application = "sluice " + host,
                      .side_table = outbox.side_table};
  if (outbox.tls) {
    settings.connect.tls = {.required = true,
                            .verify = outbox.tls->verify,
                            .ca = outbox.tls->ca,
                            .server_name = outbox.tls->server_name,
                            .certificate = outbox.tls->certificate,
                            .key = outbox.tls->key};
  }
  const config::OutboxColumns& names = outbox.columns;
  settings.table = {.schema = outbox.schema,
                    .table = outbox.table,
                    .columns = {.id = names.id,
                                .aggregate_type = names.aggregate_type,
                                .aggregate_id = names.aggregate_id,
                                .event = names.event,
                                .payload = names.payload,
                                .retry_at = names.retry_at,
                                .retry_count = names.retry_count,
                                .sent_at = names.sent_at,
                                .created_at = names.created_at,
                                .last_error = names.last_error,
                                .attributes = outbox.attributes},
                    .retry_limit = outbox.retry_limit,
                    .buckets = outbox.buckets,
                    .resend_sent = outbox.compat};
  return settings;
}

/// Tells the metrics. A reason stands without its numbers, ids and addresses, so that it is one series.
class OutboxMeter final : public queue::outbox::OutboxObserver {
 public:
  explicit OutboxMeter(observe::OutboxMetrics& metrics) : metrics_(metrics) {}
  void published(const std::string& type, Duration latency) override { metrics_.published(type, latency); }
  void failed(const std::string& type, const std::string& reason) override {
    metrics_.failed(type, queue::folded_error(reason));
  }
  void marked(std::size_t rows) override { metrics_.marked(rows); }

 private:
  observe::OutboxMetrics& metrics_;
};

/// Where the database answers, as the SSH server reaches it.
Result<queue::outbox::postgres::ServerPlace> target_of(const config::OutboxConfig& outbox) {
  if (outbox.kind != config::OutboxKind::mysql) {
    return queue::outbox::postgres::server_of(outbox.url);
  }
  SLUICE_TRY(address, queue::outbox::mysql::parse_url(outbox.url));
  return queue::outbox::postgres::ServerPlace{address->host, address->port};
}

Result<std::shared_ptr<queue::outbox::Tunnel>> tunnel_of(const config::OutboxConfig& outbox, const Clock& clock) {
  if (!outbox.ssh) {
    return std::shared_ptr<queue::outbox::Tunnel>();
  }
  SLUICE_TRY(target, target_of(outbox));
  const config::OutboxSsh& ssh = *outbox.ssh;
  return std::shared_ptr<queue::outbox::Tunnel>(std::make_shared<queue::outbox::SshTunnel>(
      queue::outbox::SshSettings{.host = ssh.host,
                                 .port = ssh.port,
                                 .user = ssh.user,
                                 .private_key = ssh.private_key,
                                 .known_hosts = ssh.known_hosts,
                                 .host_key_algorithms = ssh.host_key_algorithms,
                                 .check_host_key = ssh.check_host_key,
                                 .target_host = target->host,
                                 .target_port = target->port},
      clock));
}

/// The one place that knows which databases there are.
Result<std::unique_ptr<Database>> database_of(const config::OutboxConfig& outbox, Settings settings,
                                              const OutboxSeams& seams,
                                              std::unique_ptr<DynamoDbConnection>& connection) {
  const std::string where = "[outbox." + settings.name + "]: ";
  if (outbox.kind == config::OutboxKind::dynamodb) {
    if (outbox.ssh || outbox.tls || outbox.side_table || outbox.compat) {
      return Error(ErrorCode::invalid, where +
                                           "kind \"dynamodb\" has no 'ssh', 'tls', 'coordination' and 'compat'; "
                                           "take them away");
    }
    SLUICE_TRY(opened, DynamoDbConnection::open({.region = outbox.region,
                                                 .endpoint = outbox.endpoint,
                                                 .region_setting = "region in [outbox." + settings.name + "]",
                                                 .metrics = seams.metrics,
                                                 .book = seams.book},
                                                seams.clock, seams.random));
    connection = *std::move(opened);
    return queue::outbox::make_dynamodb_outbox(std::move(settings), connection->client(), seams.clock, seams.random);
  }
  if (outbox.side_table && outbox.table.size() > kLongestWithSideTable) {
    return Error(ErrorCode::invalid, where + "'table' is longer than " + std::to_string(kLongestWithSideTable) +
                                         " bytes, and coordination = \"table\" adds '_sluice' to it; use \"locks\"");
  }
  SLUICE_TRY(tunnel, tunnel_of(outbox, seams.clock));
  settings.connect.tunnel = std::move(*tunnel);
  if (outbox.kind == config::OutboxKind::mysql) {
    return queue::outbox::make_mysql_database(settings, seams.clock, seams.random);
  }
  return queue::outbox::make_postgres_database(settings, seams.clock, seams.random);
}

}  // namespace

Result<OpenOutbox> open_outbox(const config::HostConfig& host, const std::string& name, OutboxSeams seams) {
  const auto found = host.outboxes.find(name);
  if (found == host.outboxes.end()) {
    return Error(ErrorCode::queue_missing, host.file + " has no [outbox." + name + "]; add it, or check the name");
  }
  const config::OutboxConfig& outbox = found->second;
  queue::outbox::OutboxOptions options{.settings = settings_of(outbox, name, host_name(host)),
                                       .producer = outbox.producer,
                                       .fetch_limit = outbox.fetch_limit,
                                       .poll_interval = outbox.poll_interval,
                                       .report = std::move(seams.report)};
  if (seams.metrics != nullptr) {
    options.observer = std::make_shared<OutboxMeter>(seams.metrics->outbox(name));
  }
  OpenOutbox open;
  SLUICE_TRY(database, database_of(outbox, options.settings, seams, open.connection));
  open.queues = std::make_unique<queue::outbox::OutboxQueues>(std::move(options), *std::move(database), seams.clock,
                                                              seams.random);
  return open;
}

queue::Selection selection_of(const config::JobConfig& job) {
  return {.job = job.name,
          .types = job.outbox.types,
          .deny_types = job.outbox.deny_types,
          .events = job.outbox.events,
          .skip_events = job.outbox.skip_events,
          .hold_dead = job.on_dead_letter == config::OnDeadLetter::hold};
}

}  // namespace sluice::runtime
