#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Pieces of SQL and of what stands for its parameters.
namespace sluice::queue::outbox::postgres {

/// A value of a statement, as text; nothing: NULL.
using Parameter = std::optional<std::string>;

/// "{1,2}" and "{\"a\",\"b\"}": arrays as parameters.
std::string array_of(std::span<const std::int64_t> numbers);
std::string array_of(std::span<const std::uint32_t> numbers);
std::string array_of(const std::vector<std::string>& texts);
/// With NULL for what is absent.
std::string array_of(const std::vector<Parameter>& texts);
/// A name as it stands in SQL, whatever characters it has.
std::string quoted(const std::string& identifier);

}  // namespace sluice::queue::outbox::postgres
