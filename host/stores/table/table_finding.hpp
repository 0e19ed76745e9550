#pragma once

#include <string>

namespace sluice::queue::table {

enum class FindingLevel {
  unfit,    ///< it cannot hold a queue as it is
  waiting,  ///< it will do when DynamoDB is through with it
  advice,   ///< it works, and could be better
};

/// One thing about a table that is not as a queue wants it. A value; both texts are clauses without a full stop.
struct TableFinding {
  FindingLevel level = FindingLevel::unfit;
  std::string what;
  std::string mend;
};

}  // namespace sluice::queue::table
