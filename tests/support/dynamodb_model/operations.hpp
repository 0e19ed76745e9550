#pragma once

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/support/dynamodb_model/arguments.hpp"
#include "tests/support/dynamodb_model/database.hpp"
#include "tests/support/dynamodb_model/faults.hpp"

namespace sluice::test::model {

/// What the operations of one request work with.
struct Context {
  Database& database;
  ExpressionCache& cache;
  Faults& faults;
  /// Throws an AccessDeniedException for an action ("dynamodb:Query") that the caller may not do.
  std::function<void(std::string_view action, const std::string& table)> allow;
  Usage usage;  ///< of this request
};

// Each gives the body of its answer, or throws a Failure.
std::string get_item(Context& context, const boost::json::value& request);
std::string put_item(Context& context, const boost::json::value& request);
std::string update_item(Context& context, const boost::json::value& request);
std::string delete_item(Context& context, const boost::json::value& request);
std::string query(Context& context, const boost::json::value& request);
std::string scan(Context& context, const boost::json::value& request);
std::string batch_get_item(Context& context, const boost::json::value& request);
std::string batch_write_item(Context& context, const boost::json::value& request);
std::string execute_statement(Context& context, const boost::json::value& request);
std::string batch_execute_statement(Context& context, const boost::json::value& request);
std::string create_table(Context& context, const boost::json::value& request);
std::string describe_table(Context& context, const boost::json::value& request);

/// Table of a request's TableName, which may be an ARN; checks the permission for it.
Table& table_of(Context& context, const Arguments& arguments, std::string_view action);

/// {"Attributes": ...} of a finished write, as `return_values` asks; empty when it asks for nothing.
Item returned(const Change& change, std::string_view return_values);

/// Charges a consistent or eventual read of so many bytes.
void charge_read(Context& context, const Table& table, const std::string& index, const std::string& hash,
                 std::size_t bytes, double factor);

}  // namespace sluice::test::model
