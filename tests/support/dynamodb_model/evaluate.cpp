#include "tests/support/dynamodb_model/evaluate.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/numbers.hpp"

namespace sluice::test::model {
namespace {

const std::vector<std::string>* elements_of(const AttributeValue& value) {
  if (const auto* set = value.get<dynamo::StringSet>()) {
    return &set->values;
  }
  if (const auto* set = value.get<dynamo::NumberSet>()) {
    return &set->values;
  }
  const auto* set = value.get<dynamo::BinarySet>();
  return set == nullptr ? nullptr : &set->values;
}

AttributeValue set_like(const AttributeValue& model, std::vector<std::string> values) {
  if (model.is<dynamo::StringSet>()) {
    return dynamo::StringSet{std::move(values)};
  }
  return model.is<dynamo::NumberSet>() ? AttributeValue(dynamo::NumberSet{std::move(values)})
                                       : AttributeValue(dynamo::BinarySet{std::move(values)});
}

Failure wrong_type() { return validation("An operand in the update expression has an incorrect data type"); }

void check_sets(const AttributeValue& a, const AttributeValue& b) {
  if (elements_of(a) == nullptr || a.variant().index() != b.variant().index()) {
    throw wrong_type();
  }
}

bool is_in(const std::vector<std::string>& values, const std::string& wanted) {
  return std::find(values.begin(), values.end(), wanted) != values.end();
}

bool contains(const AttributeValue& whole, const AttributeValue& part) {
  if (const auto* list = whole.get<dynamo::List>()) {
    return std::find(list->begin(), list->end(), part) != list->end();
  }
  if (const auto* text = whole.get<std::string>()) {
    const auto* wanted = part.get<std::string>();
    return wanted != nullptr && text->find(*wanted) != std::string::npos;
  }
  if (const auto* binary = whole.get<dynamo::Binary>()) {
    const auto* wanted = part.get<dynamo::Binary>();
    return wanted != nullptr && binary->bytes.find(wanted->bytes) != std::string::npos;
  }
  if (whole.is<dynamo::StringSet>() && part.is<std::string>()) {
    return is_in(*elements_of(whole), *part.get<std::string>());
  }
  if (whole.is<dynamo::NumberSet>() && part.is<dynamo::Number>()) {
    return is_in(*elements_of(whole), part.get<dynamo::Number>()->text);
  }
  return whole.is<dynamo::BinarySet>() && part.is<dynamo::Binary>() &&
         is_in(*elements_of(whole), part.get<dynamo::Binary>()->bytes);
}

bool begins_with(const AttributeValue& whole, const AttributeValue& start) {
  const auto* text = whole.get<std::string>();
  if (const auto* wanted = start.get<std::string>(); text != nullptr && wanted != nullptr) {
    return text->compare(0, wanted->size(), *wanted) == 0;
  }
  const auto* binary = whole.get<dynamo::Binary>();
  const auto* wanted = start.get<dynamo::Binary>();
  return binary != nullptr && wanted != nullptr && binary->bytes.compare(0, wanted->bytes.size(), wanted->bytes) == 0;
}

bool in_order(Condition::Kind kind, const AttributeValue* a, const AttributeValue* b) {
  const auto order = a != nullptr && b != nullptr ? compare(*a, *b) : std::nullopt;
  if (!order) {
    return false;
  }
  switch (kind) {
    case Condition::Kind::less:
      return *order < 0;
    case Condition::Kind::at_most:
      return *order <= 0;
    case Condition::Kind::greater:
      return *order > 0;
    default:
      return *order >= 0;
  }
}

bool equal(const AttributeValue* a, const AttributeValue* b) { return a != nullptr && b != nullptr && *a == *b; }

bool holds_with(const Condition& condition, Evaluator& value, const Item& item, const Bindings& bindings) {
  using Kind = Condition::Kind;
  const auto operand = [&](std::size_t i) { return value(condition.operands[i]); };
  const auto child = [&](const Condition& inner) { return holds_with(inner, value, item, bindings); };
  switch (condition.kind) {
    case Kind::all:
      return std::all_of(condition.children.begin(), condition.children.end(), child);
    case Kind::any:
      return std::any_of(condition.children.begin(), condition.children.end(), child);
    case Kind::negate:
      return !child(condition.children.front());
    case Kind::equal:
      return equal(operand(0), operand(1));
    case Kind::differs:
      return !equal(operand(0), operand(1));
    case Kind::less:
    case Kind::at_most:
    case Kind::greater:
    case Kind::at_least:
      return in_order(condition.kind, operand(0), operand(1));
    case Kind::between:
      return in_order(Kind::at_least, operand(0), operand(1)) && in_order(Kind::at_most, operand(0), operand(2));
    case Kind::in:
      return std::any_of(condition.operands.begin() + 1, condition.operands.end(),
                         [&](const Operand& other) { return equal(operand(0), value(other)); });
    case Kind::exists:
      return operand(0) != nullptr;
    case Kind::not_exists:
      return operand(0) == nullptr;
    default:
      break;
  }
  const AttributeValue* first = operand(0);
  const AttributeValue* second = operand(1);
  if (first == nullptr || second == nullptr) {
    return false;
  }
  if (condition.kind == Kind::has_type) {
    const auto* type = second->get<std::string>();
    return type != nullptr && *type == type_of(*first);
  }
  return condition.kind == Kind::begins_with ? begins_with(*first, *second) : contains(*first, *second);
}

}  // namespace

const std::string& Bindings::name_of(const PathStep& step) const {
  if (!step.placeholder) {
    return step.name;
  }
  const auto found = names == nullptr ? Names::const_iterator() : names->find(step.name);
  if (names == nullptr || found == names->end()) {
    throw validation("An expression attribute name used in the document path is not defined; attribute name: " +
                     step.name);
  }
  return found->second;
}

const AttributeValue* find_path(const Path& path, const Item& item, const Bindings& bindings) {
  const auto top = item.find(bindings.name_of(path.front()));
  const AttributeValue* at = top == item.end() ? nullptr : &top->second;
  for (auto step = path.begin() + 1; step != path.end() && at != nullptr; ++step) {
    if (step->index >= 0) {
      const auto* list = at->get<dynamo::List>();
      const auto index = static_cast<std::size_t>(step->index);
      at = list != nullptr && index < list->size() ? &(*list)[index] : nullptr;
    } else {
      const auto* map = at->get<dynamo::Map>();
      const auto found = map == nullptr ? dynamo::Map::const_iterator() : map->find(bindings.name_of(*step));
      at = map != nullptr && found != map->end() ? &found->second : nullptr;
    }
  }
  return at;
}

bool holds(const Condition& condition, const Item& item, const Bindings& bindings) {
  Evaluator value(item, bindings);
  return holds_with(condition, value, item, bindings);
}

AttributeValue set_union(const AttributeValue& a, const AttributeValue& b) {
  check_sets(a, b);
  std::vector<std::string> values = *elements_of(a);
  for (const std::string& value : *elements_of(b)) {
    if (!is_in(values, value)) {
      values.push_back(value);
    }
  }
  const bool numbers = a.is<dynamo::NumberSet>();
  std::sort(values.begin(), values.end(), [numbers](const std::string& x, const std::string& y) {
    return numbers ? compare_numbers(x, y) < 0 : x < y;
  });
  return set_like(a, std::move(values));
}

std::optional<AttributeValue> set_difference(const AttributeValue& a, const AttributeValue& b) {
  check_sets(a, b);
  std::vector<std::string> values;
  std::copy_if(elements_of(a)->begin(), elements_of(a)->end(), std::back_inserter(values),
               [&](const std::string& value) { return !is_in(*elements_of(b), value); });
  return values.empty() ? std::nullopt : std::optional(set_like(a, std::move(values)));
}

const AttributeValue* Evaluator::keep(AttributeValue value) {
  computed_.push_front(std::move(value));
  return &computed_.front();
}

const AttributeValue* Evaluator::operator()(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::path:
      return find_path(operand.path, item_, bindings_);
    case Operand::Kind::literal:
      return &operand.literal;
    case Operand::Kind::value: {
      const auto found = bindings_.values->find(operand.name);
      return &found->second;
    }
    case Operand::Kind::parameter:
      return &(*bindings_.parameters)[operand.parameter];
    case Operand::Kind::size:
      return size(operand);
    case Operand::Kind::if_not_exists: {
      const AttributeValue* there = (*this)(operand.arguments[0]);
      return there != nullptr ? there : (*this)(operand.arguments[1]);
    }
    default:
      return computed(operand);
  }
}

const AttributeValue* Evaluator::size(const Operand& operand) {
  const AttributeValue* value = (*this)(operand.arguments.front());
  if (value == nullptr) {
    return nullptr;
  }
  std::size_t size = 0;
  if (const auto* text = value->get<std::string>()) {
    size = text->size();
  } else if (const auto* binary = value->get<dynamo::Binary>()) {
    size = binary->bytes.size();
  } else if (const auto* list = value->get<dynamo::List>()) {
    size = list->size();
  } else if (const auto* map = value->get<dynamo::Map>()) {
    size = map->size();
  } else if (const auto* elements = elements_of(*value)) {
    size = elements->size();
  } else {
    return nullptr;
  }
  return keep(AttributeValue::number(static_cast<long long>(size)));
}

const AttributeValue& Evaluator::argument(const Operand& operand, std::size_t i) {
  const AttributeValue* value = (*this)(operand.arguments[i]);
  if (value == nullptr) {
    throw validation("The provided expression refers to an attribute that does not exist in the item");
  }
  return *value;
}

const AttributeValue* Evaluator::computed(const Operand& operand) {
  const AttributeValue& a = argument(operand, 0);
  const AttributeValue& b = argument(operand, 1);
  if (operand.kind == Operand::Kind::set_add) {
    return keep(set_union(a, b));
  }
  if (operand.kind == Operand::Kind::set_delete) {
    auto left = set_difference(a, b);
    return left ? keep(std::move(*left)) : nullptr;
  }
  if (operand.kind == Operand::Kind::list_append) {
    const auto* first = a.get<dynamo::List>();
    const auto* second = b.get<dynamo::List>();
    if (first == nullptr || second == nullptr) {
      throw wrong_type();
    }
    dynamo::List list = *first;
    list.insert(list.end(), second->begin(), second->end());
    return keep(std::move(list));
  }
  const auto* x = a.get<dynamo::Number>();
  const auto* y = b.get<dynamo::Number>();
  if (x == nullptr || y == nullptr) {
    throw wrong_type();
  }
  return keep(dynamo::Number{operand.kind == Operand::Kind::plus ? add_numbers(x->text, y->text)
                                                                 : subtract_numbers(x->text, y->text)});
}

}  // namespace sluice::test::model
