#include <algorithm>
#include <array>

#include "host/cli/convert/conversion.hpp"
#include "host/cli/convert/toml_text.hpp"

namespace sluice::cli::convert {

namespace {

constexpr config::Duration kPollingInterval = std::chrono::seconds(5);

void copy(Fields& fields, const std::string& path, TomlText& toml, std::string_view key) {
  if (const auto text = fields.text(path)) {
    toml.string(key, text->text);
  }
}

/// A file; relative ones lay beside whoever started outbox-worker.
void copy_path(Fields& fields, const std::string& path, TomlText& toml, std::string_view key, bool needed = false) {
  const auto text = fields.text(path, needed);
  if (!text) {
    return;
  }
  toml.string(key, text->text);
  if (text->text.front() != '/' && !text->has_variables) {
    fields.remark(path, "relative paths are relative to host.toml here");
  }
}

/// "mysql" or "postgres", by the scheme; empty with a complaint for anything else.
std::string kind_of_database(Fields& fields) {
  const std::string uri = fields.meaning("database.uri");
  for (const auto& [scheme, kind] :
       {std::pair("mysql://", "mysql"), {"postgres://", "postgres"}, {"postgresql://", "postgres"}}) {
    if (uri.rfind(scheme, 0) == 0) {
      return kind;
    }
  }
  if (fields.has("database.uri")) {
    fields.complain("database.uri",
                    uri.empty() ? "must be known to tell MySQL from PostgreSQL: set its variable and convert again"
                                : "must be a valid URL that begins with mysql:// or postgres://");
  }
  return {};
}

void write_url(Fields& fields, TomlText& host) {
  auto uri = fields.text("database.uri", true);
  if (!uri) {
    return;
  }
  // The name of a dialer of outbox-worker, by which alone it used its tunnel.
  const std::string_view dialer = "@mysql+tcp(";
  if (const std::size_t at = uri->text.find(dialer); at != std::string::npos) {
    uri->text.replace(at, dialer.size(), "@tcp(");
  }
  host.string("url", uri->text);
}

/// What only MySQL had there.
void write_tls(Fields& fields, const std::string& name, const std::string& kind, TomlText& host) {
  if (!fields.has("database.tls")) {
    return;
  }
  if (kind == "postgres") {
    for (const char* field : {"database.tls.insecureSkipVerify", "database.tls.serverName", "database.tls.caFile"}) {
      fields.leave_out(field,
                       "outbox-worker passed over it for PostgreSQL; write [outbox." + name + ".tls] to have it");
    }
    return;
  }
  host.table("outbox." + name + ".tls");
  const auto insecure = fields.flag("database.tls.insecureSkipVerify");
  if (insecure.value_or(false)) {
    host.flag("verify", false);
    fields.remark("database.tls.insecureSkipVerify",
                  "the server's certificate is not looked at; `verify = true` mends that");
  }
  copy_path(fields, "database.tls.caFile", host, "ca");
  copy(fields, "database.tls.serverName", host, "server_name");
}

void write_ssh(Fields& fields, const std::string& name, const std::string& kind, TomlText& host) {
  if (!fields.has("database.ssh")) {
    return;
  }
  host.table("outbox." + name + ".ssh");
  if (const auto server = fields.text("database.ssh.host", true)) {
    host.string("host", server->text);
  }
  copy_path(fields, "database.ssh.privateKey", host, "private_key", true);
  if (const auto port = fields.number("database.ssh.port", {1, 65535, "must be a port"})) {
    host.number("port", *port);
  }
  copy(fields, "database.ssh.username", host, "user");
  copy_path(fields, "database.ssh.knownHosts", host, "known_hosts");
  if (const auto algorithms = fields.list("database.ssh.hostKeyAlgorithms"); !algorithms.empty()) {
    host.strings("host_key_algorithms", algorithms);
  }
  if (kind == "postgres") {
    fields.remark("database.ssh", "outbox-worker had no tunnel for PostgreSQL; here it is used");
  } else if (fields.meaning("database.uri").find("@mysql+tcp(") == std::string::npos) {
    fields.remark("database.ssh", "outbox-worker used it only with @mysql+tcp(host:port) in the uri; here it is used");
  }
}

void write_table(Fields& fields, TomlText& host) {
  copy(fields, "outbox.schema", host, "schema");
  copy(fields, "outbox.tableName", host, "table");
  if (const auto producer = fields.text("outbox.producerName", true)) {
    host.string("producer", producer->text);
  }
  if (const auto interval = fields.duration_text("outbox.pollingInterval", kPollingInterval)) {
    host.string("poll_interval", interval->text);
  }
  if (const auto limit = fields.number("outbox.findEventLimit", {0, 10'000, "must be no greater than 10000"});
      limit.value_or(0) > 0) {
    host.number("fetch_limit", *limit);
  }
  if (const auto limit = fields.number("outbox.retryCount", {0, 1000, "must be no greater than 1000"})) {
    if (*limit == 0) {
      fields.remark("outbox.retryCount", "outbox-worker takes 0 for its default of 10; so do the new files");
    } else {
      host.number("retry_limit", *limit);
    }
  }
}

void leave_pool_out(Fields& fields) {
  for (const char* field : {"maxOpenConn", "maxIdleConn", "maxLifeTimeSecond", "maxIdleSecond"}) {
    fields.leave_out(std::string("database.") + field,
                     "a host has a few connections to each outbox, opened again when they end; there is no pool");
  }
}

}  // namespace

void write_outbox(Fields& fields, const std::string& name, TomlText& host) {
  host.table("outbox." + name);
  const std::string kind = kind_of_database(fields);
  host.string("kind", kind);
  write_url(fields, host);
  for (const char* field : {"username", "password"}) {
    if (const auto text = fields.text(std::string("database.") + field, true)) {
      host.string(field, text->text);
    }
  }
  if (fields.has("outbox")) {
    write_table(fields, host);
  } else {
    fields.complain("outbox", "is required");
  }
  write_tls(fields, name, kind, host);
  write_ssh(fields, name, kind, host);
  leave_pool_out(fields);
}

}  // namespace sluice::cli::convert
