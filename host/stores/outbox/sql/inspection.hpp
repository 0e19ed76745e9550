#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox::sql {

/// The types that columns may have, as a server's catalogue calls them, and what to call them for a person.
struct ColumnTypes {
  struct Kind {
    std::vector<std::string> types;
    const char* expected;
  };
  Kind id, text, payload, time, count, reason;
};

/// What an inspection finds out about one table, in words.
class Inspection {
 public:
  /// `table`: what it is called in findings.
  Inspection(const SqlTable& sql, std::string table) : sql_(sql), table_(std::move(table)) {}

  void fatal(ErrorCode code, std::string text) { findings_.push_back({true, code, std::move(text)}); }
  void remark(std::string text) { findings_.push_back({false, ErrorCode::invalid, std::move(text)}); }
  const std::string& table() const { return table_; }
  bool empty() const { return findings_.empty(); }

  /// Compares the columns that there are, by name, with those that the settings name.
  void columns(const std::map<std::string, std::string>& types, const ColumnTypes& expected);
  /// `unique`: some index says so of ids alone; `counted`: the server makes their values, `how` says by what.
  void identity(bool unique, bool counted, const char* how);
  /// Fatal ones first.
  std::vector<Finding> findings() &&;

 private:
  void column(const char* key, const std::string& name, const ColumnTypes::Kind& kind,
              const std::map<std::string, std::string>& types);

  const SqlTable& sql_;
  const std::string table_;
  std::vector<Finding> findings_;
};

}  // namespace sluice::queue::outbox::sql
