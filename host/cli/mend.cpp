#include "host/cli/mend.hpp"

#include "host/stores/table/table_errors.hpp"

namespace sluice::cli {

std::string mend_of(const Error& error, const std::string& options) {
  using queue::table::TableFault;
  switch (queue::table::table_fault(error)) {
    case TableFault::no_table:
      return "; make it with: sluice table create " + options;
    case TableFault::no_index:
      return "; see what it has with: sluice table check " + options;
    case TableFault::other_keys:
      return "; look with: sluice table check " + options;
    case TableFault::none:
      break;
  }
  return {};
}

}  // namespace sluice::cli
