#include "dynamo/credentials/aws_environment.hpp"

#include <cstdlib>

#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {

AwsEnvironment AwsEnvironment::of_process() {
  const auto lookup = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return {lookup, lookup("HOME").value_or("")};
}

std::optional<std::string> AwsEnvironment::get(const std::string& name) const {
  auto value = lookup_(name);
  return value && !value->empty() ? std::move(value) : std::nullopt;
}

bool AwsEnvironment::is_true(const std::string& name) const { return lower_case(get(name).value_or("")) == "true"; }

std::filesystem::path AwsEnvironment::expand(const std::string& path) const {
  if (path == "~") {
    return home_;
  }
  return path.starts_with("~/") ? home_ / path.substr(2) : std::filesystem::path(path);
}

}  // namespace sluice::dynamo
