#include "host/cli/views/terraform.hpp"

#include "host/stores/dynamomq/schema.hpp"

namespace sluice::cli {

namespace {

namespace attribute = queue::dynamomq::attribute;

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string attribute_block(std::string_view name) {
  return "\n  attribute {\n    name = " + quoted(name) + "\n    type = \"S\"\n  }\n";
}

}  // namespace

std::string terraform_name(std::string_view text) {
  std::string name;
  for (const char byte : text) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool digit = byte >= '0' && byte <= '9';
    if (name.empty() && digit) {
      name += '_';
    }
    name += letter || digit ? byte : '_';
  }
  return name;
}

std::string terraform_table(const queue::dynamodb::TableSpec& spec) {
  std::string text = "resource \"aws_dynamodb_table\" " + quoted(terraform_name(spec.table)) + " {\n";
  text += "  name                        = " + quoted(spec.table) + "\n";
  text += "  billing_mode                = \"PAY_PER_REQUEST\"\n";
  text += "  hash_key                    = " + quoted(spec.layout.hash_key) + "\n";
  if (!spec.layout.range_key.empty()) {
    text += "  range_key                   = " + quoted(spec.layout.range_key) + "\n";
  }
  text += std::string("  deletion_protection_enabled = ") + (spec.deletion_protection ? "true" : "false") + "\n";
  for (const auto name : queue::dynamodb::key_attributes(spec.layout)) {
    text += attribute_block(name);
  }
  if (spec.layout.indexed) {
    text += "\n  global_secondary_index {\n";
    text += "    name            = " + quoted(spec.index) + "\n";
    text += "    hash_key        = " + quoted(attribute::kQueueType) + "\n";
    text += "    range_key       = " + quoted(attribute::kSentAt) + "\n";
    text += "    projection_type = \"ALL\"\n  }\n";
  }
  if (spec.ttl) {
    text += "\n  ttl {\n    attribute_name = " + quoted(spec.layout.expires) + "\n    enabled        = true\n  }\n";
  }
  text += "}\n";
  return text;
}

std::string terraform_policy(std::string_view name, const std::vector<PolicyStatement>& statements) {
  std::string text = "data \"aws_iam_policy_document\" " + quoted(name) + " {\n";
  for (const PolicyStatement& statement : statements) {
    text += &statement == statements.data() ? "" : "\n";
    text += "  statement {\n    sid = " + quoted(statement.id) + "\n\n    actions = [\n";
    for (const std::string& action : statement.actions) {
      text += "      " + quoted(action) + ",\n";
    }
    text += "    ]\n\n    resources = [" + quoted(statement.resource) + "]\n  }\n";
  }
  return text + "}\n";
}

}  // namespace sluice::cli
