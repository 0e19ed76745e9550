#pragma once

#include <array>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamodb {

/// What a layout's table is like. A value; the views are of literals.
struct TableLayout {
  std::string_view name;  ///< as host files have it
  const table::LayoutNames* names;
  bool indexed;  ///< it has DynamoMQ's index

  friend bool operator==(const TableLayout&, const TableLayout&) = default;
};
inline constexpr TableLayout kDynamoMqLayout{.name = "dynamomq", .names = &dynamomq::kNames, .indexed = true};
/// Of queues whose shards hosts own (host/stores/leased).
inline constexpr TableLayout kLeasedLayout{.name = "leased", .names = &leased::kNames, .indexed = false};

/// The table that a queue needs, paid for by request.
struct TableSpec {
  std::string table{dynamomq::kDefaultTableName};
  std::string index{dynamomq::kDefaultIndexName};  ///< of a layout that has one
  TableLayout layout = kDynamoMqLayout;
  bool deletion_protection =
      true;         ///< as in DynamoMQ's own table definition; left out where the endpoint knows no such thing
  bool ttl = true;  ///< DynamoDB removes void marks and keys; said by whoever defines the table, see switch_ttl_on
};

/// The attributes that its keys and its index name, all of them text.
std::vector<std::string_view> key_attributes(const TableLayout& layout);

enum class TableOutcome {
  created,
  exists,  ///< it was there already, and is right
};

/// Makes the table and waits until it and its index are ACTIVE. A table that is there and right is a success; one that
/// is there and wrong is ErrorCode::invalid with every difference. `stop` ends the wait (ErrorCode::cancelled), the
/// deadline too (ErrorCode::timeout); the table comes into being all the same.
Result<TableOutcome> create_queue_table(dynamo::Client& client, const TableSpec& spec, const Clock& clock,
                                        Deadline deadline, const std::stop_token& stop = {});

/// Whether the table is there, ACTIVE and has the keys, types, index and projection that a queue needs.
Result<void> check_table(dynamo::Client& client, const TableSpec& spec, Deadline deadline);

/// Compares a table with what a queue needs: DynamoMQ's keys, types, index and projection. Empty: all is well. What
/// keeps it from holding a queue comes first.
std::vector<table::TableFinding> examine_table(const dynamo::TableDescription& table, const TableSpec& spec);

// DynamoDB's own removal of items whose time has passed. What marks and keys say is judged by their time, not by
// whether they are there: without it nothing goes wrong, but what is void stays and is paid for.

/// What is not right about a table's TTL; nothing: it removes void marks and keys.
std::optional<table::TableFinding> examine_ttl(dynamo::Client& client, const TableSpec& spec, Deadline deadline);

/// Switches it on where it is off. What is not right afterwards; nothing: it is on.
std::optional<table::TableFinding> switch_ttl_on(dynamo::Client& client, const TableSpec& spec, Deadline deadline);

/// Who works with a table.
enum class Role {
  host,        ///< `sluice run`: claims and settles
  producer,    ///< sends
  reader,      ///< looks, and changes nothing
  operations,  ///< every command on messages; its name is "operator"
  setup,       ///< `sluice table create`
  effects,     ///< `sluice run`, on a table of the user's that handlers write items of: as part of transactions
};

inline constexpr std::array<Role, 6> kRoles{Role::host,       Role::producer, Role::reader,
                                            Role::operations, Role::setup,    Role::effects};

std::string_view to_string(Role role);
/// Nothing for a name that no role has.
std::optional<Role> role_of(std::string_view name);

/// How messages are written.
enum class WritesBy {
  batches,  ///< of PartiQL statements
  singles,  ///< by requests of their own, where a policy allows no PartiQL; as DynamoMQ's own does
};

/// The IAM actions of a role, without "dynamodb:", each in the order of the alphabet.
struct Permissions {
  std::vector<std::string_view> table;  ///< on the table itself
  std::vector<std::string_view> index;  ///< on its index
};

/// What queues in DynamoMQ's layout ask for in that role, and no more. A request that is added there must be added
/// here: a test compares.
Permissions permissions_of(Role role, WritesBy writes = WritesBy::batches);
/// The same on a table of the leased layout: it has no index, reads are queries of the table, and hosts look who owns
/// what and move messages in transactions.
Permissions leased_permissions_of(Role role, WritesBy writes = WritesBy::batches);

}  // namespace sluice::queue::dynamodb
