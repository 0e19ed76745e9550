#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Outboxes as host and job files describe them. Values.
namespace sluice::config {

enum class OutboxKind { postgres, mysql, dynamodb };

/// The names of an outbox table's columns.
struct OutboxColumns {
  std::string id = "id";
  std::string aggregate_type = "aggregate_type";
  std::string aggregate_id = "aggregate_id";
  std::string event = "event";
  std::string payload = "payload";
  std::string retry_at = "retry_at";
  std::string retry_count = "retry_count";
  std::string sent_at = "sent_at";
  std::string created_at;  ///< empty: there is none
  std::string last_error;  ///< empty: there is none

  friend bool operator==(const OutboxColumns&, const OutboxColumns&) = default;
};

struct OutboxTls {
  bool verify = true;
  std::string ca;
  std::string server_name;
  std::string certificate;
  std::string key;

  friend bool operator==(const OutboxTls&, const OutboxTls&) = default;
};

/// The SSH server through which the database is reached.
struct OutboxSsh {
  std::string host;
  std::uint32_t port = 22;
  std::string user;
  std::string private_key;
  std::string known_hosts;  ///< empty: ~/.ssh/known_hosts
  std::vector<std::string> host_key_algorithms{"ssh-ed25519"};
  bool check_host_key = true;

  friend bool operator==(const OutboxSsh&, const OutboxSsh&) = default;
};

/// [outbox.NAME] of a host file.
struct OutboxConfig {
  OutboxKind kind = OutboxKind::postgres;
  std::string url;       ///< holds a password as a rule: never to be shown
  std::string username;  ///< not empty: wins over the URL's
  std::string password;
  std::string schema;
  std::string table = "outbox";
  std::string producer;  ///< goes out as attribute `producer`; empty: the table's id
  std::chrono::nanoseconds poll_interval = std::chrono::seconds(5);
  std::uint32_t fetch_limit = 1000;
  std::chrono::nanoseconds lease = std::chrono::seconds(15);
  std::uint32_t buckets = 64;
  std::uint32_t retry_limit = 10;
  bool compat = false;      ///< compat = "outbox-worker": what has been sent is published again, as the original does
  bool side_table = false;  ///< coordination = "table"
  std::chrono::nanoseconds lag_limit{};  ///< a row that is due longer makes the host not ready; zero: none does
  std::vector<std::string> attributes;
  OutboxColumns columns;
  std::optional<OutboxTls> tls;
  std::optional<OutboxSsh> ssh;
  std::string region;  ///< DynamoDB, as the next one
  std::string endpoint;

  friend bool operator==(const OutboxConfig&, const OutboxConfig&) = default;
};

/// [job.outbox]: which rows the job takes. Empty lists: all.
struct OutboxFilter {
  std::vector<std::string> types;
  std::vector<std::string> deny_types;
  std::vector<std::string> events;
  std::vector<std::string> skip_events;

  friend bool operator==(const OutboxFilter&, const OutboxFilter&) = default;
};

inline constexpr std::string_view kOutboxPrefix = "outbox:";

/// NAME of "outbox:NAME"; nothing for the name of a queue.
inline std::optional<std::string> outbox_named(std::string_view queue) {
  return queue.starts_with(kOutboxPrefix) ? std::optional(std::string(queue.substr(kOutboxPrefix.size())))
                                          : std::nullopt;
}

}  // namespace sluice::config
