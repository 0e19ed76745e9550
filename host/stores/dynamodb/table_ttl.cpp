#include "host/stores/dynamodb/table_ttl.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "host/stores/table/key_items.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamodb {
namespace {

table::TableFinding advice(std::string what, std::string mend) {
  return {table::FindingLevel::advice, std::move(what), std::move(mend)};
}

/// Why its TTL can be neither looked at nor switched on.
table::TableFinding out_of_reach(const TableSpec& spec, const dynamo::Error& error, std::string_view what,
                                 std::string_view action) {
  if (error.exception_name.find("UnknownOperation") != std::string::npos) {
    return advice("this endpoint knows no TTL, so that void marks and keys stay in the table",
                  "nothing goes wrong by that; on AWS they go");
  }
  if (error.kind == dynamo::ErrorKind::access_denied) {
    return advice("the table's TTL could not be " + std::string(what) + ": " + error.message,
                  "allow dynamodb:" + std::string(action) + ", or have somebody switch it on who may");
  }
  return advice("the table's TTL could not be " + std::string(what) + ": " +
                    table::store_error({spec.table, spec.table, spec.index, {}}, error).message(),
                "try again");
}

std::optional<table::TableFinding> finding_of(const dynamo::TimeToLive& ttl, const TableSpec& spec) {
  const std::string ours(spec.layout.expires);
  if (!ttl.on()) {
    return advice("DynamoDB's TTL is off, so that void marks and keys stay in the table and are paid for",
                  "switch it on by the attribute " + ours + ", as `sluice table create` does");
  }
  if (ttl.attribute != ours) {
    return advice("DynamoDB's TTL goes by the attribute '" + ttl.attribute +
                      "', so that void marks and keys stay in the table and are paid for",
                  "a table has one attribute for it: if nothing needs that one, switch it off and on again by " + ours);
  }
  return std::nullopt;
}

}  // namespace

std::optional<table::TableFinding> examine_ttl(dynamo::Client& client, const TableSpec& spec, Deadline deadline) {
  const auto ttl = client.describe_time_to_live(spec.table, deadline);
  return ttl ? finding_of(*ttl, spec) : out_of_reach(spec, ttl.error(), "looked at", "DescribeTimeToLive");
}

std::optional<table::TableFinding> switch_ttl_on(dynamo::Client& client, const TableSpec& spec, Deadline deadline) {
  const auto before = client.describe_time_to_live(spec.table, deadline);
  if (before && before->on()) {
    return finding_of(*before, spec);
  }
  // A role may switch it on that may not look.
  const auto made = client.enable_time_to_live(spec.table, std::string(spec.layout.expires), deadline);
  if (made) {
    return std::nullopt;
  }
  if (made.error().kind == dynamo::ErrorKind::validation || table::outcome_unknown(made.error())) {
    return examine_ttl(client, spec, deadline);  // Somebody else has switched it on, or an earlier try.
  }
  return out_of_reach(spec, made.error(), "switched on", "UpdateTimeToLive");
}

}  // namespace sluice::queue::dynamodb
