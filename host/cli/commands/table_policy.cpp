#include <algorithm>

#include "dynamo/endpoints/endpoint_rules.hpp"
#include "host/cli/command.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/views/terraform.hpp"
#include "host/stores/dynamodb/permissions.hpp"

namespace sluice::cli {

namespace {

using queue::dynamodb::Role;
using queue::dynamodb::WritesBy;

constexpr std::size_t kAccountDigits = 12;

OrExit<std::vector<Role>> named_roles(const Arguments& arguments) {
  std::vector<Role> roles;
  for (const std::string& name : arguments.all("role")) {
    const auto role = queue::dynamodb::role_of(name);
    if (!role) {
      return Exit::usage("--role is host, producer, reader, operator, setup or effects, not \"" + name + "\"");
    }
    if (std::find(roles.begin(), roles.end(), *role) == roles.end()) {
      roles.push_back(*role);
    }
  }
  return roles.empty() ? std::vector<Role>{Role::host} : roles;
}

OrExit<std::string> table_arn(const Arguments& arguments, const TableTarget& target) {
  const std::string account = arguments.get("account", "*");
  if (account != "*" && (account.size() != kAccountDigits ||
                         !std::all_of(account.begin(), account.end(), [](char c) { return c >= '0' && c <= '9'; }))) {
    return Exit::usage("--account is the 12 digits of an AWS account, not \"" + account + "\"");
  }
  const std::string region = target.connection.region.empty() ? "*" : target.connection.region;
  return "arn:" + std::string(dynamo::partition_of(region).name) + ":dynamodb:" + region + ":" + account + ":table/" +
         target.spec.table;
}

std::vector<std::string> actions_of(const std::vector<std::string_view>& names) {
  std::vector<std::string> actions;
  actions.reserve(names.size());
  for (const std::string_view name : names) {
    actions.push_back("dynamodb:" + std::string(name));
  }
  return actions;
}

OrExit<WritesBy> way_of_writing(const Arguments& arguments) {
  const std::string writes = arguments.get("writes", "batched");
  if (writes != "batched" && writes != "single") {
    return Exit::usage("--writes is batched or single, not \"" + writes + "\"");
  }
  return writes == "single" ? WritesBy::singles : WritesBy::batches;
}

std::vector<PolicyStatement> statements_of(const std::vector<Role>& roles, WritesBy writes, const std::string& table,
                                           const queue::dynamodb::TableSpec& spec) {
  std::vector<PolicyStatement> statements;
  for (const Role role : roles) {
    const auto permissions = spec.layout.indexed ? queue::dynamodb::permissions_of(role, writes)
                                                 : queue::dynamodb::leased_permissions_of(role, writes);
    std::string id(to_string(role));
    id.front() = static_cast<char>(id.front() - 'a' + 'A');
    statements.push_back({id + "OnTable", actions_of(permissions.table), table});
    if (!permissions.index.empty()) {
      statements.push_back({id + "OnIndex", actions_of(permissions.index), table + "/index/" + spec.index});
    }
  }
  return statements;
}

std::string json_policy(const std::vector<PolicyStatement>& statements) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("Version", "2012-10-17");
  json.key("Statement");
  json.begin_array();
  for (const PolicyStatement& statement : statements) {
    json.begin_object();
    json.member("Sid", statement.id);
    json.member("Effect", "Allow");
    json.key("Action");
    json.begin_array();
    for (const std::string& action : statement.actions) {
      json.value(action);
    }
    json.end_array();
    json.member("Resource", statement.resource);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take_line();
}

Exit print_policy(const Arguments& arguments, Console& console) {
  SLUICE_TRY(roles, named_roles(arguments));
  const std::string format = arguments.get("format", "json");
  if (format != "json" && format != "terraform") {
    return Exit::usage("--format is json or terraform, not \"" + format + "\"");
  }
  SLUICE_TRY(writes, way_of_writing(arguments));
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(arn, table_arn(arguments, *target));
  const auto statements = statements_of(*roles, *writes, *arn, target->spec);
  if (format == "json") {
    console.out(json_policy(statements));
    return Exit::ok();
  }
  std::string name = "sluice";
  for (const Role role : *roles) {
    name += "_" + std::string(to_string(role));
  }
  console.out(terraform_policy(name, statements));
  return Exit::ok();
}

}  // namespace

Command table_policy_command() {
  return {
      .name = "table policy",
      .group = "Tables",
      .summary = "Print the least privileges that a role needs on a table",
      .usage = "(--queue QUEUE | --table TABLE) [--role ROLE]... [OPTION]...",
      .description =
          "The roles are host (sluice run), producer (sends), reader (looks, changes nothing), operator (every "
          "command on messages) and setup (table create). Nothing is asked of AWS. Without --account and a region "
          "the policy holds for the table of that name in every account and region of its user. With --writes single "
          "it needs no PartiQL, as DynamoMQ's own policy: each message is then written by about 3 requests of its "
          "own, in place of a share of a batch.",
      .flags = with_table_flags(
          {{.name = "role",
            .value = "host|producer|reader|operator|setup|effects",
            .help = "whose privileges; may be repeated [default: host]",
            .repeated = true},
           {.name = "writes",
            .value = "batched|single",
            .help = "with PartiQL's batches, or by single requests [default: batched]"},
           {.name = "account", .value = "ACCOUNT", .help = "the AWS account that owns the table, 12 digits"},
           {.name = "format", .value = "json|terraform", .help = "how to print it [default: json]"}}),
      .examples =
          "sluice table policy --queue orders --role host --account 123456789012\n"
          "sluice table policy --table orders --role producer --format terraform",
      .run = print_policy,
  };
}

}  // namespace sluice::cli
