#include "host/stores/sqlite/bounded_functions.hpp"

#include <sqlite3.h>

#include <string>

namespace sluice::queue::sqlite {

BoundedFunctions::~BoundedFunctions() {
  for (const Function& function : functions_) {
    sqlite3_finalize(function.original);
  }
  sqlite3_close(originals_);
}

int BoundedFunctions::take_place(sqlite3* connection, int most_value_bytes) {
  int code = sqlite3_open_v2(":memory:", &originals_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code == SQLITE_OK) {
    sqlite3_limit(originals_, SQLITE_LIMIT_LENGTH, most_value_bytes);
  }
  for (Function& function : functions_) {
    if (code == SQLITE_OK) {
      code = sqlite3_prepare_v3(originals_, function.sql, -1, SQLITE_PREPARE_PERSISTENT, &function.original, nullptr);
    }
    if (code == SQLITE_OK) {
      code = sqlite3_create_function_v2(connection, function.name, function.arguments,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, &function,
                                        &BoundedFunctions::call, nullptr, nullptr, nullptr);
    }
  }
  return code;
}

void BoundedFunctions::call(sqlite3_context* context, int count, sqlite3_value** values) {
  const Function& function = *static_cast<const Function*>(sqlite3_user_data(context));
  const int first = sqlite3_value_bytes(values[0]);
  const int second = sqlite3_value_bytes(values[1]);
  if (static_cast<double>(first) * second > function.most) {
    const std::string why = std::string(function.name) + "() of " + std::to_string(first) + " and " +
                            std::to_string(second) + " bytes would take too long";
    sqlite3_result_error(context, why.c_str(), -1);
    return;
  }
  for (int i = 0; i < count; ++i) {
    sqlite3_bind_value(function.original, i + 1, values[i]);
  }
  const int code = sqlite3_step(function.original);
  if (code == SQLITE_ROW) {
    sqlite3_result_value(context, sqlite3_column_value(function.original, 0));
  } else {
    sqlite3_result_error(context, sqlite3_errmsg(sqlite3_db_handle(function.original)), -1);
    sqlite3_result_error_code(context, code);
  }
  sqlite3_reset(function.original);
  sqlite3_clear_bindings(function.original);
}

}  // namespace sluice::queue::sqlite
