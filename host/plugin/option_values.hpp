#pragma once

#include "config/config.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// Options of one job, checked against the handler's declaration and completed with its defaults. A value.
class OptionValues {
 public:
  struct Value {
    std::string name;
    sluice_option_type type = SLUICE_OPTION_STRING;
    std::string string;
    std::int64_t integer = 0;
    double number = 0;
    std::vector<std::string> items;
  };

  void add(Value value) { values_.push_back(std::move(value)); }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::vector<Value> values_;
};

/// Checks [job.options] against what the handler declares: unknown name (with the nearest known one), wrong type,
/// missing required option; every error with its place. For a handler with open options everything passes as it is.
config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const config::JobConfig& job);

}  // namespace sluice::plugin
