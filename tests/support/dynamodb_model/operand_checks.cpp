#include "tests/support/dynamodb_model/operand_checks.hpp"

#include <map>
#include <string>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

constexpr std::string_view kComparable = " S N B ";
constexpr std::string_view kTexts = " S B ";
constexpr std::string_view kNumber = " N ";
constexpr std::string_view kList = " L ";
constexpr std::string_view kSets = " SS NS BS ";
constexpr std::string_view kAddable = " N SS NS BS ";
constexpr std::string_view kTypes = " S N B SS NS BS BOOL NULL L M ";

std::string in_words(std::string_view type) {
  static const std::map<std::string_view, std::string> words = {
      {"S", "STRING"}, {"N", "NUMBER"}, {"B", "BINARY"}, {"L", "LIST"}, {"M", "MAP"}};
  const auto found = words.find(type);
  return found == words.end() ? std::string(type) : found->second;
}

// Values only: what a path leads to is known when there is an item.
void require(const Operand& operand, std::string_view types, std::string_view what, std::string_view language,
             const Bindings& bindings) {
  if (operand.kind != Operand::Kind::value) {
    return;
  }
  const std::string_view type = type_of(bindings.values->find(operand.name)->second);
  if (types.find(" " + std::string(type) + " ") == std::string_view::npos) {
    throw validation("Invalid " + std::string(language) +
                     ": Incorrect operand type for operator or function; operator or function: " + std::string(what) +
                     ", operand type: " + in_words(type));
  }
}

std::string_view name_of(Condition::Kind kind) {
  static const std::map<Condition::Kind, std::string_view> names = {
      {Condition::Kind::less, "<"},          {Condition::Kind::at_most, "<="},
      {Condition::Kind::greater, ">"},       {Condition::Kind::at_least, ">="},
      {Condition::Kind::between, "BETWEEN"}, {Condition::Kind::begins_with, "begins_with"},
  };
  const auto found = names.find(kind);
  return found == names.end() ? std::string_view() : found->second;
}

void check_type_name(const Condition& condition, std::string_view language, const Bindings& bindings) {
  const Operand& operand = condition.operands[1];
  require(operand, " S ", "attribute_type", language, bindings);
  if (operand.kind != Operand::Kind::value) {
    return;
  }
  const std::string& type = *bindings.values->find(operand.name)->second.get<std::string>();
  if (kTypes.find(" " + type + " ") == std::string_view::npos) {
    throw validation("Invalid " + std::string(language) + ": Invalid attribute type name found; type: " + type +
                     ", valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}");
  }
}

void check_sum(const Operand& operand, const Bindings& bindings) {
  std::string_view types;
  std::string_view what;
  if (operand.kind == Operand::Kind::plus || operand.kind == Operand::Kind::minus) {
    types = kNumber;
    what = operand.kind == Operand::Kind::plus ? "+" : "-";
  } else if (operand.kind == Operand::Kind::list_append) {
    types = kList;
    what = "list_append";
  }
  for (const Operand& argument : operand.arguments) {
    if (!what.empty()) {
      require(argument, types, what, "UpdateExpression", bindings);
    }
    check_sum(argument, bindings);
  }
}

}  // namespace

void check_operands(const Condition& condition, std::string_view language, const Bindings& bindings) {
  for (const Condition& child : condition.children) {
    check_operands(child, language, bindings);
  }
  if (condition.kind == Condition::Kind::has_type) {
    check_type_name(condition, language, bindings);
  } else if (const std::string_view name = name_of(condition.kind); !name.empty()) {
    for (const Operand& operand : condition.operands) {
      require(operand, condition.kind == Condition::Kind::begins_with ? kTexts : kComparable, name, language, bindings);
    }
  }
}

void check_operands(const Update& update, const Bindings& bindings) {
  for (const Update::Action& action : update.set) {
    check_sum(action.operand, bindings);
  }
  for (const Update::Action& action : update.add) {
    require(action.operand, kAddable, "ADD", "UpdateExpression", bindings);
  }
  for (const Update::Action& action : update.erase) {
    require(action.operand, kSets, "DELETE", "UpdateExpression", bindings);
  }
}

}  // namespace sluice::test::model
