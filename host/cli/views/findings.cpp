#include "host/cli/views/findings.hpp"

namespace sluice::cli {

void show(const Findings& found, Output output, Console& console) {
  if (output == Output::json) {
    console.out(found.json());
  } else if (found.none) {
    console.note(found.nothing);
  } else {
    console.out(found.text(console.output_has_colour()));
  }
}

}  // namespace sluice::cli
