#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/stores/dynamodb/table.hpp"

/// Tables and policies as Terraform has them. Pure functions; the names in them are checked by whoever calls.
namespace sluice::cli {

/// One statement of a policy. A value.
struct PolicyStatement {
  std::string id;                    ///< letters and digits
  std::vector<std::string> actions;  ///< "dynamodb:Query"
  std::string resource;              ///< an ARN
};

/// A resource "aws_dynamodb_table".
std::string terraform_table(const queue::dynamodb::TableSpec& spec);

/// A data "aws_iam_policy_document" of that name.
std::string terraform_policy(std::string_view name, const std::vector<PolicyStatement>& statements);

/// What Terraform takes as a name: everything else becomes '_'.
std::string terraform_name(std::string_view text);

}  // namespace sluice::cli
