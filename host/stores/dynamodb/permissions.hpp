#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::queue::dynamodb {

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
