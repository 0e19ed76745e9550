#pragma once

#include <utility>
#include <vector>

namespace sluice::test::model {

/// An expression that RandomRequests asks with, and its placeholders.
struct ExpressionTemplate {
  const char* expression;
  std::vector<std::pair<const char*, const char*>> names;
  /// Of updates ":n": a number, ":s": text, ":l": a list, ":t": a set of strings. Of conditions ":cn" and ":cm":
  /// numbers,
  /// ":cs": text, ":ct": a type's name.
  std::vector<const char*> values;
};

const std::vector<ExpressionTemplate>& update_templates();
const std::vector<ExpressionTemplate>& condition_templates();

}  // namespace sluice::test::model
