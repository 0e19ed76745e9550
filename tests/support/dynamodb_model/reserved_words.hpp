#pragma once

#include <string_view>

namespace sluice::test::model {

/// Whether DynamoDB refuses the word as an attribute's name in an expression; in any case.
bool is_reserved_word(std::string_view word);

}  // namespace sluice::test::model
