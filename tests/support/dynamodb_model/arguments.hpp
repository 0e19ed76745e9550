#pragma once

#include <boost/json.hpp>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/support/dynamodb_model/evaluate.hpp"
#include "tests/support/dynamodb_model/expressions.hpp"
#include "tests/support/dynamodb_model/partiql.hpp"

namespace sluice::test::model {

/// The members of a request, or of a part of one. Borrows the JSON. Throws Failures.
class Arguments {
 public:
  /// Refuses members that the model does not know, rather than act as if they were not there.
  Arguments(const boost::json::value& json, std::initializer_list<std::string_view> known);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Null when absent.
  const boost::json::value* find(std::string_view name) const;
  const boost::json::value& required(std::string_view name) const;
  std::string required_text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  bool flag(std::string_view name) const;
  std::optional<long long> integer(std::string_view name) const;
  Item required_item(std::string_view name) const;
  std::optional<Item> item(std::string_view name) const;
  const boost::json::array& required_array(std::string_view name) const;
  const boost::json::object& required_object(std::string_view name) const;

 private:
  const boost::json::object* object_ = nullptr;
};

/// Trees by their texts: most requests say what others said before.
class ExpressionCache {
 public:
  template <typename Tree>
  using Ptr = std::shared_ptr<const Parsed<Tree>>;

  Ptr<Condition> condition(const std::string& text, std::string_view language);
  Ptr<Update> update(const std::string& text);
  Ptr<std::vector<Path>> projection(const std::string& text);
  std::shared_ptr<const PartiqlStatement> statement(const std::string& text);

 private:
  template <typename Value>
  using ByText = std::unordered_map<std::string, std::shared_ptr<const Value>>;
  ByText<Parsed<Condition>> conditions_;
  ByText<Parsed<Update>> updates_;
  ByText<Parsed<std::vector<Path>>> projections_;
  ByText<PartiqlStatement> statements_;
};

/// All expressions of a request and what their placeholders stand for.
class Expressions {
 public:
  /// Checks that every placeholder is defined and used. Throws Failures.
  Expressions(const Arguments& arguments, ExpressionCache& cache);
  Expressions(const Expressions&) = delete;
  Expressions& operator=(const Expressions&) = delete;

  const Condition* condition() const { return condition_ ? &condition_->tree : nullptr; }
  const Condition* key_condition() const { return key_condition_ ? &key_condition_->tree : nullptr; }
  const Condition* filter() const { return filter_ ? &filter_->tree : nullptr; }
  const Update* update() const { return update_ ? &update_->tree : nullptr; }
  const std::vector<Path>* projection() const { return projection_ ? &projection_->tree : nullptr; }
  Bindings bindings() const { return {&names_, &values_, nullptr}; }

 private:
  void read_placeholders(const Arguments& arguments);
  void check_defined(const Used& used, std::string_view language) const;
  void check_used() const;

  Names names_;
  Item values_;
  ExpressionCache::Ptr<Condition> condition_;
  ExpressionCache::Ptr<Condition> key_condition_;
  ExpressionCache::Ptr<Condition> filter_;
  ExpressionCache::Ptr<Update> update_;
  ExpressionCache::Ptr<std::vector<Path>> projection_;
};

}  // namespace sluice::test::model
