#pragma once

#include <string>
#include <string_view>

namespace sluice::queue::sqlite {

/// Which parts of the file a handler's statement may touch: every table but ours, whose names
/// begin with sluice_, and nothing that changes how the file
/// is kept. SQLite asks while it prepares a statement, triggers and views included, and again when it prepares it anew
/// because the schema has changed. Of one connection.
class UserTables {
 public:
  /// Of a statement that is about to be prepared or run; until `end`, everything it touches is judged.
  void begin() {
    judging_ = true;
    table_.clear();
    refusal_.clear();
  }
  void end() { judging_ = false; }
  bool judges() const { return judging_; }

  /// What SQLite asks; true: it may. `action` is one of SQLite's action codes, with their two names.
  bool allows(int action, const char* first, const char* second);

  /// The first table that was written, or read where none was.
  const std::string& table() const { return table_; }
  /// Why it may not, empty: it may. Starts with "it".
  const std::string& refusal() const { return refusal_; }

 private:
  bool allows_table(std::string_view table, bool writes);
  bool allows_function(std::string_view function);

  bool judging_ = false;
  bool written_ = false;
  std::string table_;
  std::string refusal_;
};

}  // namespace sluice::queue::sqlite
