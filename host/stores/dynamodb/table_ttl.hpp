#pragma once

#include <optional>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamodb/table_findings.hpp"

/// DynamoDB's own removal of items whose time has passed. What marks and keys say is judged by their time, not by
/// whether they are there: without it nothing goes wrong, but what is void stays and is paid for.
namespace sluice::queue::dynamodb {

/// What is not right about a table's TTL; nothing: it removes void marks and keys.
std::optional<table::TableFinding> examine_ttl(dynamo::Client& client, const TableSpec& spec, Deadline deadline);

/// Switches it on where it is off. What is not right afterwards; nothing: it is on.
std::optional<table::TableFinding> switch_ttl_on(dynamo::Client& client, const TableSpec& spec, Deadline deadline);

}  // namespace sluice::queue::dynamodb
