#pragma once

#include <forward_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/dynamodb_model/expressions.hpp"
#include "tests/support/dynamodb_model/values.hpp"

namespace sluice::test::model {

using Names = std::map<std::string, std::string, std::less<>>;

/// What placeholders stand for. Borrowed; null: none.
struct Bindings {
  const Names* names = nullptr;
  const Item* values = nullptr;
  const std::vector<AttributeValue>* parameters = nullptr;

  /// The attribute that a step names. Throws a Failure for a placeholder that nobody defined.
  const std::string& name_of(const PathStep& step) const;
};

/// Whether the item fulfils the condition. An absent item is an empty one. Throws Failures.
bool holds(const Condition& condition, const Item& item, const Bindings& bindings);

/// Refuses an update that names a path twice, or a path inside of another. Throws a Failure.
void check_overlaps(const Update& update, const Bindings& bindings);

/// The item after the update; operands see the item as it was. Throws Failures. `top` gets the names of the attributes
/// that the update is about.
Item updated(const Update& update, const Item& item, const Bindings& bindings, std::set<std::string>* top = nullptr);

/// What is at the paths, in the shape of the item.
Item projected(const std::vector<Path>& paths, const Item& item, const Bindings& bindings);

/// What is at a path; null when nothing is.
const AttributeValue* find_path(const Path& path, const Item& item, const Bindings& bindings);

/// Computes operands against one item. What it gives holds as long as it and the item do.
class Evaluator {
 public:
  Evaluator(const Item& item, const Bindings& bindings) : item_(item), bindings_(bindings) {}
  /// Null: the operand names what is not there.
  const AttributeValue* operator()(const Operand& operand);

 private:
  const AttributeValue* keep(AttributeValue value);
  const AttributeValue* size(const Operand& operand);
  const AttributeValue* computed(const Operand& operand);
  const AttributeValue& argument(const Operand& operand, std::size_t i);

  const Item& item_;
  const Bindings& bindings_;
  std::forward_list<AttributeValue> computed_;
};

// Of sets; throw a Failure when the values are no sets of one kind.
AttributeValue set_union(const AttributeValue& a, const AttributeValue& b);
/// Empty optional: nothing is left.
std::optional<AttributeValue> set_difference(const AttributeValue& a, const AttributeValue& b);

}  // namespace sluice::test::model
